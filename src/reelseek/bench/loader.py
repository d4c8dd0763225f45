"""``reelseek bench loader``: what a training gets from its data loader, on your own data.

Every way to read batches runs in a process of its own. Their samples are compared first; those
that are right are then timed in turn, round after round, so that a busy moment of the machine
meets them alike.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.bench._environment import environment
from reelseek.bench._loader_smoke import SmokeTiming, time_smoke
from reelseek.bench._loader_ways import OURS, OURS_BY_GOP, WAYS, Job
from reelseek.bench._loops import in_turn
from reelseek.bench._timing import median

if TYPE_CHECKING:
    from reelseek.datasets import Dataset
    from reelseek.loader import Randomness

SCHEMA = "reelseek.bench.loader/1"
CHILD = [sys.executable, "-m", "reelseek.bench._loader_child"]
CHECKED = 24
"""Samples that are compared."""
MOST_DIFFERENT = 8
"""Of 255: how far colours may be off for frames to count as the same; converters round apart."""
ROWS_IN_ORDER = 20_000
"""Samples of the random order, over as many epochs as it takes."""

Tell = Callable[[str], None]


@dataclass(slots=True)
class LoaderTiming:
    """What one way's batches cost."""

    name: str
    """The way's name."""
    version: str = ""
    """The packages behind it."""
    why_not: str = ""
    """Why it has no times; empty where it has."""
    max_difference: int | None = None
    """The largest difference of a colour from reelseek's frames, of 255."""
    first_batch_seconds: float | None = None
    """Until the first batch is there, workers started."""
    cold_samples_per_second: float | None = None
    """In the first round: files that were not touched before by these processes."""
    samples_per_second: list[float] = field(default_factory=list)
    """In each round after it."""
    cpu_ms_per_sample: list[float] = field(default_factory=list)
    """The workers' time on the processor, in each of those rounds."""
    worker_megabytes: list[float] = field(default_factory=list)
    """The resident memory of a worker, the mean over workers, after each round, the first too."""

    @property
    def rate(self) -> float | None:
        """The median of the samples per second."""
        return median(self.samples_per_second)

    def to_json(self) -> dict[str, Any]:
        """For the JSON document."""
        return {
            **dataclasses.asdict(self),
            "usage": WAYS[self.name].usage,
            "median_samples_per_second": self.rate,
            "median_cpu_ms_per_sample": median(self.cpu_ms_per_sample),
        }


@dataclass(frozen=True, slots=True)
class LoaderBench:
    """A whole measurement."""

    job: Job
    """What was read."""
    rounds: int
    """Rounds after the first, cold one."""
    seconds: float
    """Of one way's turn in a round."""
    timings: tuple[LoaderTiming, ...]
    """One for each way."""
    smoke: tuple[SmokeTiming, ...]
    """Single samples."""
    randomness: dict[str, Randomness]
    """Of reelseek's two orders, by the way's name."""

    def ratios(self, of: str) -> dict[str, float]:
        """How many times as many samples a second as each other way: medians over rounds."""
        return self._ratios(of, lambda own, other: np.divide(
            own.samples_per_second, other.samples_per_second
        ))  # fmt: skip

    def cpu_ratios(self, of: str) -> dict[str, float]:
        """How many times as much of the processor's time each other way takes for a sample.

        Other processes on the machine don't change it, where they do change rates: a way that
        starts many threads gets more of a busy machine.
        """
        return self._ratios(of, lambda own, other: np.divide(
            other.cpu_ms_per_sample, own.cpu_ms_per_sample
        ))  # fmt: skip

    def _ratios(
        self, of: str, compared: Callable[[LoaderTiming, LoaderTiming], Any]
    ) -> dict[str, float]:
        own = next((t for t in self.timings if t.name == of and t.samples_per_second), None)
        if own is None:
            return {}
        return {
            other.name: float(np.median(compared(own, other)))
            for other in self.timings
            if other.samples_per_second and other.name not in (OURS, OURS_BY_GOP)
        }

    def to_json(self) -> dict[str, Any]:
        """The versioned JSON document."""
        return {
            "schema": SCHEMA,
            "measured_at": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
            "environment": environment(),
            "settings": {
                **dataclasses.asdict(self.job),
                "rounds": self.rounds,
                "seconds_per_turn": self.seconds,
                "cache_state": "page cache warm: the samples were compared before",
            },
            "loaders": [timing.to_json() for timing in self.timings],
            "ratios": {name: self.ratios(name) for name in (OURS, OURS_BY_GOP)},
            "cpu_ratios": {name: self.cpu_ratios(name) for name in (OURS, OURS_BY_GOP)},
            "randomness": {name: found.to_json() for name, found in self.randomness.items()},
            "single_samples": [timing.to_json() for timing in self.smoke],
        }


