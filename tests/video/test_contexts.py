"""Codec contexts: whose turn it is, and who goes on from where it stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.errors import VideoError
from reelseek.index import index_tables
from reelseek.index._units import UnitTable
from reelseek.video.backends import _contexts
from reelseek.video.backends._contexts import (
    KEPT_PER_CONFIGURATION,
    KEPT_PER_THREAD,
    CodecState,
    borrow,
    drop,
    release,
)
from tests import corpus, oracle, surgery
from tests.structures import SVT

AV1 = ("av1", b"")


@pytest.fixture(autouse=True)
def _no_contexts() -> Iterator[None]:
    _contexts._kept.forget()
    yield
    _contexts._kept.forget()


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The units that were fed, in order."""
    units: list[int] = []
    feed = CodecState.feed

    def counted(state: CodecState, unit: int, data: bytes) -> object:
        units.append(unit)
        return feed(state, unit, data)

    monkeypatch.setattr(CodecState, "feed", counted)
    return units


@pytest.mark.parametrize("clip", ["vp9.mp4", "av1_g20.mp4", "b_frames.mp4", "hevc.mp4"])
def test_files_read_in_turn_each_go_on_from_where_they_stopped(
    clip: str, fed: list[int], tmp_path: Path
) -> None:
    path = corpus.clip_path(clip)
    right = oracle.clip(clip)
    count = 20
    with ExitStack() as stack:
        videos = []
        for number in range(3):
            copy = tmp_path / f"{number}.mp4"
            copy.write_bytes(path.read_bytes())
            videos.append(stack.enter_context(reelseek.open_video(copy, backend="indexed")))
        for frame in range(count):
            for video in videos:
                assert np.array_equal(video[frame].numpy(), right.frames[frame])
    # Each once, two more at the start until the turn is noticed, and what decoders hold back.
    assert len(fed) <= 3 * (count + 3 + 20)


@pytest.mark.parametrize("step", [1, 2, 7])
@pytest.mark.parametrize(
    "clip", ["one_gop.mp4", "b_pyramid_8.mp4", "no_reorder_limit.mp4", "hevc_open_gop.mp4"]
)
def test_file_read_in_order_is_decoded_once(clip: str, step: int, fed: list[int]) -> None:
    right = oracle.clip(clip)
    frames = range(0, len(right.frames), step)
    with reelseek.open_video(corpus.clip_path(clip), backend="indexed") as video:
        for frame in frames:
            assert np.array_equal(video[frame].numpy(), right.frames[frame])
    # That it goes on like this isn't known at first, nor what comes before the next key frame.
    assert len(fed) <= 1.5 * len(right.frames)


def test_damage_further_on_refuses_no_frame_that_is_read_in_order() -> None:
    path = corpus.clip_path("noise_in_hevc.mp4")
    with reelseek.open_video(path, backend="indexed") as video:
        in_order = [_is_read(video, frame) for frame in range(0, len(video), 3)]
    for number, is_read in enumerate(in_order):
        with reelseek.open_video(path, backend="indexed") as video:
            assert _is_read(video, 3 * number) == is_read
    assert 0 < sum(in_order) < len(in_order)


def _is_read(video: reelseek.Video, frame: int) -> bool:
    try:
        video[frame]
    except VideoError:
        return False
    return True


def test_random_reads_of_files_with_b_frames_share_a_context(tmp_path: Path) -> None:
    with ExitStack() as stack:
        for number in range(3):
            copy = tmp_path / f"{number}.mp4"
            copy.write_bytes(corpus.clip_path("b_frames.mp4").read_bytes())
            video = stack.enter_context(reelseek.open_video(copy, backend="indexed"))
            video.get_frames_at([7, 3])
            assert len(_contexts._kept.states) == 1


@pytest.mark.parametrize(("clip", "frames", "most"), [
    ("hevc_short_gop.mp4", range(0, 120, 12), 20),  # as many key frames, and the second frame
    ("no_reorder_limit.mp4", range(0, 120, 36), 80),
])  # fmt: skip
def test_reads_that_leap_ahead_cost_what_reads_alone_cost(
    clip: str, frames: Sequence[int], most: int, fed: list[int]
) -> None:
    with reelseek.open_video(corpus.clip_path(clip), backend="indexed") as video:
        for frame in (0, 1, *frames[1:]):
            video[frame]
    assert len(fed) <= most


@pytest.mark.parametrize("count", [4, 16])
@pytest.mark.parametrize("clip", ["hevc_short_gop.mp4", "b_frames.mp4", "b_pyramid_8.mp4"])
def test_batches_in_order_are_decoded_once(clip: str, count: int, fed: list[int]) -> None:
    right = oracle.clip(clip)
    with reelseek.open_video(corpus.clip_path(clip), backend="indexed") as video:
        for start in range(0, len(video), count):
            stop = min(start + count, len(video))
            pictures = video.get_frames_in_range(start, stop).numpy()
            assert np.array_equal(pictures, right.frames[start:stop])
    assert len(fed) <= 1.1 * len(right.frames) + count


def test_damage_behind_refuses_no_frame_of_a_batch(tmp_path: Path) -> None:
    clip = corpus.clip_path("no_reorder_limit.mp4")
    right = oracle.clip(clip.name).frames
    units = index_tables(str(clip)).units
    assert isinstance(units, UnitTable)
    data = bytearray(clip.read_bytes())
    data[units.offset[units.of_frame[25]] + 13] ^= 0x08
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)
    with reelseek.open_video(path, backend="indexed") as video:
        assert not _is_read(video, 25)
        # Nothing refers to frame 25: it is fed only where the file is read in order.
        for frames in ([22], [23], [24], [28, 33]):
            for frame, picture in zip(frames, video.get_frames_at(frames).numpy(), strict=True):
                assert np.array_equal(picture, right[frame])


