"""How frames' times are off, by name."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from reelseek.care.verify._clocks import rate_fault, spacing_fault

TICK = 1 / 15360


def times(count: int, fps: float, tick: float = TICK) -> NDArray[np.float64]:
    """Times on a clock's ticks."""
    return np.round(np.arange(count) / fps / tick) * tick


@pytest.mark.parametrize(
    ("fps", "labelled", "code"),
    [
        (30000 / 1001, 30, "fps-ntsc"),
        (30, 30000 / 1001, "fps-ntsc"),
        (24000 / 1001, 24, "fps-ntsc"),
        (60000 / 1001, 60, "fps-ntsc"),
        (29.9, 30, "times-drift"),
        (30.2, 30, "times-drift"),
        (25, 30, "fps-wrong"),
        (15, 30, "fps-wrong"),
        (50, 25, "fps-wrong"),
    ],
)
def test_another_rate_has_a_name(fps: float, labelled: float, code: str) -> None:
    fault = rate_fault(times(300, fps), labelled, TICK)
    assert fault is not None and fault.code == code


@pytest.mark.parametrize("fps", [5, 10, 20, 24, 25, 29.97, 30, 50, 60])
@pytest.mark.parametrize("tick", [1 / 15360, 1 / 90000, 1 / 10240, 1 / 12800, 1 / 1_000_000])
def test_frames_on_the_grid_are_right(fps: float, tick: float) -> None:
    seconds = times(20_000, fps, tick)
    assert rate_fault(seconds, fps, tick) is None
    assert spacing_fault(seconds, fps, tick) is None


def test_milliseconds_are_coarse_and_no_other_rate() -> None:
    seconds = times(300, 30, 1e-3)
    assert rate_fault(seconds, 30, 1e-3) is None
    fault = spacing_fault(seconds, 30, 1e-3)
    assert fault is not None and fault.code == "times-coarse"


def test_rate_is_known_beside_dropped_frames() -> None:
    seconds = np.delete(times(300, 30000 / 1001), [40, 41, 100])
    fault = rate_fault(seconds, 30, TICK)
    assert fault is not None and fault.code == "fps-ntsc"


def test_dropped_frames_are_counted_and_placed() -> None:
    fault = spacing_fault(np.delete(times(100, 30), [40, 41, 70]), 30, TICK)
    assert fault is not None
    assert (fault.code, fault.num_dropped, fault.frames) == ("times-dropped-frames", 3, (39, 40))


def test_many_gaps_are_a_rate_that_varies() -> None:
    fault = spacing_fault(times(99, 30)[np.arange(99) % 3 > 0], 30, TICK)
    assert fault is not None and fault.code == "times-variable"


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_frames_have_no_rate(count: int) -> None:
    assert rate_fault(times(count, 7), 30, TICK) is None
