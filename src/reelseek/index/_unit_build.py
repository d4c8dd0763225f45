"""Building the unit table from a frame table and the file's bytes, without FFmpeg."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reelseek._truths import is_any
from reelseek.bitstream import _h264, _hevc, iter_nal_heads, nal_format_of
from reelseek.bitstream._av1_batch import Av1Frames, read_frames
from reelseek.bitstream._picture_batch import Pictures
from reelseek.index._av1_units import Av1Units
from reelseek.index._places import PacketPlaces
from reelseek.index._table import FrameTable
from reelseek.index._units import Pruning, UnitFlag, UnitTable

FED_BY_FRAME = frozenset({"av1"})
"""Codecs whose frames are decoded one by one, of which a packet may have several."""
FED_BY_PACKET = frozenset({"h264", "hevc", "vp8", "vp9"})
"""Codecs that are decoded packet by packet."""
NONE: NDArray[np.int64] = np.empty(0, np.int64)


def build_units(path: str, table: FrameTable, pictures: Pictures | None = None) -> UnitTable | str:
    """The units of a file, or why it can't be read by them.

    Args:
        path: The file that the table was built from.
        table: Its frames.
        pictures: What its packets say, where they were read in one go.
    """
    codec = table.stream.codec
    if codec not in FED_BY_FRAME | FED_BY_PACKET:
        return f"it isn't known how to feed {codec} piece by piece"
    if not table.is_seekable or is_any(table.entry < 0):
        return "some frames can only be decoded from the start of the file"
    if is_any(table.packet_offset < 0):
        return "the container doesn't store packets as the decoder gets them"
    if table.is_completed_by_container:
        return "the container says which colours or size these are, and the stream doesn't"
    if codec in FED_BY_FRAME:
        return _of_frames(path, table)
    return _of_packets(path, table, _pruning_of(codec, table), pictures)


def _pruning_of(codec: str, table: FrameTable) -> Pruning:
    # Fields of one picture may be in several packets: none of them is left out.
    whole = not any("interlaced" in note for note in table.notes)
    return Pruning.DROPPABLE if codec in ("h264", "hevc") and whole else Pruning.NONE


def _packets(path: str, table: FrameTable) -> Iterator[bytes]:
    with PacketPlaces(path) as places:
        yield from places.read_each(table.packet_offset, table.packet_size)


def _of_frames(path: str, table: FrameTable) -> UnitTable | str:
    """AV1: the frames of each packet are units."""
    known = _all_frames(path, table)
    if known is not None:
        return known
    found = Av1Units()
    first_unit: list[int] = []
    for data, offset in zip(_packets(path, table), table.packet_offset.tolist(), strict=True):
        first_unit.append(len(found.size))
        found.add(data, offset)
    if found.why_not:
        return _by_packet_after_all(path, table, found)
    flags = np.array(found.flags, np.uint8)
    return _by_slots(
        table,
        offset=np.array(found.offset, np.int64),
        size=np.array(found.size, np.int64),
        reads=np.array(found.reads, np.uint8),
        writes=np.array(found.writes, np.uint8),
        flags=flags,
        first=np.array(first_unit, np.int64),
        sequence_bytes=found.sequence_bytes,
    )


def _all_frames(path: str, table: FrameTable) -> UnitTable | None:
    """The same in one go, where the stream is of the usual kind."""
    with PacketPlaces(path) as places:
        span = places.read_span(table.packet_offset, table.packet_size)
    if span is None:
        return None
    data, base = span
    start = table.packet_offset - base
    frames = read_frames(data, start, start + table.packet_size)
    return None if frames is None else units_of_frames(frames.moved(base), table)


def units_of_frames(frames: Av1Frames, table: FrameTable) -> UnitTable:
    """AV1 units from the frame headers, whose positions are the file's."""
    first = frames.packet.searchsorted(np.arange(len(table.packet_offset)))
    flags = frames.is_shown * np.uint8(UnitFlag.SHOWN) | frames.is_entry * np.uint8(UnitFlag.ENTRY)
    flags[first] |= np.uint8(UnitFlag.STARTS_PACKET)
    return _by_slots(
        table,
        offset=frames.start,
        size=frames.end - frames.start,
        reads=frames.reads.astype(np.uint8),
        writes=frames.writes.astype(np.uint8),
        flags=flags,
        first=first,
        sequence_bytes=frames.sequence_bytes,
    )


def _by_slots(
    table: FrameTable,
    *,
    offset: NDArray[np.int64],
    size: NDArray[np.int64],
    reads: NDArray[np.uint8],
    writes: NDArray[np.uint8],
    flags: NDArray[np.uint8],
    first: NDArray[np.int64],
    sequence_bytes: bytes,
) -> UnitTable:
    """A table of AV1 units; ``first`` is the first unit of each packet.

    Each packet shows one frame: the p-th shown unit is packet p's.
    """
    of_frame = (flags & np.uint8(UnitFlag.SHOWN)).nonzero()[0][table.decode_position]
    entry = first[table.entry]
    return UnitTable(
        offset=offset,
        size=size,
        reads=reads,
        writes=writes,
        flags=flags,
        of_frame=of_frame,
        entry_of_frame=entry,
        entry_of_unit=_entry_of_unit(len(size), of_frame, entry),
        pruning=Pruning.SLOTS,
        pruning_reason="",
        codec="av1",
        configuration=sequence_bytes,
    )


