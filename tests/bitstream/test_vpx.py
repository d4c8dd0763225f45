"""Which VP8 and VP9 packets show a frame."""

from __future__ import annotations

from collections.abc import Callable

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.bitstream import (
    vp8_is_key,
    vp8_shows_frame,
    vp8_size,
    vp9_is_key,
    vp9_shown_frames,
    vp9_shows_frame,
    vp9_size,
)
from tests import corpus, oracle


@given(st.binary(max_size=40))
def test_any_bytes_are_judged(data: bytes) -> None:
    assert vp8_shows_frame(data) in (True, False)
    assert vp9_shows_frame(data) in (True, False)
    assert vp8_is_key(data) in (True, False)
    assert vp9_is_key(data) in (True, False)
    assert len(vp8_size(data)) <= 4
    if vp9_is_key(data):
        assert len(vp9_size(data)) == 9


@pytest.mark.parametrize(
    ("clip", "shows", "hides"),
    [
        ("vp8.webm", vp8_shows_frame, True),
        ("vp9.webm", vp9_shows_frame, False),
        ("vp9.mp4", vp9_shows_frame, False),
    ],
)
def test_packets_that_show_a_frame_are_as_many_as_the_frames(
    clip: str, shows: Callable[[bytes], bool], hides: bool
) -> None:
    with av.open(str(corpus.clip_path(clip))) as container:
        packets = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    shown = sum(map(shows, packets))
    assert shown == len(oracle.clip(clip).frames)
    assert (len(packets) > shown) == hides


def test_vp9_size_is_the_same_in_every_key_frame_until_it_changes() -> None:
    with av.open(str(corpus.clip_path("two_sizes.webm"))) as container:
        packets = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    sizes = [vp9_size(packet) for packet in packets if vp9_is_key(packet)]
    assert len(set(sizes)) == 2
    assert sizes == sorted(sizes, reverse=True)  # 320 pixels wide, then 160


@pytest.mark.parametrize(
    ("clip", "is_key"),
    [("vp8.webm", vp8_is_key), ("vp9.webm", vp9_is_key), ("vp9.mp4", vp9_is_key)],
)
def test_key_frames_are_those_that_the_container_marks(
    clip: str, is_key: Callable[[bytes], bool]
) -> None:
    with av.open(str(corpus.clip_path(clip))) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    assert [is_key(bytes(packet)) for packet in packets] == [p.is_keyframe for p in packets]


def test_vp9_header_bits_say_whether_a_frame_is_shown() -> None:
    assert vp9_shows_frame(bytes([0b10_0_0_0_0_1_0, 0]))  # profile 0, show_frame
    assert not vp9_shows_frame(bytes([0b10_0_0_0_0_0_0, 0]))
    assert vp9_shows_frame(bytes([0b10_0_0_1_000, 0]))  # show_existing_frame
    assert vp9_shows_frame(bytes([0b10_1_1_0_0_0_1, 0]))  # profile 3, one bit later
    assert not vp9_shows_frame(bytes([0b10_1_1_0_0_1_0, 0]))
    assert not vp9_shows_frame(bytes([0b01_0_0_0_0_1_0, 0]))  # not a VP9 frame marker


HIDDEN, SHOWN = bytes([0b10_0_0_0_0_0_0, 7]), bytes([0b10_0_0_0_0_1_0, 7])


def _superframe(*frames: bytes) -> bytes:
    marker = bytes([0b110_00_000 | len(frames) - 1])
    return b"".join(frames) + marker + bytes(map(len, frames)) + marker


def test_superframe_shows_as_many_frames_as_are_marked_in_it() -> None:
    assert vp9_shown_frames(_superframe(HIDDEN, SHOWN)) == 1
    assert vp9_shown_frames(_superframe(SHOWN, SHOWN)) == 2  # spatial layers
    assert vp9_shown_frames(_superframe(HIDDEN, HIDDEN)) == 0


def test_frame_that_ends_like_a_superframe_is_none_without_its_index() -> None:
    assert vp9_shown_frames(HIDDEN + bytes([0b110_00_001])) == 0


@given(st.binary(max_size=60), st.integers(0, 31))
def test_any_superframe_index_gives_a_number_of_frames(data: bytes, marker: int) -> None:
    mark = bytes([0b110_00000 | marker])
    assert 0 <= vp9_shown_frames(mark + data + mark) <= 8
