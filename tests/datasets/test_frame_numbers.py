"""Frame numbers found at a glance are those that the thorough look finds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reelseek.datasets._frames import FrameRequest, KnownFrames, frame_numbers, numbers_at_a_glance
from reelseek.datasets._records import VideoSpan
from reelseek.errors import DatasetError
from reelseek.video import Video

TOLERANCE = 1e-4
FPS = 30.0


class Clock:
    """A video that has times and nothing else."""

    def __init__(self, pts_seconds: NDArray[np.float64]) -> None:
        self.path = "clock"
        self.pts_seconds = pts_seconds
        self.has_unique_pts = bool(np.all(np.diff(pts_seconds) > 0))
        self.table = SimpleNamespace(
            seconds_at=lambda frames: pts_seconds[frames].tolist(),
            has_unique_pts=self.has_unique_pts,
        )

    def __len__(self) -> int:
        return len(self.pts_seconds)

    def _clock(self) -> NDArray[np.float64]:
        return self.pts_seconds

    def indices_nearest(self, seconds: Any) -> NDArray[np.int64]:
        return Video.indices_nearest(cast(Any, self), seconds)


JITTERS = st.sampled_from([0.0, 5e-5, 9.9e-5, 1.01e-4, 2e-4, 0.01])


@st.composite
def requests(draw: st.DrawFn) -> tuple[Any, FrameRequest]:
    """An episode of a file, alone in it or among others, on a grid or nearly so."""
    before, length, after = (draw(st.integers(low, 6)) for low in (0, 1, 0))
    count = before + length + after + draw(st.integers(-1, 1))
    jitter = np.array(draw(st.lists(JITTERS, min_size=max(count, 1), max_size=max(count, 1))))
    pts = np.arange(len(jitter)) / FPS + jitter
    off = draw(JITTERS)
    is_whole = draw(st.booleans())
    start = 0.0 if is_whole else before / FPS + off
    end = None if draw(st.booleans()) else (before + length) / FPS + draw(JITTERS)
    if is_whole and draw(st.booleans()):
        end = None
    times = (np.arange(length) / FPS + draw(st.sampled_from([0.0, 1 / FPS]))).astype(
        draw(st.sampled_from([np.float32, np.float64]))
    )
    rows = np.array(draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=4)))
    span = VideoSpan(Path("clock"), start, end, is_whole)
    return Clock(pts), FrameRequest(span, 0, length, rows, times, FPS)


@settings(deadline=None, max_examples=400)
@given(requests())
def test_what_is_seen_at_a_glance_is_what_a_thorough_look_finds(drawn: Any) -> None:
    video, request = drawn
    seen = numbers_at_a_glance(video, request, TOLERANCE)
    if seen is not None:
        assert seen.tolist() == frame_numbers(video, request, TOLERANCE, "top").tolist()


@settings(deadline=None)
@given(requests())
def test_the_first_look_and_the_next_find_the_same(drawn: Any) -> None:
    video, request = drawn
    known = KnownFrames(TOLERANCE)
    found = []
    for _ in range(3):
        try:
            found.append(known.numbers(video, request, "top").tolist())
        except DatasetError as exc:
            found.append(type(exc))
    assert found[0] == found[1] == found[2]


def test_episodes_on_the_grid_are_seen_at_a_glance() -> None:
    video: Any = Clock(np.arange(20) / FPS)
    rows = np.array([0, 3])
    span = VideoSpan(Path("clock"), 5 / FPS, 10 / FPS, is_whole_file=False)
    request = FrameRequest(span, 1, 5, rows, np.arange(5) / FPS, FPS)
    seen = numbers_at_a_glance(video, request, TOLERANCE)
    assert seen is not None
    assert seen.tolist() == [5, 8]
