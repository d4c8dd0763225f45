"""Reading all pictures at once finds what reading them one by one finds, or leaves it to that."""

from __future__ import annotations

import functools
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reelseek.bitstream import iter_nal_heads, nal_format_of
from reelseek.bitstream._bit_columns import LONGEST_CODE, PADDING_BYTES, BitColumns
from reelseek.bitstream._bits import BitReader
from reelseek.bitstream._picture_batch import Pictures, read_pictures
from reelseek.index._demux import demux
from reelseek.index._packets import PacketLooks, packet_reader
from reelseek.index._unit_build import _look_at_h264, _look_at_hevc
from tests import corpus, structures
from tests.bitstream.streams import cut_and_damaged, joined

CLIPS = {
    clip.name: clip
    for clip in (*corpus.CLIPS, *structures.STRUCTURES)
    if clip.name.endswith(".mp4")
    and any(name in clip.name for name in ("264", "265", "hevc", "b_frames", "kvazaar", "joined"))
}
READ_AT_ONCE = {
    "b_frames.mp4", "hevc.mp4", "hevc_short_gop.mp4", "hevc_closed_gop.mp4", "hevc_open_gop.mp4",
    "x264_two_pyramid.mp4", "x264_four_pyramid.mp4", "x264_slices.mp4", "x264_weights.mp4",
    "x264_baseline.mp4", "x264_many_references.mp4", "x265_pyramid.mp4", "x265_no_pyramid.mp4",
    "x265_weights.mp4", "openh264.mp4",
}  # fmt: skip
"""Clips of the usual kind."""


def path_of(clip: str) -> Path:
    return corpus.made(CLIPS[clip], corpus.corpus_folder())


@functools.cache
def packets_of(clip: str) -> tuple[str, bytes, list[bytes], list[bool]]:
    """The codec, its configuration record, the packets and which are marked as key frames."""
    with av.open(str(path_of(clip))) as container:
        stream = container.streams.video[0]
        found = [packet for packet in container.demux(stream) if packet.size]
        context = stream.codec_context
        return (
            context.name,
            context.extradata or b"",
            [bytes(p) for p in found],
            [bool(p.is_keyframe) for p in found],
        )


def at_once(codec: str, configuration: bytes, *streams: list[bytes]) -> Pictures | None:
    data, start, end, first = joined(*streams)
    return read_pictures(codec, data, start, end, nal_format_of(codec, configuration), first)


def one_by_one(
    codec: str, configuration: bytes, packets: list[bytes], keys: list[bool]
) -> PacketLooks:
    looks, look = PacketLooks(), packet_reader(codec, configuration)
    for packet, is_key in zip(packets, keys, strict=True):
        looks.add(look(packet, is_key, looks.doubts))
    return looks


def same(found: Pictures, codec: str, configuration: bytes, looks: PacketLooks) -> bool:
    """True where both say the same of the packets."""
    order = looks.display_order()
    return (
        not looks.doubts
        and not looks.sets_change
        and looks.has_one_size
        and order is not None
        and np.array_equal(np.argsort(found.order), np.argsort(order))
        and all(looks.is_shown)
        and not any(looks.is_damaged)
    )


def droppable(codec: str, configuration: bytes, packets: list[bytes]) -> list[bool]:
    length_size = nal_format_of(codec, configuration).length_size
    look = _look_at_h264 if codec == "h264" else _look_at_hevc
    seen = [look(list(iter_nal_heads(packet, length_size))) for packet in packets]
    assert not any(picture.tells_others for picture in seen)
    return [picture.is_droppable and picture.layer == 0 for picture in seen]


@pytest.mark.parametrize("clip", sorted(CLIPS))
def test_pictures_read_at_once_are_those_read_one_by_one(clip: str) -> None:
    codec, configuration, packets, keys = packets_of(clip)
    found = at_once(codec, configuration, packets)
    assert found is not None or clip not in READ_AT_ONCE
    if found is None:
        return
    looks = one_by_one(codec, configuration, packets, keys)
    assert same(found, codec, configuration, looks)
    assert (found.is_start & np.array(keys)).tolist() == looks.entries().tolist()
    assert found.is_droppable.tolist() == droppable(codec, configuration, packets)


@pytest.mark.parametrize("clip", sorted(READ_AT_ONCE))
def test_picture_of_the_parameter_set_is_the_decoders(clip: str) -> None:
    codec, configuration, packets, _keys = packets_of(clip)
    found = at_once(codec, configuration, packets)
    assert found is not None
    info, _packets = demux(str(path_of(clip)))
    if found.picture is not None:
        picture = found.picture
        assert (picture.width, picture.height) == (info.width, info.height)
        assert (picture.pixel_format, picture.matrix) == (info.pixel_format, info.color_matrix)
    else:
        assert info.pixel_format not in ("yuv420p", "yuvj420p")


