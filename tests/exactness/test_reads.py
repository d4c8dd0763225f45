"""Any sequence of reads: codec contexts are shared between files, and must not remember."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reelseek
from reelseek.errors import VideoError
from tests import corpus, oracle
from tests.patience import PATIENCE

IN_CI = bool(os.environ.get("CI"))
GROUPS = (
    # Files of one group are decoded by one context, for their configurations are equal.
    ("av1_g2.mp4", "av1_g20.mp4", "av1_default.mp4", "noise_in_av1.mp4"),
    ("b_frames.mp4", "starts_late.mp4", "faststart.mp4", "noise_in_media.mp4"),
    ("hevc_open_gop.mp4", "hevc_trimmed.mp4", "hevc.mp4", "noise_in_hevc.mp4"),
    ("vp9.webm", "vp9.mp4", "vp9_trimmed.mp4", "av1_libaom.mp4"),
)

RUN = st.builds(
    lambda start, count, step: [[start + step * number] for number in range(count)],
    st.integers(0, 90), st.integers(2, 12), st.sampled_from([1, 1, 2, 5, 9]),
)  # fmt: skip
JUMPS = st.lists(st.integers(0, 119), min_size=1, max_size=4).map(lambda frames: [frames])
WINDOWS = st.builds(
    lambda start, count: [[start + 4 * number, start + 4 * number + 3] for number in range(count)],
    st.integers(0, 90), st.integers(2, 8),
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.one_of(RUN, WINDOWS, JUMPS)), min_size=2, max_size=8
)


def _read(video: reelseek.Video, clip: str, frames: Sequence[int]) -> None:
    """Read some frames; each is right, or, in a damaged file, refused."""
    wanted = [frame for frame in frames if frame < len(video)]
    if not wanted:
        return
    displayed = oracle.clip(clip)
    try:
        pictures = video.get_frames_at(wanted).numpy()
    except VideoError:
        assert not corpus.BY_NAME[clip].whole
        return
    for frame, picture in zip(wanted, pictures, strict=True):
        expected = displayed.at(frame, int(video.table.pts[frame]))
        assert expected is not None
        assert np.array_equal(picture, expected), f"{clip}: frame {frame} differs"


def _do(videos: Sequence[reelseek.Video], clips: Sequence[str], steps: Any) -> None:
    for number, reads in steps:
        for frames in reads:
            _read(videos[number], clips[number], frames)


@contextlib.contextmanager
def _opened(clips: Sequence[str], threads: int) -> Any:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                reelseek.open_video(corpus.clip_path(clip), backend="indexed", threads=threads)
            )
            for clip in clips
        ]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("clips", GROUPS, ids=lambda clips: clips[0])
@settings(max_examples=40, deadline=None, derandomize=IN_CI)
@given(steps=STEPS)
def test_reads_of_several_files_in_turn_are_exact(
    clips: Sequence[str], threads: int, steps: Any
) -> None:
    with _opened(clips, threads) as videos:
        _do(videos, clips, steps)


@pytest.mark.parametrize("clips", GROUPS, ids=lambda clips: clips[0])
@settings(max_examples=5, deadline=None, derandomize=IN_CI)
@given(plans=st.lists(STEPS, min_size=3, max_size=3))
def test_reads_in_several_threads_are_exact(clips: Sequence[str], plans: Any) -> None:
    with _opened(clips, 1) as videos, ThreadPoolExecutor(len(plans)) as pool:
        for done in [pool.submit(_do, videos, clips, steps) for steps in plans]:
            done.result()


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("clips", GROUPS, ids=lambda clips: clips[0])
@settings(max_examples=2, deadline=None, derandomize=IN_CI)
@given(before=STEPS, after=STEPS)
def test_reads_before_and_after_a_fork_are_exact(
    clips: Sequence[str], threads: int, before: Any, after: Any
) -> None:
    with _opened(clips, threads) as videos:
        _do(videos, clips, before)
        child = multiprocessing.get_context("fork").Process(
            target=_do, args=(videos, clips, [*after, *before])
        )
        child.start()
        _do(videos, clips, after)
        child.join(PATIENCE)
        is_done = child.exitcode is not None
        child.kill()
        assert is_done, "the child hangs"
        assert child.exitcode == 0


@pytest.mark.parametrize(("bad", "good"), [
    ("noise_in_av1.mp4", "av1_g20.mp4"), ("noise_in_media.mp4", "faststart.mp4"),
    ("noise_in_hevc.mp4", "hevc.mp4"), ("zeroed_tail.mp4", "faststart.mp4"),
])  # fmt: skip
@pytest.mark.parametrize("threads", [1, 2])
def test_good_file_is_exact_after_every_error_in_a_damaged_one(
    bad: str, good: str, threads: int
) -> None:
    with _opened((bad, good), threads) as (damaged, whole):
        failed = 0
        for frame in range(0, len(damaged), 2):
            try:
                damaged.get_frames_at([frame])
            except VideoError:
                failed += 1
            _read(whole, good, [(frame * 7) % 120])
            _read(whole, good, [(frame * 7 + 1) % 120])
        assert failed
