"""Training steps, and where their time goes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from reelseek.bench._timing import median
from reelseek.bench._train_setups import ACTION, PREFETCHED, Prepare, Setup


@dataclass(slots=True)
class SetupTimes:
    """What a setup's steps took. All times in milliseconds."""

    setup: Setup
    """The setup."""
    num_workers: int = 1
    """Processes that read."""
    why_not: str = ""
    """Why it wasn't run: not installed, can't read the files, or its frames differ."""
    read_ms: list[float] = field(default_factory=list)
    """Reading a batch in this process, with nothing beside it."""
    read_cpu_ms: list[float] = field(default_factory=list)
    """The processor's time for the same: it doesn't count what else the machine does."""
    wait_ms: list[float] = field(default_factory=list)
    """Each step's wait for its batch."""
    preprocess_ms: list[float] = field(default_factory=list)
    """From the batch to the model's input on the device."""
    compute_ms: list[float] = field(default_factory=list)
    """Forward, backward, optimiser; under torchrun also the wait for the other processes."""

    own_ms: list[float] = field(default_factory=list)
    """Each step's preprocessing and computing by the processor's clock, where one thread does it
    all: it doesn't count what else the machine does. Elsewhere by the wall's."""
    round_rates: list[float] = field(default_factory=list)
    """Steps a second in each round: the spread."""

    @property
    def step_ms(self) -> float | None:
        """A step's mean; None where none was run."""
        total = sum(self.wait_ms) + sum(self.preprocess_ms) + sum(self.compute_ms)
        return total / len(self.wait_ms) if self.wait_ms else None

    @property
    def steps_per_second(self) -> float | None:
        """Steps a second; None where none was run."""
        return 1000 / self.step_ms if self.step_ms else None

    def shares(self) -> tuple[float, float, float]:
        """The parts of all steps' time that went to waiting, preprocessing and computing."""
        sums = [sum(times) for times in (self.wait_ms, self.preprocess_ms, self.compute_ms)]
        wait, preprocess, compute = (part / (sum(sums) or 1) for part in sums)
        return wait, preprocess, compute

    @property
    def busy(self) -> float | None:
        """The part of its time that each worker has to read, if steps never wait; None unknown.

        From the processor's time that a batch and a step take, so that another load on the machine
        hardly changes it. Above 1 the workers can't keep up, and steps wait.
        """
        read, own = median(self.read_cpu_ms), median(self.own_ms)
        return read / (own * self.num_workers) if read and own and self.num_workers else None

    @property
    def waits(self) -> bool:
        """True where steps have to wait: the workers can't keep up, or there are none."""
        return self.busy is None or self.busy > 1

    @property
    def core_feeds(self) -> float | None:
        """Steps a second for which one core reads enough; None where it wasn't measured.

        Steps that are quicker on a faster device wait, unless more workers read.
        """
        middle = median(self.read_cpu_ms)
        return 1000 / middle if middle else None

    def to_json(self) -> dict[str, Any]:
        """For the JSON document."""
        wait, preprocess, compute = self.shares()
        return {
            "name": self.setup.name,
            "reader": self.setup.reader,
            "processor": self.setup.processor,
            "usage": self.setup.usage,
            "why_not": self.why_not,
            "steps_per_second": self.steps_per_second,
            "round_steps_per_second": self.round_rates,
            "share_waiting": wait if self.wait_ms else None,
            "share_preprocessing": preprocess if self.wait_ms else None,
            "share_computing": compute if self.wait_ms else None,
            "worker_busy": self.busy,
            "waits_for_data": self.waits if self.wait_ms else None,
            "core_feeds_steps_per_second": self.core_feeds,
            "read_median_ms": median(self.read_ms),
            "read_ms": self.read_ms,
            "read_cpu_ms": self.read_cpu_ms,
            "wait_ms": self.wait_ms,
            "preprocess_ms": self.preprocess_ms,
            "compute_ms": self.compute_ms,
            "own_ms": self.own_ms,
        }


class Trainer:
    """A model, its optimiser, and one step at a time."""

    def __init__(self, model: Any, device: str, threads: int) -> None:
        import torch

        on_one_core = device == "cpu" and threads == 1
        self._own_clock = time.process_time if on_one_core else time.perf_counter

        self._torch = torch
        self._device = device
        self._model = model
        self._optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def run(
        self, batches: Iterator[Any], prepare: Prepare, times: SetupTimes, warm_up: int
    ) -> None:
        """Train on all batches, and keep the times of those after the warm-up."""
        parts = (times.wait_ms, times.preprocess_ms, times.compute_ms)
        first = len(times.wait_ms)
        for number in itertools.count():
            marks = [time.perf_counter()]
            batch = next(batches, None)
            if batch is None:
                break
            marks.append(time.perf_counter())
            own_started = self._own_clock()
            pixels = prepare(batch)
            self._finish()
            marks.append(time.perf_counter())
            self._step(pixels, batch[ACTION].to(self._device))
            self._finish()
            marks.append(time.perf_counter())
            own = self._own_clock() - own_started
            if number >= warm_up:
                times.own_ms.append(round(own * 1000, 4))
                for part, started, ended in zip(parts, marks, marks[1:], strict=False):
                    part.append(round((ended - started) * 1000, 4))
        spent = sum(sum(part[first:]) for part in parts)
        times.round_rates.append(round(1000 * (len(times.wait_ms) - first) / spent, 4))

    def _step(self, pixels: Any, actions: Any) -> None:
        loss = self._torch.nn.functional.mse_loss(self._model(pixels), actions)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    def _finish(self) -> None:
        """Let a GPU finish, so that its work counts where it was asked for."""
        if self._device.startswith("cuda"):
            self._torch.cuda.synchronize()


def warm_up_steps(num_workers: int) -> int:
    """Steps that aren't counted: until what the workers read ahead before the start is used up."""
    return num_workers * PREFETCHED + 2
