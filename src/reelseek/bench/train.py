"""``reelseek bench train``: does a training step wait for its data?

An inverse-dynamics model is trained for a few steps with each way of reading: frames at a row and
16 rows on, of all cameras, through SigLIP's vision encoder to the 16 actions in between. What is
read is compared first. The ways take turns, each with a loader of its own, on the same samples.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.bench._environment import environment
from reelseek.bench._loops import in_turn, milliseconds, no_garbage_collection, now
from reelseek.bench._train_model import IMAGE_SIZE, inverse_dynamics_model
from reelseek.bench._train_setups import (
    ACTION,
    SETUPS,
    Prepare,
    make_batches,
    make_processor,
    open_setup,
    read_batch,
)
from reelseek.bench._train_steps import SetupTimes, Trainer, warm_up_steps
from reelseek.bench.preprocess import LEVELS_ALLOWED, ROUNDING
from reelseek.errors import DatasetFormatError, ReelseekError

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

SCHEMA = "reelseek.bench.train/1"
MIN_ROUNDS = 3
"""How often each setup has its turn, at least."""
COMPARED = 5
"""Batches that are compared and whose read is timed by itself."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What is trained, and how."""

    steps: int = 30
    """Steps counted for each setup, in each process."""
    batch_size: int = 4
    """Samples of a step, in each process."""
    num_workers: int = 1
    """Processes that read, for each that trains."""
    model: str = "tiny"
    """Which encoder."""
    device: str = "cpu"
    """Where the model is: ``cpu`` or ``cuda``."""
    threads: int = 1
    """Threads of torch on a CPU."""
    horizon: int = 16
    """Rows between the two frames, and actions to find."""
    seed: int = 0
    """Of the samples' order and the model's weights."""


@dataclass(frozen=True, slots=True)
class Process:
    """This process among those that train together."""

    rank: int
    """Its number."""
    world_size: int
    """How many there are."""


@dataclass(frozen=True, slots=True)
class TrainBench:
    """What was measured, in this process."""

    dataset: Dataset
    """Whose frames."""
    options: TrainOptions
    """What was asked for."""
    process: Process
    """Which process this is."""
    setups: tuple[SetupTimes, ...]
    """In the order asked for; under torchrun the times of all processes."""

    @property
    def is_sound(self) -> bool:
        """True where something was measured, and no setup read other frames."""
        differs = any(times.why_not and times.read_ms for times in self.setups)
        return not differs and any(times.wait_ms for times in self.setups)

    def to_json(self) -> dict[str, Any]:
        """The versioned JSON document."""
        return {
            "schema": SCHEMA,
            "measured_at": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
            "environment": environment(),
            "dataset": {"root": str(self.dataset.root)},
            "cameras": list(self.dataset.cameras),
            "world_size": self.process.world_size,
            "options": asdict(self.options),
            "warm_up_steps": warm_up_steps(self.options.num_workers),
            "setups": [setup.to_json() for setup in self.setups],
        }


def bench_train(
    dataset: Dataset,
    options: TrainOptions,
    *,
    setups: Sequence[str] | None = None,
    tell: Tell = lambda _text: None,
) -> TrainBench:
    """Train with each setup in turn, and say where the steps' time goes.

    Started by ``torchrun``, its processes train together (gloo on CPUs, nccl on GPUs); each gets
    the times of all.

    Args:
        dataset: An open dataset: its folder and its cameras count.
        options: What is trained, and how.
        setups: Names of setups; None for all.
        tell: Told what is being done.

    Raises:
        DependencyError: torch or transformers isn't installed.
        DatasetFormatError: No episode is long enough, or there are too few samples.
        DatasetError, VideoError: The dataset or a file can't be read.
    """
    with _training_process(options) as process:
        chosen = setups or tuple(SETUPS)
        plan = _plan(dataset, options, process)
        sources, times = (
            {},
            {name: SetupTimes(SETUPS[name], options.num_workers) for name in chosen},
        )
        tell = tell if process.rank == 0 else lambda _text: None
        tell("comparing what is read")
        samples = [sample for turn in plan for sample in turn]
        reference = _Reference(dataset, samples, options)
        for name in chosen:
            try:
                sources[name] = reference.check(times[name])
            except ReelseekError as exc:
                times[name].why_not = str(exc)
        _agree(times, process)
        sources = {name: found for name, found in sources.items() if not times[name].why_not}
        trainer = _trainer(dataset, options, reference.action_dim, process)
        for number, turn in enumerate(plan):
            tell(f"round {number + 1} of {len(plan)}: {', '.join(sources)}")
            for name in in_turn(tuple(sources), number):
                source, prepare = sources[name]
                with no_garbage_collection():
                    _run_turn(source, prepare, turn, trainer, times[name], options)
        _gather(times, process)
    return TrainBench(dataset, options, process, tuple(times.values()))


def _run_turn(
    source: Any,
    prepare: Prepare,
    samples: Sequence[int],
    trainer: Trainer,
    times: SetupTimes,
    options: TrainOptions,
) -> None:
    on_gpu = options.device.startswith("cuda")
    batches = make_batches(
        source, samples, options.batch_size, options.num_workers, pin_memory=on_gpu
    )
    trainer.run(iter(batches), prepare, times, warm_up_steps(options.num_workers))


