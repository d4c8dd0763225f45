"""One video's tables as bytes, and back, equal field by field.

What many videos have in common (the stream's properties, the codec's configuration, notes) is a
JSON document of its own, which the sidecar stores once; the rest are columns, each predicted from
those before it. In a file whose packets lie one behind the other and whose frames are evenly
spaced, only the units' sizes, gaps, slots and flags and the frames' entries take up room.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from reelseek.index._columns import ColumnReader, ColumnWriter, Integers
from reelseek.index._table import FrameTable
from reelseek.index._units import UNIT, Pruning, UnitFlag, UnitTable
from reelseek.index._video_tables import VideoTables
from reelseek.types import Orientation, StreamInfo

HEAD = struct.Struct("<QqIIIHqqqH")
"""The file's size in bytes and mtime in ns; numbers of frames, packets and units; flags;
average fps as a fraction, 0/0 for none; frames that the header lists, -1 for none; the path's
length in bytes. The path and the columns follow."""
MOST_UNITS = 1 << 26
"""Of one video, 25 days of it: more is no number that memory is asked for."""
MOST_FACTS = 512
"""Documents of shared facts that a process keeps parsed."""

HAS_UNITS = 1
"""The lowest bit of the flags; the following ones are ``TRUTHS``."""
TRUTHS = tuple(field.name for field in dataclasses.fields(FrameTable) if field.type == "bool")
"""The fields of FrameTable that are one truth value."""
STARTS, SHOWN = np.int64(UnitFlag.STARTS_PACKET), np.int64(UnitFlag.SHOWN)


@dataclass(frozen=True, slots=True)
class VideoRecord:
    """One video's tables as bytes."""

    facts: bytes
    """What other videos may have in common with it, as JSON."""
    body: bytes
    """The rest: HEAD, the path, the columns."""

    def head(self) -> RecordHead:
        """The beginning of the body."""
        return read_head(self.body)


@dataclass(frozen=True, slots=True)
class RecordHead:
    """The beginning of a record's body."""

    path: bytes
    """Relative to the index's folder, as the file system writes it."""
    num_bytes: int
    """The video's size."""
    mtime_ns: int
    """When the video was last changed."""
    counts: tuple[int, int, int]
    """Frames, packets and units."""
    flags: int
    """Truth values."""
    average_fps: Fraction | None
    """As in StreamInfo."""
    num_frames_from_header: int | None
    """As in StreamInfo."""
    columns_at: int
    """Where the columns begin."""


def write_record(path: bytes, num_bytes: int, mtime_ns: int, tables: VideoTables) -> VideoRecord:
    """One video's tables as bytes.

    Args:
        path: The video's path, relative to the index's folder.
        num_bytes: Its size.
        mtime_ns: When it was last changed.
        tables: What ``index_tables`` found.

    Raises:
        struct.error: A number doesn't fit, as no real video's does.
    """
    frames, units = tables.frames, tables.units
    fps = frames.stream.average_fps
    listed = frames.stream.num_frames_from_header
    columns = ColumnWriter()
    num_units = _write_columns(columns, frames, units if isinstance(units, UnitTable) else None)
    head = HEAD.pack(
        num_bytes,
        mtime_ns,
        len(frames),
        len(frames.packet_pts),
        num_units,
        _flags(tables),
        fps.numerator if fps is not None else 0,
        fps.denominator if fps is not None else 0,
        -1 if listed is None else listed,
        len(path),
    )
    facts = json.dumps(_facts(tables), separators=(",", ":"), sort_keys=True).encode()
    return VideoRecord(facts, head + path + columns.getvalue())


def read_head(body: bytes) -> RecordHead:
    """The beginning of a record's body.

    Raises:
        struct.error, ValueError: It isn't whole.
    """
    size, mtime_ns, frames, packets, units, flags, above, below, listed, length = HEAD.unpack_from(
        body
    )
    path = body[HEAD.size : HEAD.size + length]
    # A packet, a unit and a frame have at least one byte each in the file.
    if len(path) != length or max(packets, units, frames) > min(size, MOST_UNITS):
        raise ValueError("counts or lengths beyond the file's")
    return RecordHead(
        path=path,
        num_bytes=size,
        mtime_ns=mtime_ns,
        counts=(frames, packets, units),
        flags=flags,
        average_fps=Fraction(above, below) if below else None,
        num_frames_from_header=None if listed < 0 else listed,
        columns_at=HEAD.size + length,
    )