def _by_packet_after_all(path: str, table: FrameTable, found: Av1Units) -> UnitTable | str:
    """An AV1 stream whose references aren't followed is fed in whole packets."""
    if not found.sequence_bytes:
        return found.why_not
    units = _of_packets(path, table, Pruning.NONE)
    return dataclasses.replace(units, pruning_reason=found.why_not, configuration=b"")


def _of_packets(
    path: str, table: FrameTable, pruning: Pruning, pictures: Pictures | None = None
) -> UnitTable:
    count = len(table.packet_offset)
    droppable = told = NONE
    if pruning is Pruning.DROPPABLE and pictures is not None:
        droppable = pictures.is_droppable.nonzero()[0]
    elif pruning is Pruning.DROPPABLE:
        droppable, told = _droppable(path, table)
    flags, entry_of_unit = flags_of_packets(
        count, table.decode_position, table.entry, droppable, told
    )
    no_slots = np.zeros(count, np.uint8)
    return UnitTable(
        offset=table.packet_offset,
        size=table.packet_size,
        reads=no_slots,
        writes=no_slots,
        flags=flags,
        of_frame=table.decode_position,
        entry_of_frame=table.entry,
        entry_of_unit=entry_of_unit,
        pruning=pruning,
        pruning_reason=f"{table.stream.codec} doesn't name its references in its headers"
        if pruning is Pruning.DROPPABLE
        else f"{table.stream.codec} keeps more than its references between frames",
        codec=table.stream.codec,
        configuration=table.configuration,
    )


def flags_of_packets(
    count: int,
    of_frame: NDArray[np.int64],
    entry_of_frame: NDArray[np.int64],
    droppable: NDArray[np.int64],
    always_fed: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The columns ``flags`` and ``entry_of_unit`` where each packet is a unit.

    Args:
        count: Packets.
        of_frame: (N,) the packet that shows each frame.
        entry_of_frame: (N,) the packet from which it is reached.
        droppable: Packets that no other refers to.
        always_fed: Packets that tell the decoder more than their picture.
    """
    flags = np.full(count, int(UnitFlag.STARTS_PACKET), np.uint8)
    flags[of_frame] |= np.uint8(UnitFlag.SHOWN)
    flags[entry_of_frame] |= np.uint8(UnitFlag.ENTRY)
    flags[droppable] |= np.uint8(UnitFlag.DROPPABLE)
    entry_of_unit = _entry_of_unit(count, of_frame, entry_of_frame, always_fed)
    is_entry = flags & np.uint8(UnitFlag.ENTRY) != 0
    last_entry = np.maximum.accumulate(np.where(is_entry, np.arange(count), 0))
    flags[entry_of_unit < last_entry] |= np.uint8(UnitFlag.LEADING)
    return flags, entry_of_unit


def _entry_of_unit(
    count: int,
    of_frame: NDArray[np.int64],
    entry_of_frame: NDArray[np.int64],
    always_fed: NDArray[np.int64] = NONE,
) -> NDArray[np.int64]:
    entry_of_unit = np.arange(count)
    entry_of_unit[of_frame] = entry_of_frame
    entry_of_unit[always_fed] = always_fed
    return entry_of_unit


def _droppable(path: str, table: FrameTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The packets whose pictures no other picture refers to; and those with parameter sets."""
    codec = table.stream.codec
    look = _look_at_h264 if codec == "h264" else _look_at_hevc
    length_size = nal_format_of(codec, table.configuration).length_size
    pictures = [look(list(iter_nal_heads(data, length_size))) for data in _packets(path, table)]
    # Only in the highest sub-layer does nothing at all refer to a non-reference picture.
    highest = max(picture.layer for picture in pictures)
    return (
        np.flatnonzero([p.is_droppable and p.layer == highest for p in pictures]),
        np.flatnonzero([p.tells_others for p in pictures]),
    )


class _Picture(NamedTuple):
    """What a packet's NAL units say of its picture's part in the stream."""

    is_droppable: bool
    """True where no picture of the same sub-layer refers to it."""
    tells_others: bool
    """True where it holds more than its picture."""
    layer: int
    """Its sub-layer (TemporalId); 0 in H.264."""


def _look_at_h264(units: list[bytes]) -> _Picture:
    """nal_ref_idc 0 in every slice, H.264 7.4.1."""
    kinds = {unit[0] & 0x1F for unit in units}
    tells_others = not kinds <= _h264.SLICES | _h264.ASIDES
    is_referred_to = any(unit[0] & 0x60 for unit in units if unit[0] & 0x1F in _h264.SLICES)
    is_droppable = bool(kinds & _h264.SLICES) and not is_referred_to and not tells_others
    return _Picture(is_droppable, tells_others, 0)


def _look_at_hevc(units: list[bytes]) -> _Picture:
    """Sub-layer non-reference pictures, H.265 7.4.2.2."""
    kinds = [((unit[0] >> 1) & 0x3F, (unit[1] & 7) - 1) for unit in units if len(unit) > 1]
    slices = [(kind, layer) for kind, layer in kinds if kind in _hevc.SLICES]
    tells_others = any(kind not in _hevc.SLICES | _hevc.ASIDES for kind, _layer in kinds)
    is_non_reference = all(kind in _hevc.NON_REFERENCE for kind, _layer in slices)
    return _Picture(
        bool(slices) and is_non_reference and not tells_others,
        tells_others,
        max((layer for _kind, layer in slices), default=0),
    )