def bench_loader(
    dataset: Dataset,
    job: Job,
    *,
    ways: Sequence[str] | None = None,
    rounds: int = 3,
    seconds: float = 4.0,
    smoke_samples: int = 30,
    seed: int = 0,
    tell: Tell = lambda _text: None,
) -> LoaderBench:
    """Compare and time data loaders.

    Args:
        dataset: The dataset, opened as samples are read.
        job: What is read.
        ways: Names of ways; None for all.
        rounds: Rounds that are timed after the first.
        seconds: Of one way's turn in a round; one whole epoch for the GOP-aware shuffle.
        smoke_samples: Single samples that are timed; 0 for none.
        seed: Of the order.
        tell: Told what is being done.
    """
    names = tuple(ways or WAYS)
    order = random_order(len(dataset), seed)
    timings = {name: LoaderTiming(name) for name in names}
    children: dict[str, _Child] = {}
    with tempfile.TemporaryDirectory(prefix="reelseek-loader-") as scratch:
        try:
            for name in names:
                tell(f"comparing the samples of {name}")
                _start(name, job, order, Path(scratch), timings[name], children)
            _compare(Path(scratch), timings, children)
            _time(children, timings, rounds, seconds, tell)
        finally:
            for child in children.values():
                child.end()
    tell("timing single samples")
    smoke = time_smoke(dataset, job, smoke_samples, seed) if smoke_samples else ()
    return LoaderBench(
        job, rounds, seconds, tuple(timings.values()), smoke, _randomness(dataset, job, seed)
    )


def headline(measured: LoaderBench) -> str:
    """What was measured, in one line."""
    job = measured.job
    offsets = ", ".join(f"{n:+d}" if n else "0" for n in job.offsets)
    return (
        f"{Path(job.root).name}: batches of {job.batch_size}, {job.num_workers} workers; frames "
        f"({offsets}) of each camera, {job.action_steps} actions"
    )


def random_order(num_samples: int, seed: int) -> list[int]:
    """Epoch after epoch in random order."""
    from reelseek.loader._orders import Share

    epochs = -(-ROWS_IN_ORDER // num_samples)
    shares = [Share(seed, epoch, 0, 1, 1, drop_last=False, uneven="pad") for epoch in range(epochs)]
    return [int(n) for share in shares for n in share.permutation(num_samples)]


def _start(
    name: str,
    job: Job,
    order: list[int],
    scratch: Path,
    timing: LoaderTiming,
    children: dict[str, _Child],
) -> None:
    """Let a way write the samples that are compared, and start the process that is timed.

    Another one: forked workers can't use what LeRobot's cache of decoders took over from it.
    """
    child = _Child(name, job, order)
    answer = child.answer()
    timing.version = answer.get("version", "")
    if "error" not in answer:
        answer = child.ask("check", order[:CHECKED], str(_output(scratch, name)))
    child.end()
    if "error" in answer:
        timing.why_not = answer["error"]
        return
    children[name] = _Child(name, job, order)
    children[name].answer()


def _compare(scratch: Path, timings: dict[str, LoaderTiming], children: dict[str, _Child]) -> None:
    """Compare all samples with the first way's; a way that differs isn't timed."""
    reference = next(iter(children), None)
    if reference is None:
        return
    wanted = np.load(_output(scratch, reference))
    for name in list(children):
        found = np.load(_output(scratch, name))
        timings[name].max_difference = worst = max(
            int(np.abs(found[key].astype(np.int16) - wanted[key].astype(np.int16)).max())
            for key in wanted.files
            if key != "action"
        )
        if worst > MOST_DIFFERENT or not np.array_equal(found["action"], wanted["action"]):
            timings[name].why_not = f"its samples differ from those of {reference}: by {worst}"
            children.pop(name).end()


def _time(
    children: dict[str, _Child],
    timings: dict[str, LoaderTiming],
    rounds: int,
    seconds: float,
    tell: Tell,
) -> None:
    for number in range(rounds + 1):
        tell(f"round {number} of {rounds}" + " (cold)" * (number == 0))
        for name in in_turn(list(children), number):
            timing, measured = timings[name], dict[str, Any]()
            if number == 0:
                begun = children[name].ask("begin")
                timing.first_batch_seconds = begun.get("seconds")
                measured = begun if "error" in begun else {}
            measured = measured or children[name].ask("measure", seconds)
            if "error" in measured:
                timing.why_not = measured["error"]
                children.pop(name).end()
                continue
            rate = measured["samples"] / measured["seconds"]
            timing.worker_megabytes.append(float(np.mean(measured["worker_bytes"])) / 2**20)
            if number == 0:
                timing.cold_samples_per_second = rate
                continue
            timing.samples_per_second.append(rate)
            cpu = measured["cpu_seconds"] / measured["samples"]
            timing.cpu_ms_per_sample.append(cpu * 1000)


def _randomness(dataset: Dataset, job: Job, seed: int) -> dict[str, Randomness]:
    from reelseek.loader import GopShuffle, Shuffle, measure_randomness

    return {
        name: measure_randomness(
            dataset, order, job.batch_size, num_workers=job.num_workers, seed=seed
        )
        for name, order in ((OURS, Shuffle()), (OURS_BY_GOP, GopShuffle()))
    }


def _output(scratch: Path, name: str) -> Path:
    return scratch / f"{sorted(WAYS).index(name)}.npz"


class _Child:
    """A way's process."""

    def __init__(self, name: str, job: Job, order: list[int]) -> None:
        self._process = subprocess.Popen(
            CHILD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self._say({"way": name, "job": dataclasses.asdict(job), "samples": order})

    def ask(self, command: str, *arguments: Any) -> dict[str, Any]:
        """Let it do something, and wait for what comes of it."""
        self._say([command, arguments])
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Its next line."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            return {"error": f"its process ended with exit status {self._process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """Let it end; it does when its input ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _say(self, line: Any) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and the answer says so
            print(json.dumps(line), file=self._process.stdin, flush=True)
