"""Changing streams bit by bit, for clips that no encoder at hand makes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import av

from reelseek.bitstream import nal_format_of
from reelseek.bitstream._av1_headers import SequenceHeader, read_sequence_header
from reelseek.bitstream._bits import nal_bits
from reelseek.bitstream._h264 import HIGH_PROFILES, _read_high_profile_fields
from reelseek.bitstream._obu import ObuType, iter_obus

Packet = tuple[bytes, int, int, bool]
"""Data, pts, dts, and whether it is marked as a key frame."""
UPRIGHT = b"\0\1\0\0" + bytes(12) + b"\0\1\0\0" + bytes(12) + b"\x40\0\0\0"
TURNED = b"\xff\xff\0\0" + bytes(12) + b"\xff\xff\0\0" + bytes(12) + b"\x40\0\0\0"


def with_turned_movie(data: bytes) -> bytes:
    """Turn the movie by 180 degrees, by the first matrix in the file, which is mvhd's."""
    return data.replace(UPRIGHT, TURNED, 1)


def with_crooked_track(data: bytes) -> bytes:
    """Turn the track by 45 degrees, by the second matrix in the file, which is tkhd's."""
    part = (46341).to_bytes(4, "big")
    crooked = (
        part + part + bytes(4) + (-46341).to_bytes(4, "big", signed=True) + part + UPRIGHT[20:]
    )
    first = data.index(UPRIGHT) + len(UPRIGHT)
    return data[:first] + data[first:].replace(UPRIGHT, crooked, 1)


def sets_in_the_next_key_frame(first: Path, second: Path, out: Path) -> None:
    """Join two H.264 files; the second one's parameter sets come once, before its first picture."""
    one, two = _packets(first), _packets(second)
    data, pts, dts, is_key = two[0]
    two[0] = (_parameter_sets(second) + data, pts, dts, is_key)
    _write(out, first, one, two)


def sets_in_the_last_picture(first: Path, second: Path, out: Path) -> None:
    """The same, behind the picture in the first one's last packet: a B-frame."""
    one, two = _packets(first), _packets(second)
    data, pts, dts, is_key = one[-1]
    one[-1] = (data + _parameter_sets(second), pts, dts, is_key)
    _write(out, first, one, two)


def with_forward_key(source: Path, out: Path) -> None:
    """Hide AV1's second key frame, and show it by a show_existing_frame header behind it."""
    packets = _packets(source)
    second = [number for number, packet in enumerate(packets) if packet[3]][1]
    data, pts, dts, is_key = packets[second]
    packets[second] = (_hidden_and_shown(data), pts, dts, is_key)
    _write(out, source, packets)


def without_vui(data: bytes) -> bytes:
    """Take the VUI from an MP4's only H.264 sequence parameter set, and pad it with zeros."""
    place = data.index(b"avcC") + 10
    size = int.from_bytes(data[place : place + 2], "big")
    sps = data[place + 2 : place + 2 + size]
    return data.replace(sps, _sps_without_vui(sps).ljust(size, b"\0"))


def _packets(path: Path) -> list[Packet]:
    with av.open(str(path)) as container:
        return [
            (bytes(packet), int(packet.pts or 0), int(packet.dts or 0), packet.is_keyframe)
            for packet in container.demux(video=0)
            if packet.size
        ]


def _parameter_sets(path: Path) -> bytes:
    with av.open(str(path)) as container:
        extradata = container.streams.video[0].codec_context.extradata
    sets = nal_format_of("h264", extradata).parameter_sets
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in sets)


def _write(out: Path, template: Path, *parts: Sequence[Packet]) -> None:
    """Put packets into a file with the template's configuration, part after part."""
    with av.open(str(template)) as source, av.open(str(out), "w") as target:
        given: Any = source.streams.video[0]
        stream: Any = target.add_stream_from_template(given, opaque=True)
        start = 0
        for part in parts:
            for data, pts, dts, is_key in part:
                packet: Any = av.Packet(data)
                packet.pts, packet.dts, packet.time_base = pts + start, dts + start, given.time_base
                packet.is_keyframe, packet.stream = is_key, stream
                target.mux(packet)
            times = sorted(pts for _data, pts, _dts, _is_key in part)
            start += times[-1] + times[1] - 2 * times[0]


