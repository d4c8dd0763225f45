"""``reelseek bench preprocess``: what SigLIP's preprocessing costs, and whether it is the same.

All results are compared first. Then the ways are timed in turn, one thread each, on the same
decoded frames.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.bench._environment import environment
from reelseek.bench._loops import in_turn, milliseconds, no_garbage_collection, now
from reelseek.bench._preprocess_ways import (
    FAST,
    OURS,
    OURS_UINT8,
    SLOW,
    SLOW_PIL,
    Absent,
    Way,
    ways_for,
)
from reelseek.bench._ratios import Ratio, paired
from reelseek.bench._timing import median, percentile

if TYPE_CHECKING:
    from torch import Tensor

    from reelseek.datasets import Dataset

SCHEMA = "reelseek.bench.preprocess/1"
LEVELS_ALLOWED = 2.0
"""By how many of 255 levels a way may differ from the slow processor, whose filter is Pillow's."""
ROUNDING = 0.01
"""Levels that floats may be off."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one way took, and how it compares."""

    way: Way
    """The way."""
    levels: float | None
    """The largest difference from the slow processor in levels of 255; None without that."""
    batch_ms: list[float] = field(default_factory=list)
    """Milliseconds for the batch, by the wall's clock."""
    batch_cpu_ms: list[float] = field(default_factory=list)
    """The same by the processor's clock."""

    @property
    def is_right(self) -> bool:
        """True where it is as near to the slow processor as it must be."""
        return self.levels is None or self.levels <= LEVELS_ALLOWED + ROUNDING


@dataclass(frozen=True, slots=True)
class PreprocessBench:
    """All that was measured."""

    root: Path
    """The dataset's folder."""
    shape: tuple[int, int, int]
    """Frames, and their height and width in pixels."""
    size: int
    """The result's side, in pixels."""
    measured: tuple[Measured, ...]
    """Each way, Hugging Face's first."""
    absent: tuple[Absent, ...]
    """Ways that can't be measured here."""

    def frames_per_second(self, one: Measured) -> float | None:
        """By the median; None where it wasn't timed."""
        middle = median(one.batch_ms)
        return self.shape[0] * 1000 / middle if middle else None

    def ratios(self) -> list[Ratio]:
        """How many times as long Hugging Face's processors take, each round by itself."""
        known = {one.way.name: one for one in self.measured if one.batch_ms}
        found = [
            paired(
                f"{peer} / {own}",
                (known[peer].batch_ms, known[peer].batch_cpu_ms),
                (known[own].batch_ms, known[own].batch_cpu_ms),
            )
            for own in (OURS, OURS_UINT8)
            for peer in (SLOW_PIL, SLOW, FAST)
            if peer in known and own in known
        ]
        return [ratio for ratio in found if ratio]

    def to_json(self) -> dict[str, Any]:
        """The versioned JSON document."""
        return {
            "schema": SCHEMA,
            "measured_at": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
            "environment": environment(),
            "dataset": {"root": str(self.root)},
            "num_frames": self.shape[0],
            "frame_height": self.shape[1],
            "frame_width": self.shape[2],
            "size": self.size,
            "threads": 1,
            "ways": [self._way_to_json(one) for one in self.measured],
            "absent": [{"name": one.name, "why": one.why} for one in self.absent],
            "ratios": [ratio.to_json() for ratio in self.ratios()],
        }

    def _way_to_json(self, one: Measured) -> dict[str, Any]:
        return {
            "name": one.way.name,
            "usage": one.way.usage,
            "has_float_step": one.way.has_float_step,
            "max_levels_from_slow_processor": one.levels,
            "is_right": one.is_right,
            "frames_per_second": self.frames_per_second(one),
            "batch_median_ms": median(one.batch_ms),
            "batch_p95_ms": percentile(one.batch_ms, 95),
            "batch_ms": one.batch_ms,
            "batch_cpu_ms": one.batch_cpu_ms,
        }


def bench_preprocess(
    dataset: Dataset,
    *,
    frames: int = 24,
    size: int = 224,
    rounds: int = 15,
    seed: int = 0,
    tell: Tell = lambda _text: None,
) -> PreprocessBench:
    """Compare and time SigLIP's preprocessing on frames of a dataset.

    Args:
        dataset: An open dataset with ``output="torch"``, without deltas.
        frames: How many frames in the batch.
        size: The result's side, in pixels.
        rounds: How often each way runs.
        seed: Of the choice of frames.
        tell: Told what is being done.

    Raises:
        DatasetError, VideoError: The dataset or a file can't be read.
    """
    tell(f"decoding {frames} frames")
    pixels = _some_frames(dataset, frames, seed)
    ways, absent = ways_for(pixels, size)
    with one_thread():
        tell("comparing the results")
        measured = _compare(ways)
        right = {one.way.name: one for one in measured if one.is_right}
        tell(f"timing {rounds} rounds of: {', '.join(right)}")
        for number in range(rounds):
            with no_garbage_collection():
                for name in in_turn(tuple(right), number):
                    _time(right[name])
    shape = (frames, int(pixels.shape[-2]), int(pixels.shape[-1]))
    return PreprocessBench(dataset.root, shape, size, tuple(measured), tuple(absent))


def _some_frames(dataset: Dataset, frames: int, seed: int) -> Tensor:
    """(N, 3, H, W) random frames of the first camera, as decoded."""
    chosen = np.random.default_rng(seed).integers(len(dataset), size=frames)
    pixels: Tensor = dataset.get_batch(chosen.tolist())[dataset.cameras[0]]
    return pixels


def _compare(ways: list[Way]) -> list[Measured]:
    """Run each way once, and compare its result with the slow processor's."""
    from reelseek.preprocess import normalize

    results = {way.name: way.run() for way in ways}
    reference = results.get(SLOW)
    found = []
    for way in ways:
        values = results[way.name] if way.has_float_step else normalize(results[way.name])
        levels = None
        if reference is not None:
            levels = round(float((values - reference).abs().max()) * 127.5, 4)
        found.append(Measured(way, levels))
    return found


def _time(one: Measured) -> None:
    started = now()
    one.way.run()
    wall, cpu = milliseconds(started, now())
    one.batch_ms.append(wall)
    one.batch_cpu_ms.append(cpu)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread meanwhile."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