class _Reference:
    """What every setup has to read: the indexed engine's frames, and reelseek's model input."""

    def __init__(self, dataset: Dataset, samples: list[int], options: TrainOptions) -> None:
        self._dataset = dataset
        self._samples = samples
        self._options = options
        size = options.batch_size
        self._batches = [samples[n * size : (n + 1) * size] for n in range(COMPARED)]
        own = open_setup(SETUPS["indexed"], dataset, samples, options.horizon)
        self._frames = [read_batch(own, batch) for batch in self._batches]
        self._prepare = self._processor("reelseek")
        self.action_dim = int(self._frames[0][ACTION].shape[-1])

    def check(self, times: SetupTimes) -> tuple[Any, Prepare]:
        """Open a setup and compare what it reads; it is left out where that differs."""
        setup, options = times.setup, self._options
        source = open_setup(setup, self._dataset, self._samples, options.horizon)
        prepare = self._processor(setup.processor)
        for samples, expected in zip(self._batches, self._frames, strict=True):
            read_batch(source, samples)  # open the files
            started = now()
            batch = read_batch(source, samples)
            wall, cpu = milliseconds(started, now())
            times.read_ms.append(wall)
            times.read_cpu_ms.append(cpu)
            different = [key for key in (*self._dataset.cameras, ACTION)
                         if not bool((batch[key] == expected[key]).all())]  # fmt: skip
            if different:
                times.why_not = f"what it reads differs in {', '.join(different)}"
            off = float((prepare(batch) - self._prepare(expected)).abs().max()) * 127.5
            if off > LEVELS_ALLOWED + ROUNDING:
                times.why_not = f"its preprocessing differs by {off:.1f} of 255 levels"
        source.close()  # each worker opens its files itself
        return source, prepare

    def _processor(self, name: str) -> Prepare:
        return make_processor(name, self._dataset.cameras, IMAGE_SIZE, self._options.device)


def _plan(dataset: Dataset, options: TrainOptions, process: Process) -> list[list[int]]:
    """The samples of each round, in this process; both frames lie in the sample's episode."""
    lengths = dataset.episodes.lengths
    starts = np.cumsum(lengths) - lengths
    rows = [start + np.arange(max(0, length - options.horizon))
            for start, length in zip(starts, lengths, strict=True)]  # fmt: skip
    candidates = np.concatenate(rows) if rows else np.empty(0, np.int64)
    at_once = options.batch_size * process.world_size
    room = len(candidates) // at_once - warm_up_steps(options.num_workers)
    if room < 1:
        raise DatasetFormatError(
            f"{len(candidates)} samples have a frame {options.horizon} rows on, too few for "
            f"steps of {at_once}",
            remedy="Use a smaller batch, fewer workers, or a larger dataset",
            path=dataset.root,
        )
    rounds = max(MIN_ROUNDS, -(-options.steps // room))
    steps = -(-options.steps // rounds) + warm_up_steps(options.num_workers)
    random = np.random.default_rng(options.seed)
    turns = [random.permutation(candidates)[: steps * at_once] for _ in range(rounds)]
    return [turn[process.rank :: process.world_size].tolist() for turn in turns]


def _trainer(dataset: Dataset, options: TrainOptions, action_dim: int, process: Process) -> Trainer:
    import torch

    torch.manual_seed(options.seed)
    views = 2 * len(dataset.cameras)
    model = inverse_dynamics_model(options.model, views, options.horizon, action_dim)
    model = model.to(options.device)
    if process.world_size > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    return Trainer(model, options.device, options.threads)


@contextmanager
def _training_process(options: TrainOptions) -> Iterator[Process]:
    """Join the processes that torchrun started, and use this many threads meanwhile."""
    import torch

    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    before = torch.get_num_threads()
    torch.set_num_threads(options.threads)
    if world_size > 1:
        on_gpu = options.device.startswith("cuda")
        if on_gpu:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield Process(int(os.environ.get("RANK", "0")) if world_size > 1 else 0, world_size)
    finally:
        torch.set_num_threads(before)
        if world_size > 1:
            torch.distributed.destroy_process_group()


def _agree(times: dict[str, SetupTimes], process: Process) -> None:
    """Leave a setup out in all processes where one of them can't run it."""
    for everyone in _of_all(times, process):
        for name, other in everyone.items():
            times[name].why_not = times[name].why_not or other.why_not


def _gather(times: dict[str, SetupTimes], process: Process) -> None:
    """Add the other processes' times."""
    everyone = _of_all(times, process)
    for name, own in times.items():
        for other in (found[name] for rank, found in enumerate(everyone) if rank != process.rank):
            own.wait_ms += other.wait_ms
            own.preprocess_ms += other.preprocess_ms
            own.compute_ms += other.compute_ms
            own.own_ms += other.own_ms
            own.round_rates += other.round_rates


def _of_all(own: Any, process: Process) -> list[Any]:
    """What each process has, by rank."""
    if process.world_size == 1:
        return [own]
    import torch

    everyone: list[Any] = [None] * process.world_size
    torch.distributed.all_gather_object(everyone, own)
    return everyone