def _sps_without_vui(sps: bytes) -> bytes:
    bits = nal_bits(sps, 1)
    profile = bits.take(8)
    bits.take(16)
    bits.exp_golomb()
    if profile in HIGH_PROFILES:
        _read_high_profile_fields(bits)
    bits.exp_golomb()
    if bits.exp_golomb() == 0:  # pic_order_cnt_type
        bits.exp_golomb()
    bits.exp_golomb()
    bits.take(1)
    bits.exp_golomb()
    bits.exp_golomb()
    bits.take(2)  # frame_mbs_only_flag, which is set, and direct_8x8_inference_flag
    if bits.take(1):
        for _ in range(4):
            bits.exp_golomb()
    payload = sps[1:].replace(b"\0\0\3", b"\0\0")
    used = len(payload) * 8 - bits._left
    return sps[:1] + _packed(_unpacked(payload)[:used] + "01")


def _hidden_and_shown(unit: bytes) -> bytes:
    """A temporal unit with one shown key frame -> with that frame hidden, and then shown."""
    obus = list(iter_obus(unit))
    before = b"".join(
        unit[start:end] for kind, start, _payload, end in obus if kind != ObuType.FRAME
    )
    headers = [unit[payload:end] for kind, _, payload, end in obus if kind == 1]
    frame = next(unit[payload:end] for kind, _, payload, end in obus if kind == ObuType.FRAME)
    shown = bytes([ObuType.FRAME_HEADER << 3 | 2, 1, 0b1000_1000])  # slot 0, a trailing bit
    expected = _decoded([unit])
    for hidden in _hidden(frame, read_sequence_header(headers[0])):
        made = before + _obu(ObuType.FRAME, hidden) + shown
        if _decoded([made]) == expected:
            return made
    raise RuntimeError("the frame's header ends nowhere")


def _hidden(frame: bytes, sequence: SequenceHeader) -> Iterator[bytes]:
    """A shown key frame as a hidden one, for each place where its header may end.

    Its header grows by showable_frame, error_resilient_mode and refresh_frame_flags; the tiles
    behind it start at a whole byte.
    """
    bits = _unpacked(frame)
    has_tools = bits[5] == "1"
    hint_end = 7 + has_tools + sequence.order_hint_bits
    start = "0000" + "11" + bits[4:hint_end] + "1" * 8
    for end, padding in itertools.product(range(4, 40), (8, 16)):
        middle = bits[hint_end : end * 8]
        header = (start + middle).ljust(end * 8 + padding, "0")[: end * 8 + padding]
        yield _packed(header) + frame[end:]


def _decoded(units: Iterable[bytes]) -> list[bytes]:
    context: Any = av.CodecContext.create("libdav1d", "r")
    context.thread_count = 1
    try:
        return [
            frame.to_ndarray().tobytes()
            for unit in units
            for frame in context.decode(av.Packet(b"\x12\0" + unit))
        ]
    except av.error.FFmpegError:
        return []


def _obu(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    length = b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([kind << 3 | 2]) + length + bytes([size]) + payload


def _unpacked(data: bytes) -> str:
    return f"{int.from_bytes(data, 'big'):0{len(data) * 8}b}"


def _packed(bits: str) -> bytes:
    bits = bits.ljust(-(-len(bits) // 8) * 8, "0")
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def with_record_of(donor: bytes, data: bytes, record: bytes, entry: bytes) -> bytes:
    """Put another file's configuration record into an MP4 whose moov stands last.

    Args:
        donor: The file that has the record.
        data: The file that gets it.
        record: The record's box, ``avcC`` or ``hvcC``.
        entry: The sample entry around it, such as ``avc1``.
    """
    start = data.index(record) - 4
    old = int.from_bytes(data[start : start + 4], "big")
    new = _box(donor, record)
    changed = bytearray(data[:start] + new + data[start + old :])
    for parent in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", entry):
        place = data.rindex(parent, 0, start) - 4
        size = int.from_bytes(data[place : place + 4], "big") + len(new) - old
        changed[place : place + 4] = size.to_bytes(4, "big")
    return bytes(changed)


def with_size_in_container(data: bytes, entry: bytes, width: int, height: int) -> bytes:
    """Write another picture size into an MP4's sample entry."""
    place = data.index(entry, data.index(b"stsd")) + 28
    size = width.to_bytes(2, "big") + height.to_bytes(2, "big")
    return data[:place] + size + data[place + 4 :]


def _box(data: bytes, kind: bytes) -> bytes:
    start = data.index(kind) - 4
    return data[start : start + int.from_bytes(data[start : start + 4], "big")]
