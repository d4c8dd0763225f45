"""AV1 streams that are read as one say what each says alone."""

from __future__ import annotations

import functools
import time

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reelseek.bitstream._av1_batch import Av1Frames, read_frames
from reelseek.bitstream._bit_columns import PADDING_BYTES
from tests.bitstream.streams import cut_and_damaged, joined
from tests.corpus import clip_path

DELIMITER, PADDING_OBU = b"\x12\0", 15 << 3 | 2


@functools.cache
def packets_of(clip: str) -> tuple[bytes, ...]:
    with av.open(str(clip_path(clip))) as container:
        return tuple(bytes(packet) for packet in container.demux(video=0) if packet.size)


def at_once(*streams: list[bytes]) -> Av1Frames | None:
    return read_frames(*joined(*streams))


def without_sequence_header(packet: bytes) -> bytes:
    """The packet with padding in the place of its sequence header."""
    at = packet.index(b"\x0a")
    return packet[:at] + bytes([PADDING_OBU]) + packet[at + 1 :]


@pytest.mark.parametrize("clip", ["av1_g2.mp4", "av1_g20.mp4", "av1_libaom.mp4"])
def test_streams_are_told_apart_again(clip: str) -> None:
    stream = list(packets_of(clip))
    alone, together = at_once(stream), at_once(stream, stream[:20], stream)
    assert alone is not None and together is not None
    for first, stop in ((0, len(stream)), (len(stream) + 20, 2 * len(stream) + 20)):
        part = together.of_packets(first, stop)
        for name in ("packet", "reads", "writes", "is_shown", "is_entry"):
            assert np.array_equal(getattr(part, name), getattr(alone, name)), name
        assert np.array_equal(np.diff(part.start), np.diff(alone.start))
        assert np.array_equal(part.end - part.start, alone.end - alone.start)


def test_stream_without_a_sequence_header_does_not_take_another_streams() -> None:
    stream = list(packets_of("av1_g20.mp4")[:10])
    bare = [without_sequence_header(stream[0]), *stream[1:]]
    assert at_once(stream, stream) is not None
    assert at_once(bare) is None
    assert at_once(stream, bare) is None
    assert at_once(bare, stream) is None


def test_header_without_bytes_is_not_read_from_what_follows_it() -> None:
    key = packets_of("av1_g20.mp4")[0]
    empty = DELIMITER + bytes([3 << 3 | 2, 0])  # a frame header OBU of size 0
    data = np.frombuffer(key + empty + b"\x90" * PADDING_BYTES, np.uint8)
    start = np.array([0, len(key)], np.int64)
    assert read_frames(data, start, np.array([len(key), len(key) + 4], np.int64)) is None


def test_long_sequence_headers_take_no_more_time_than_their_bytes() -> None:
    long = DELIMITER + b"\x0a\xa0\x1f" + bytes(4000)
    started = time.process_time()
    assert at_once([long] * 500) is None
    assert time.process_time() - started < 2


@settings(max_examples=200)
@given(data=st.data())
def test_damage_in_one_stream_changes_no_other(data: st.DataObject) -> None:
    packets = packets_of(data.draw(st.sampled_from(["av1_g2.mp4", "av1_g20.mp4"])))
    streams = data.draw(cut_and_damaged(packets))
    together = at_once(*streams)
    if together is None:
        return
    first = 0
    for stream in streams:
        part, alone = together.of_packets(first, first + len(stream)), at_once(stream)
        first += len(stream)
        assert alone is not None
        assert part.reads.tolist() == alone.reads.tolist()
        assert part.writes.tolist() == alone.writes.tolist()
        assert part.is_shown.tolist() == alone.is_shown.tolist()
        assert part.is_entry.tolist() == alone.is_entry.tolist()
        assert part.sequence_bytes == alone.sequence_bytes