def read_tables(body: bytes, head: RecordHead, facts: bytes) -> VideoTables:
    """The tables of a record.

    Raises:
        struct.error, ValueError, KeyError, TypeError, IndexError: The bytes are none that
            ``write_record`` made.
    """
    about = _parsed(facts)
    reader = ColumnReader(body, head.columns_at)
    table, unit_columns, starts = _read_frames(reader, head, about)
    if not head.flags & HAS_UNITS:
        return VideoTables(table, about.why_no_units)
    return VideoTables(table, _read_units(reader, table, unit_columns, starts, about))


@dataclass(frozen=True, slots=True)
class _Facts:
    """What videos have in common, parsed."""

    stream: dict[str, Any]
    configuration: bytes
    notes: tuple[str, ...]
    why_no_units: str
    pruning: Pruning
    pruning_reason: str
    codec: str
    unit_configuration: bytes


def _facts(tables: VideoTables) -> dict[str, Any]:
    frames, units = tables.frames, tables.units
    stream = frames.stream
    turn = stream.orientation
    facts: dict[str, Any] = {
        "container": stream.container,
        "codec": stream.codec,
        "size": [stream.width, stream.height],
        "pixel_format": stream.pixel_format,
        "color_matrix": stream.color_matrix,
        "orientation": [turn.swaps_axes, turn.flips_x, turn.flips_y],
        "time_base": [stream.time_base.numerator, stream.time_base.denominator],
        "configuration": frames.configuration.hex(),
        "notes": list(frames.notes),
    }
    if isinstance(units, UnitTable):
        facts["units"] = {
            "pruning": units.pruning.name,
            "reason": units.pruning_reason,
            "codec": units.codec,
        }
        if units.configuration != frames.configuration:  # it may be long
            facts["units"]["configuration"] = units.configuration.hex()
    else:
        facts["why_no_units"] = units
    return facts


@functools.lru_cache(MOST_FACTS)
def _parsed(facts: bytes) -> _Facts:
    about = json.loads(facts)
    units = about.get("units") or {}
    stream = {name: about[name] for name in ("container", "codec", "pixel_format", "color_matrix")}
    stream["width"], stream["height"] = about["size"]
    stream["orientation"] = Orientation(*about["orientation"])
    stream["time_base"] = Fraction(*about["time_base"])
    return _Facts(
        stream=stream,
        configuration=bytes.fromhex(about["configuration"]),
        notes=tuple(about["notes"]),
        why_no_units=about.get("why_no_units") or "",
        pruning=Pruning[units.get("pruning", "NONE")],
        pruning_reason=units.get("reason", ""),
        codec=units.get("codec", ""),
        unit_configuration=bytes.fromhex(units.get("configuration", about["configuration"])),
    )


def _flags(tables: VideoTables) -> int:
    flags = HAS_UNITS * isinstance(tables.units, UnitTable)
    for bit, name in enumerate(TRUTHS, 1):
        flags |= getattr(tables.frames, name) << bit
    return flags


def _write_columns(columns: ColumnWriter, frames: FrameTable, units: UnitTable | None) -> int:
    """Write all columns, in the order in which ``_read_frames`` and ``_read_units`` take them.

    Where units aren't known, the packets stand for them.
    """
    offset, size, flags = frames.packet_offset, frames.packet_size, _all_start(frames)
    if units is not None:
        offset, size, flags = (
            units.units[name].astype(np.int64) for name in ("offset", "size", "flags")
        )
    columns.integers(size)
    columns.integers(_gaps(offset, size))
    columns.integers(flags)
    starts = _starts(flags, len(frames.packet_pts))
    predicted = _packet_places(offset, size, starts)
    columns.integers(frames.packet_offset, predicted[0])
    columns.integers(frames.packet_size, predicted[1] - frames.packet_offset)
    columns.integers(frames.packet_dts)
    columns.integers(frames.packet_pts, frames.packet_dts)
    columns.integers(frames.decode_position)
    columns.integers(frames.pts, frames.packet_pts[frames.decode_position])
    columns.integers(frames.duration)
    columns.booleans(frames.is_key)
    columns.booleans(frames.is_damaged)
    columns.integers(frames.entry, frames.decode_position)
    if units is not None:
        columns.integers(units.units["reads"].astype(np.int64))
        columns.integers(units.units["writes"].astype(np.int64))
        columns.integers(units.of_frame, _shown_by(flags, frames))
        columns.integers(units.entry_of_frame, _first_units(starts, frames.entry, len(flags)))
        columns.integers(
            units.entry_of_unit, _own_entries(len(flags), units.of_frame, units.entry_of_frame)
        )
    return len(flags)