@settings(max_examples=300)
@given(data=st.data())
def test_damaged_packets_are_left_to_the_other_reader_or_read_as_it_does(
    data: st.DataObject,
) -> None:
    clip = data.draw(st.sampled_from(["b_frames.mp4", "hevc_open_gop.mp4", "x264_slices.mp4"]))
    codec, configuration, packets, keys = packets_of(clip)
    packets = packets[: data.draw(st.integers(1, 40))]
    for _ in range(data.draw(st.integers(0, 3))):
        number = data.draw(st.integers(0, len(packets) - 1))
        damaged = bytearray(packets[number])
        place = data.draw(st.integers(0, min(len(damaged), 48) - 1))
        damaged[place] = data.draw(st.one_of(st.sampled_from([0, 1, 3, 255]), st.integers(0, 255)))
        packets[number] = bytes(damaged[: data.draw(st.integers(1, len(damaged)))])
    found = at_once(codec, configuration, packets)
    if found is None:
        return
    looks = one_by_one(codec, configuration, packets, keys[: len(packets)])
    assert same(found, codec, configuration, looks)
    assert found.is_droppable.tolist() == droppable(codec, configuration, packets)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2**16)), min_size=1, max_size=12))
def test_numbers_of_many_headers_are_those_of_one(fields: list[tuple[bool, int]]) -> None:
    """An Exp-Golomb number (True) or 17 bits, one after the other, in three headers at once."""
    text = "".join(
        format(value + 1, "b").zfill(2 * (value + 1).bit_length() - 1) if is_coded
        else format(value, "017b")
        for is_coded, value in fields
    )  # fmt: skip
    header = int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8), "big")
    gap = b"\xff" * 3
    data = np.frombuffer(gap + header + gap + header + header + bytes(PADDING_BYTES), np.uint8)
    size = len(header)
    start = np.array([3, 6 + size, 6 + 2 * size], np.int64)
    many, one = BitColumns(data, start), BitReader(header)
    for is_coded, value in fields:
        values, is_long = many.exp_golomb() if is_coded else (many.take(17), np.zeros(3, np.bool_))
        assert (
            values.tolist() == [value] * 3 == [one.exp_golomb() if is_coded else one.take(17)] * 3
        )
        assert not is_long.any()
    assert many.num_read().tolist() == [len(text)] * 3


@given(st.lists(st.integers(0, 2**25 - 2), min_size=1, max_size=6), st.data())
def test_numbers_too_long_are_told_from_others(numbers: list[int], data: st.DataObject) -> None:
    """One Exp-Golomb number in each header, read in some of them."""
    codes = [format(value + 1, "b").zfill(2 * (value + 1).bit_length() - 1) for value in numbers]
    codes.append("0" * data.draw(st.integers(LONGEST_CODE + 1, 40)))
    packed = [int(code.ljust(64, "0"), 2).to_bytes(8, "big") for code in codes]
    start = np.arange(len(packed)) * 8
    where = np.array(data.draw(st.lists(st.booleans(), min_size=len(codes), max_size=len(codes))))
    joined = np.frombuffer(b"".join(packed) + bytes(PADDING_BYTES), np.uint8)
    for some in (None, where):
        bits = BitColumns(joined, start)
        values, is_long = bits.exp_golomb(some)
        read = np.ones(len(codes), np.bool_) if some is None else some
        assert (values[:-1][read[:-1]] == np.array(numbers)[read[:-1]]).all()
        assert not values[~read].any()
        assert is_long.tolist() == [False] * len(numbers) + [bool(read[-1])]
        lengths = [len(code) * took for code, took in zip(codes, read.tolist(), strict=True)]
        assert bits.num_read()[:-1].tolist() == lengths[:-1]


@settings(max_examples=200)
@given(data=st.data())
def test_streams_read_as_one_say_what_each_says_alone(data: st.DataObject) -> None:
    """Streams of one configuration, cut and damaged; what one of them is changes no other."""
    clip = data.draw(st.sampled_from(["b_frames.mp4", "hevc_open_gop.mp4", "x264_slices.mp4"]))
    codec, configuration, packets, _keys = packets_of(clip)
    streams = data.draw(cut_and_damaged(packets, [0, 0, 0, 1]))
    alone = [at_once(codec, configuration, stream) for stream in streams]
    together = at_once(codec, configuration, *streams)
    if together is None:
        return
    first = 0
    for stream, found in zip(streams, alone, strict=True):
        part = together.of_packets(first, first + len(stream))
        first += len(stream)
        assert found is not None
        assert np.array_equal(np.argsort(part.order), np.argsort(found.order))
        assert part.is_start.tolist() == found.is_start.tolist()
        assert part.is_droppable.tolist() == found.is_droppable.tolist()
        assert part.picture == found.picture
