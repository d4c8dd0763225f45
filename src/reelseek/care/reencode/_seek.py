"""What reading frames at random costs, in several files of the same frames."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from reelseek.video import open_video

SECOND_FRAME = 16
"""The second frame of a read is so many after the first, as in training."""
WARM_UP = 2
"""Reads before those that are timed."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of some measurements."""

    median: float
    lower: float
    """The first quartile."""
    upper: float
    """The third quartile."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        lower, median, upper = np.percentile(values, (25, 50, 75))
        return cls(float(median), float(lower), float(upper))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some frames of a file."""

    path: str | os.PathLike[str]
    """The file."""
    first: int = 0
    """The number of the first of the frames."""


def time_in_turn(
    stretches: Sequence[Stretch], count: int, num_reads: int, rng: np.random.Generator
) -> list[list[float]]:
    """Read two frames at random places, each place in each file in turn.

    What else the machine does then meets all files alike.

    Args:
        stretches: The same frames in several files.
        count: How many frames these are.
        num_reads: How many reads to time.
        rng: Of the places.

    Returns:
        For each file the time of each read, in milliseconds.
    """
    apart = min(SECOND_FRAME, count - 1)
    places = rng.integers(0, count - apart, num_reads + WARM_UP)
    times: list[list[float]] = [[] for _ in stretches]
    with ExitStack() as stack:
        videos = [stack.enter_context(open_video(stretch.path)) for stretch in stretches]
        for place in places.tolist():
            for stretch, video, found in zip(stretches, videos, times, strict=True):
                first = stretch.first + place
                started = time.perf_counter()
                video.get_frames_at([first, first + apart])
                found.append((time.perf_counter() - started) * 1e3)
    return [found[WARM_UP:] for found in times]