def _read_frames(
    reader: ColumnReader, head: RecordHead, about: _Facts
) -> tuple[FrameTable, tuple[Integers, Integers, Integers], Integers]:
    """The frame table; the units' offsets, sizes and flags; the first unit of each packet."""
    frames, packets, units = head.counts
    size = reader.integers(units)
    offset = _from_gaps(reader.integers(units), size)
    flags = reader.integers(units)
    starts = _starts(flags, packets)
    place, end = _packet_places(offset, size, starts)
    packet_offset = reader.integers(packets, place)
    packet_size = reader.integers(packets, end - packet_offset)
    packet_dts = reader.integers(packets)
    packet_pts = reader.integers(packets, packet_dts)
    position = reader.integers(frames)
    stream = StreamInfo(
        **about.stream,
        average_fps=head.average_fps,
        num_frames_from_header=head.num_frames_from_header,
    )
    table = FrameTable(
        stream=stream,
        pts=reader.integers(frames, packet_pts[position]),
        duration=reader.integers(frames),
        is_key=reader.booleans(frames),
        is_damaged=reader.booleans(frames),
        entry=reader.integers(frames, position),
        packet_pts=packet_pts,
        packet_dts=packet_dts,
        packet_offset=packet_offset,
        packet_size=packet_size,
        configuration=about.configuration,
        decode_position=position,
        notes=about.notes,
        **{name: bool(head.flags >> bit & 1) for bit, name in enumerate(TRUTHS, 1)},
    )
    return table, (offset, size, flags), starts


def _read_units(
    reader: ColumnReader,
    frames: FrameTable,
    columns: tuple[Integers, Integers, Integers],
    starts: Integers,
    about: _Facts,
) -> UnitTable:
    offset, size, flags = columns
    count = len(flags)
    units = np.empty(count, UNIT)
    units["offset"], units["size"], units["flags"] = offset, size, flags
    units["reads"] = reader.integers(count)
    units["writes"] = reader.integers(count)
    of_frame = reader.integers(len(frames), _shown_by(flags, frames))
    entry_of_frame = reader.integers(len(frames), _first_units(starts, frames.entry, count))
    return UnitTable(
        units=units,
        of_frame=of_frame,
        entry_of_frame=entry_of_frame,
        entry_of_unit=reader.integers(count, _own_entries(count, of_frame, entry_of_frame)),
        pruning=about.pruning,
        pruning_reason=about.pruning_reason,
        codec=about.codec,
        configuration=about.unit_configuration,
    )


# Predictions. Each only has to be the same for the writer and the reader; where one is wrong, as
# for files that aren't what they usually are, the column takes more bytes.


def _all_start(frames: FrameTable) -> Integers:
    """The flags of units that are packets."""
    return np.full(len(frames.packet_pts), STARTS)


def _gaps(offset: Integers, size: Integers) -> Integers:
    """The bytes between each unit and the end of the one before it; first, the first offset."""
    gaps = offset.copy()
    gaps[1:] -= offset[:-1] + size[:-1]
    return gaps


def _from_gaps(gaps: Integers, size: Integers) -> Integers:
    offset = gaps.copy()
    offset[1:] += size[:-1]
    return offset.cumsum()


def _starts(flags: Integers, packets: int) -> Integers:
    """The first unit of each packet."""
    starts = np.flatnonzero(flags & STARTS)
    return starts if len(starts) == packets else np.zeros(packets, np.int64)


def _first_units(starts: Integers, packets: Integers, count: int) -> Integers:
    """The first units of some packets."""
    return packets if len(starts) == count else starts[packets]


def _packet_places(offset: Integers, size: Integers, starts: Integers) -> tuple[Integers, Integers]:
    """Where each packet begins and ends, by its first and its last unit."""
    if len(starts) == len(offset):
        return offset, offset + size
    last = np.append(starts[1:], len(offset)) - 1
    return offset[starts], offset[last] + size[last]


def _shown_by(flags: Integers, frames: FrameTable) -> Integers:
    """Each packet shows one frame: the p-th shown unit is packet p's."""
    shown = np.flatnonzero(flags & SHOWN)
    position = frames.decode_position
    if len(shown) == len(flags) or len(shown) != len(frames.packet_pts):
        return position
    return shown[position]


def _own_entries(count: int, of_frame: Integers, entry_of_frame: Integers) -> Integers:
    """The entry of the frame that each unit displays; the unit itself for a hidden one."""
    entries = np.arange(count)
    entries[of_frame] = entry_of_frame
    return entries
