"""Whole files with damage anywhere: right frames or typed errors, in bounded time and memory.

A frame counts as right where FFmpeg's decode of the same damaged bytes shows this picture at its
time. FFmpeg conceals damage, and what it shows then depends on where decoding started, so that a
picture which the oracle doesn't have may still be the one that was encoded: it is compared with
the frame of the whole file too.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reelseek
from reelseek.errors import VideoError
from tests import corpus, oracle
from tests.oracle import Picture

IN_CI = bool(os.environ.get("CI"))
SECONDS, MEGABYTES = 10.0, 500
CLIPS = ("av1_g20.mp4", "av1.webm", "b_frames.mp4", "hevc_open_gop.mp4", "vp9.webm", "matroska.mkv",
         "faststart.mp4", "av1_faststart.mp4")  # fmt: skip

PLACE = st.floats(0, 1, exclude_max=True)
NOISE = st.binary(min_size=1, max_size=40)


def _flip(data: bytes, place: float, noise: bytes) -> bytes:
    start = int(place * len(data))
    return data[:start] + noise + data[start + len(noise) :]


def _cut(data: bytes, place: float, _noise: bytes) -> bytes:
    return data[: int(place * len(data)) + 1]


def _remove(data: bytes, place: float, noise: bytes) -> bytes:
    start = int(place * len(data))
    return data[:start] + data[start + len(noise) :]


def _repeat(data: bytes, place: float, noise: bytes) -> bytes:
    start = int(place * len(data))
    return data[: start + 64 * len(noise)] + data[start:]


def _flip_in_tables(data: bytes, place: float, noise: bytes) -> bytes:
    """Damage in moov, or in a Matroska file's head."""
    start, size = max(data.find(b"moov"), 0), 3000
    at = start + int(place * min(size, len(data) - start))
    return data[:at] + noise[:4] + data[at + len(noise[:4]) :]


UNALARMED = frozenset({"hevc_open_gop.mp4"})
"""FFmpeg's HEVC decoder doesn't notice where damage ends a slice early: the rest of the picture
stays as its buffer was, which no reader can tell, and two decodes of the file differ in it."""

MUTATIONS: tuple[Callable[[bytes, float, bytes], bytes], ...] = (
    _flip, _cut, _remove, _repeat, _flip_in_tables,
)  # fmt: skip


def _check(clip: str, mutations: list[tuple[int, float, bytes]]) -> None:
    data = corpus.clip_path(clip).read_bytes()
    for number, place, noise in mutations:
        data = MUTATIONS[number](data, place, noise)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"mutated{Path(clip).suffix}"
        path.write_bytes(data)
        started, before = time.process_time(), _resident_megabytes()
        shown = _read_some(path)
        assert time.process_time() - started < SECONDS
        assert _resident_megabytes() < before + MEGABYTES
        if shown and clip not in UNALARMED:
            _assert_right(path, clip, shown)


def _read_some(path: Path) -> dict[int, tuple[int, Picture]]:
    """Frame number -> its timestamp and picture, of the frames that could be read."""
    shown: dict[int, tuple[int, Picture]] = {}
    try:
        video = reelseek.open_video(path, backend="indexed")
    except VideoError:
        return shown
    with video:
        for frame in np.random.default_rng(len(video)).permutation(len(video))[:24].tolist():
            try:
                picture = video[frame].numpy()
            except VideoError as error:
                assert error.remedy
                continue
            shown[frame] = int(video.table.pts[frame]), picture
    return shown


def _assert_right(path: Path, clip: str, shown: dict[int, tuple[int, Picture]]) -> None:
    try:
        damaged = oracle.decode(str(path))
    except av.error.FFmpegError:
        return  # a damaged header gives the oracle colours that it can't convert
    whole = oracle.clip(clip)
    for frame, (pts, picture) in shown.items():
        candidates = (damaged.at(frame, pts), whole.at(frame, pts))
        found = [one for one in candidates if one is not None]
        assert any(np.array_equal(picture, one) for one in found), f"frame {frame} at {pts}"


def _resident_megabytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


DRAWN = {
    "clip": st.sampled_from(CLIPS),
    "mutations": st.lists(
        st.tuples(st.integers(0, len(MUTATIONS) - 1), PLACE, NOISE), min_size=1, max_size=3
    ),
}
SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=40, deadline=None, derandomize=IN_CI, suppress_health_check=SLOW_DRAWS)
@given(**DRAWN)
def test_damaged_file_gives_right_frames_or_errors(
    clip: str, mutations: list[tuple[int, float, bytes]]
) -> None:
    _check(clip, mutations)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=IN_CI, suppress_health_check=SLOW_DRAWS)
@given(**DRAWN)
def test_many_damaged_files_give_right_frames_or_errors(
    clip: str, mutations: list[tuple[int, float, bytes]]
) -> None:
    _check(clip, mutations)


def test_frame_that_a_decoder_drops_for_want_of_tiles_is_not_referred_to() -> None:
    # A damaged header makes a hidden frame one of several tiles; dav1d drops it without a word.
    data = corpus.clip_path("av1_faststart.mp4").read_bytes()
    _check("av1_faststart.mp4", [(0, (2194 + 0.5) / len(data), b"\4\0\0\0\0")])


def test_no_thread_is_left_behind_by_damaged_files() -> None:
    before = threading.active_count()
    _check("av1_g20.mp4", [(0, 0.5, b"\xff" * 40)])
    assert threading.active_count() == before
