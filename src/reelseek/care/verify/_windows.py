"""Which frames of a video each episode has: the whole file's, or a part of it (v3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reelseek.care.verify._clocks import TOLERANCE

FAR = 2**53
"""More frames than any file has."""


@dataclass(frozen=True, slots=True)
class Part:
    """An episode's part of a video, as meta and data say."""

    episode: int
    """The episode's number."""
    rows: int
    """The frames that it needs: one for each of its rows."""
    listed: int
    """Its length in meta. Where the rows are others, that is a fault of its own, and a video that
    fits either has none."""
    start: float
    """When it starts on the file's clock, in seconds."""
    end: float | None
    """When it ends there; None for the next one's start, or the end of the file."""
    rows_start: float
    """The timestamp of its first row, in seconds; 0 where it isn't known."""

    def missing_of(self, count: int) -> int:
        """How many frames it lacks where it has so many; below 0 where some are left."""
        return 0 if count == self.listed else self.rows - count


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a part is among the file's frames."""

    part: Part
    first: int
    """Its first frame."""
    end: int
    """The frame after its last, by its end's time; at most the number of frames."""
    off: float
    """How far its first frame is from its start, in seconds."""
    wanted_end: int
    """The frame after its last, if the file went on; more than ``end`` past the file's end."""

    @property
    def count(self) -> int:
        """The frames that it has."""
        return self.end - self.first

    @property
    def is_on_frame(self) -> bool:
        """True where a frame is at its start."""
        return abs(self.off) <= TOLERANCE


def place_parts(parts: list[Part], seconds: NDArray[np.float64], fps: float) -> list[Placed]:
    """Find the parts' frames by time, in the order of their starts."""
    half = 0.5 / fps
    parts = sorted(parts, key=lambda part: part.start)
    placed = []
    for number, part in enumerate(parts):
        first = int(np.searchsorted(seconds, part.start - half))
        until = part.end
        if until is None and number + 1 < len(parts):
            until = parts[number + 1].start
        end = len(seconds) if until is None else int(np.searchsorted(seconds, until - half))
        wanted = end if until is None else first + _rounded((until - part.start) * fps)
        off = float(seconds[min(first, len(seconds) - 1)] - part.start)
        placed.append(Placed(part, first, max(first, end), off, wanted))
    return placed


def _rounded(frames: float) -> int:
    return round(min(max(frames, -FAR), FAR))  # meta may say what overflows to infinity


def unused_runs(placed: list[Placed], num_frames: int) -> list[tuple[int, int]]:
    """The first and last frame of each run that is no part's."""
    runs, reached = [], 0
    for one in placed:
        if one.first > reached:
            runs.append((reached, one.first - 1))
        reached = max(reached, one.end)
    if reached < num_frames:
        runs.append((reached, num_frames - 1))
    return runs
