"""Frames' times against a dataset's grid: which way they are off, by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-4
"""LeRobot's tolerance_s, in seconds."""
NTSC = 1001 / 1000
NTSC_WITHIN = 2e-4
"""Relative difference within which a rate counts as 1000/1001 of another."""
DRIFT_WITHIN = 0.01
"""Relative difference from which on a rate is another one rather than a drift."""
UNEVEN = 0.2
"""Share of a step by which steps of an even video may differ from whole ones."""

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClockFault:
    """How times are off."""

    code: str
    """A finding's code."""
    what: str
    """The fault with its values."""
    frames: tuple[int, int] | None = None
    """Where; None for all of them."""
    num_dropped: int = 0
    """Frames that are missing where times jump."""


def rate_fault(seconds: Seconds, fps: float, tick: float) -> ClockFault | None:
    """Whether a video runs at another rate than the dataset's.

    Args:
        seconds: The times of its frames, which increase.
        fps: The dataset's frames a second.
        tick: The length of the clock's tick in seconds.
    """
    steps = np.diff(seconds)
    if len(steps) < 2:
        return None
    usual = float(np.median(steps))
    whole = np.maximum(np.rint(steps / usual), 1)
    if np.any(np.abs(steps - whole * usual) > tick * (1 + whole) + UNEVEN * usual):
        return None  # no rate at all
    count = float(whole.sum())
    rate = count / float(seconds[-1] - seconds[0])
    if abs(count / rate - count / fps) <= TOLERANCE + tick:
        return None
    return _named(rate, fps)


def _named(rate: float, fps: float) -> ClockFault:
    ratio = rate / fps
    if min(abs(ratio * NTSC - 1), abs(ratio / NTSC - 1)) <= NTSC_WITHIN:
        return ClockFault("fps-ntsc", f"the video has {rate:.2f} frames a second, labelled {fps:g}")
    if abs(ratio - 1) < DRIFT_WITHIN:
        late = (1 / rate - 1 / fps) * 1000
        what = f"each frame is {late:+.3f} ms off, which adds up: {rate:.3f} frames a second, not "
        return ClockFault("times-drift", f"{what}{fps:g}")
    what = f"the video has {rate:.4g} frames a second, and info.json says {fps:g}"
    return ClockFault("fps-wrong", what)


def spacing_fault(seconds: Seconds, fps: float, tick: float) -> ClockFault | None:
    """Whether an episode's frames are unevenly spaced, as ``rate_fault`` has it."""
    if len(seconds) < 2:
        return None
    off = np.abs(seconds - seconds[0] - np.arange(len(seconds)) / fps)
    if off.max() <= TOLERANCE:
        return None
    if off.max() <= tick * 1.01:
        what = f"times are rounded to {tick * 1000:.3g} ms, and so up to {off.max() * 1000:.2g} ms "
        return ClockFault("times-coarse", f"{what}off")
    steps = np.diff(seconds) * fps
    whole = np.rint(steps)
    if np.all(whole >= 1) and np.all(np.abs(steps - whole) / fps <= TOLERANCE + tick * 1.01):
        return _dropped(whole)
    usual = 1 / fps
    worst = int(np.argmax(np.abs(np.diff(seconds) - usual)))
    least, most = np.diff(seconds).min() * 1000, np.diff(seconds).max() * 1000
    what = f"frames follow each other after {least:.3g} to {most:.3g} ms, not {usual * 1000:.4g}"
    return ClockFault("times-variable", what, (worst, worst + 1))


def _dropped(whole: Seconds) -> ClockFault:
    gaps = np.flatnonzero(whole > 1)
    missing = int(whole.sum()) - len(whole)
    first = int(gaps[0])
    where = f"after frame {first}" if len(gaps) == 1 else f"at {len(gaps)} places, first {first}"
    noun = "frame is" if missing == 1 else "frames are"
    return ClockFault(
        "times-dropped-frames", f"{missing} {noun} missing {where}", (first, first + 1), missing
    )
