"""When the frames of a new video appear: each at i/fps, as LeRobot takes it, or as before."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reelseek.index import NO_PTS, FrameTable

GRID_SECONDS = 1e-4
"""A frame no further than this from i/fps counts as on it: LeRobot's own tolerance."""
KEPT = "their times are kept, and --restamp puts frame i at i/fps"


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """Times of a video's frames."""

    time_base: Fraction
    """Seconds per tick."""
    pts: NDArray[np.int64]
    """(N,) when each frame appears, in ticks."""
    rate: Fraction
    """Frames a second, nominally."""
    note: str = ""
    """What is different from the source's times, or unusual in them; empty where nothing is."""

    def seconds(self) -> NDArray[np.float64]:
        """(N,) when each frame appears, in seconds."""
        return self.pts.astype(np.float64) * float(self.time_base)

    def span(self, start: int, length: int) -> tuple[float, float]:
        """When frame ``start`` appears, and when the frame after ``length`` of them does."""
        end = start + length
        if end < len(self.pts):
            last = int(self.pts[end])
        else:  # beyond the last frame, which is on display for as long as the one before it
            last = int(self.pts[-1]) + (end - len(self.pts) + 1) * self.step
        return float(self.pts[start] * self.time_base), float(last * self.time_base)

    @property
    def step(self) -> int:
        """Ticks from one frame to the next, nominally."""
        return max(1, round(1 / (self.rate * self.time_base)))


def clock_of(table: FrameTable, fps: float, *, restamp: bool = False) -> Clock:
    """The times of a new video with the frames of this one.

    Evenly spaced frames get i/fps exactly, from 0; others keep their times to the tick.

    Args:
        table: The source's frames.
        fps: What the dataset says.
        restamp: True where frame i is to appear at i/fps whatever its time was.
    """
    rate, average = Fraction(fps).limit_denominator(1001), table.stream.average_fps
    numbers = np.arange(len(table), dtype=np.int64)
    if not table.has_unique_pts:
        return Clock(1 / rate, numbers, rate, "its frames had no times of their own: now i/fps")
    seconds = (table.pts - table.pts[0]) * float(table.stream.time_base)
    furthest = float(np.abs(seconds - numbers / float(rate)).max())
    if furthest <= GRID_SECONDS:
        return Clock(1 / rate, numbers, rate, _start_note(table))
    if restamp:
        note = f"its frames were up to {furthest:.6f} s from i/{float(rate):g}: now there"
        return Clock(1 / rate, numbers, rate, note)
    if average and np.abs(seconds - numbers / float(average)).max() <= GRID_SECONDS:
        return Clock(1 / average, numbers, average, _rate_note(average, rate))
    assert table.pts[0] != NO_PTS
    note = f"its frames aren't {float(rate):g} a second throughout; {KEPT}"
    return Clock(table.stream.time_base, table.pts, average or rate, note)


def _rate_note(found: Fraction, said: Fraction) -> str:
    return f"it has {float(found):.8g} frames a second, and info.json says {float(said):g}; {KEPT}"


def _start_note(table: FrameTable) -> str:
    start = float(table.pts[0] * table.stream.time_base)
    return f"its first frame was at {start:.6f} s: now at 0" if abs(start) > GRID_SECONDS else ""