def test_random_reads_of_pruned_files_share_a_context() -> None:
    first = borrow(*AV1, object(), keeps_place=False)
    assert borrow(*AV1, object(), keeps_place=False) is first


def test_holder_gets_its_context_back() -> None:
    one, other = object(), object()
    state = borrow(*AV1, one, keeps_place=True)
    state.reset(one)
    assert borrow(*AV1, other, keeps_place=True) is not state
    assert borrow(*AV1, one, keeps_place=True) is state


def test_contexts_are_bounded() -> None:
    holders = [object() for _ in range(3 * KEPT_PER_CONFIGURATION)]
    for holder in holders:
        borrow(*AV1, holder, keeps_place=True).reset(holder)
    assert len(_contexts._kept.states) == KEPT_PER_CONFIGURATION
    for number in range(3 * KEPT_PER_THREAD):
        borrow("vp9", bytes([number]), object(), keeps_place=True)
    assert len(_contexts._kept.states) == KEPT_PER_THREAD


def test_child_process_forgets_the_parents_contexts() -> None:
    holder = object()
    state = borrow(*AV1, holder, keeps_place=True)
    state.reset(holder)
    child = os.fork()
    if child == 0:
        drop(state)
        release(holder)
        os._exit(int(state.holder is not holder or bool(_contexts._kept.states)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert _contexts._kept.states == [state]


def test_sequence_header_goes_before_the_first_unit_only(monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(corpus.clip_path("av1_g20.mp4"))
    units = index_tables(path).units
    assert isinstance(units, UnitTable)
    fed: list[bytes] = []
    started = CodecState.__init__

    def start(state: Any, codec: str, configuration: bytes) -> None:
        started(state, codec, configuration)
        packet = state._packet

        def listed(data: bytes) -> Any:
            fed.append(data)
            return packet(data)

        state._packet = listed

    monkeypatch.setattr(CodecState, "__init__", start)
    with reelseek.open_video(path, backend="indexed") as video:
        for frame in (0, 1, 2, 50):
            video[frame]
    head = _contexts.TEMPORAL_DELIMITER + units.configuration
    assert all(data.startswith(_contexts.TEMPORAL_DELIMITER) for data in fed)
    starts = [number for number, data in enumerate(fed) if data.startswith(head)]
    assert len(starts) == 2  # at the beginning, and after the leap to another group of pictures
    assert starts[0] == 0


def test_dropped_context_is_not_lent_again() -> None:
    holder = object()
    state = borrow(*AV1, holder, keeps_place=True)
    drop(state)
    assert borrow(*AV1, holder, keeps_place=True) is not state


SETS = {
    "h264": (b"avcC", b"avc1", "libx264", "x264-params", "keyint=10:chroma-qp-offset={}"),
    "hevc": (b"hvcC", b"hev1", "libx265", "x265-params",
             "keyint=10:min-keyint=10:open-gop=0:cbqpoffs={0}:crqpoffs={0}:log-level=none"),
}  # fmt: skip


@pytest.mark.parametrize("codec", sorted(SETS))
def test_sets_of_another_file_with_the_same_record_are_not_in_force(
    codec: str, tmp_path: Path
) -> None:
    record, entry, encoder, option, parameters = SETS[codec]

    def made(name: str, offset: int, more: str = "") -> Path:
        path = tmp_path / name
        settings = parameters.format(offset) + more
        corpus.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=128x96:r=30:d=1", "-c:v", encoder,
                      f"-{option}", settings, "-tag:v", entry.decode(), path)  # fmt: skip
        return path

    plain, other = made("plain.mp4", 0), made("other.mp4", -12, ":repeat-headers=1")
    other.write_bytes(surgery.with_record_of(plain.read_bytes(), other.read_bytes(), record, entry))
    for path in (plain, other, plain, other):
        right = oracle.decode(str(path))
        with reelseek.open_video(path, backend="indexed") as video:
            for frame in (5, 15, 25):
                assert np.array_equal(video[frame].numpy(), right.frames[frame])


def test_colours_of_another_av1_file_are_not_taken_over(tmp_path: Path) -> None:
    paths = []
    for name, colours in (("said.mp4", "-colorspace bt709"), ("unsaid.mp4", "")):
        paths.append(tmp_path / name)
        corpus.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=128x96:r=30:d=0.4", "-pix_fmt", "yuv420p",
                      *f"{SVT} -g 12 {colours}".split(), paths[-1])  # fmt: skip
    for path in (*paths, *paths):
        right = oracle.decode(str(path))
        with reelseek.open_video(path, backend="indexed") as video:
            assert np.array_equal(video[6].numpy(), right.frames[6])


def test_closed_video_leaves_nothing_in_the_contexts() -> None:
    with reelseek.open_video(corpus.clip_path("b_frames.mp4"), backend="indexed") as video:
        for frame in range(4):
            assert video[frame].index == frame
        (state,) = _contexts._kept.states
        assert state.holder is not None
    assert state.holder is None
    assert state.early == []


def test_damage_that_was_passed_over_refuses_no_later_group_of_pictures() -> None:
    clip = "hevc_closed_gop.mp4"
    with reelseek.open_video(corpus.clip_path(clip), backend="indexed") as video:
        for frame in range(4):
            assert video[frame].index == frame
        (state,) = _contexts._kept.states
        state.damaged.add(state.place)
        assert np.array_equal(video[45].numpy(), oracle.clip(clip).frames[45])
