"""What the units of one group of pictures are, and which refer to which: for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream._av1_headers import (
    LONG_HEADER_BYTES,
    FrameHeader,
    FrameType,
    Slots,
    read_sequence_header,
)
from reelseek.bitstream._obu import ObuType, iter_obus
from reelseek.index._places import PacketPlaces
from reelseek.index._units import Pruning, UnitFlag, UnitTable

SHORT_UNIT_BYTES = 64
"""A show_existing_frame header is shorter."""


class UnitKind(Enum):
    """What a unit is to a viewer."""

    KEY = "key frame"
    """Decoding can start there."""
    INTER = "inter frame"
    """It refers to others, and others may refer to it."""
    DROPPABLE = "droppable frame"
    """No other unit refers to it."""
    HIDDEN = "hidden frame"
    """It is decoded for others, and isn't displayed itself."""
    SHOWS_EXISTING = "shows a hidden frame"
    """A header that displays a frame decoded before."""


@dataclass(frozen=True, slots=True)
class GopUnit:
    """One unit of a group of pictures."""

    unit: int
    """Its number in the unit table, in decoding order."""
    kind: UnitKind
    """What it is."""
    frame: int | None
    """The number of the frame that it displays; None for a hidden one."""
    num_bytes: int
    """Its size."""
    place: float
    """Where it belongs in display order, as a frame number; a hidden frame that is coded again
    for display stands with that one, others half a frame before what is displayed next."""
    references: tuple[int, ...]
    """The units that it refers to; empty where the codec's headers don't tell."""


def read_units(path: str, table: UnitTable, span: range) -> tuple[GopUnit, ...]:
    """Some units, in decoding order.

    Args:
        path: The file that the table was built from.
        table: Its units.
        span: Their numbers; the first is one where decoding can start.
    """
    headers = _headers(path, table, span) if table.pruning is Pruning.SLOTS else []
    frame_of = _frames_shown(table, span)
    places = _places(span, frame_of, headers)
    references = _references(table, span) if headers else [()] * len(span)
    kinds = _kinds_of_headers(headers) if headers else _kinds_of_flags(table, span)
    return tuple(
        GopUnit(
            unit=number,
            kind=kind,
            frame=frame_of.get(number),
            num_bytes=int(table.size[number]),
            place=place,
            references=read,
        )
        for number, kind, place, read in zip(span, kinds, places, references, strict=True)
    )


def find_existing_shown(path: str, table: UnitTable) -> NDArray[np.bool_]:
    """(U,) True for units that only display a frame decoded before: they cost no decoding."""
    found = np.zeros(len(table), bool)
    if table.pruning is not Pruning.SLOTS:
        return found
    with PacketPlaces(path) as places:
        for unit in np.flatnonzero(table.size <= SHORT_UNIT_BYTES).tolist():
            data = places.read(table.offset.item(unit), table.size.item(unit))
            kind, _start, payload, end = next(iter_obus(data))
            shows_existing = kind == ObuType.FRAME_HEADER and end > payload and data[payload] & 0x80
            found[unit] = bool(shows_existing) and end == len(data)
    return found


def gop_span(table: UnitTable, unit: int) -> range:
    """The units from the entry at or before this one to the next entry."""
    entries = np.flatnonzero(table.flags & np.uint8(UnitFlag.ENTRY))
    after = int(np.searchsorted(entries, unit, side="right"))
    start = int(entries[after - 1]) if after else 0
    return range(start, int(entries[after]) if after < len(entries) else len(table))


def _headers(path: str, table: UnitTable, span: range) -> list[FrameHeader]:
    """Each unit's frame header. The entry writes every slot, so nothing before it is missing."""
    _kind, _start, payload, end = next(iter_obus(table.configuration))
    sequence = read_sequence_header(table.configuration[payload:end])
    slots, found = Slots(), []
    with PacketPlaces(path) as places:
        for unit in span:
            data = places.read(table.offset.item(unit), table.size.item(unit))
            _kind, _start, payload, _end = next(iter_obus(data))
            header = data[payload : payload + LONG_HEADER_BYTES]
            found.append(slots.read_frame_header(header, sequence))
    return found


def _frames_shown(table: UnitTable, span: range) -> dict[int, int]:
    """Unit to the frame that it displays."""
    frames = np.flatnonzero((table.of_frame >= span.start) & (table.of_frame < span.stop))
    units = table.of_frame[frames].tolist()
    return dict(zip(units, frames.tolist(), strict=True))


def _places(span: range, frame_of: dict[int, int], headers: Sequence[FrameHeader]) -> list[float]:
    """Each unit's place in display order, found from the end of the span."""
    following = float(max(frame_of.values(), default=0) + 1)
    frame_with: dict[int, int] = {}  # order hint to the next frame displayed with it
    places: list[float] = []
    for unit in reversed(span):
        hint = headers[unit - span.start].order_hint if headers else -1
        if unit in frame_of:
            following = frame_with[hint] = frame_of[unit]
        places.append(frame_of.get(unit, frame_with.get(hint, following - 0.5)))
    return places[::-1]


def _references(table: UnitTable, span: range) -> list[tuple[int, ...]]:
    """The units that each refers to, by following what is stored in the slots."""
    holder = [-1] * 8
    found = []
    for unit in span:
        reads, writes = table.reads.item(unit), table.writes.item(unit)
        found.append(tuple(sorted({holder[slot] for slot in range(8) if reads >> slot & 1})))
        for slot in range(8):
            if writes >> slot & 1:
                holder[slot] = unit
    return found


def _kinds_of_headers(headers: Sequence[FrameHeader]) -> list[UnitKind]:
    return [_kind_of_header(header) for header in headers]


def _kind_of_header(header: FrameHeader) -> UnitKind:
    if header.shows_slot >= 0:
        return UnitKind.SHOWS_EXISTING
    if not header.shows:
        return UnitKind.HIDDEN
    if header.frame_type is FrameType.KEY:
        return UnitKind.KEY
    return UnitKind.INTER if header.writes else UnitKind.DROPPABLE


def _kinds_of_flags(table: UnitTable, span: range) -> list[UnitKind]:
    return [_kind_of_flags(UnitFlag(int(table.flags[unit]))) for unit in span]


def _kind_of_flags(flags: UnitFlag) -> UnitKind:
    if flags & UnitFlag.ENTRY:
        return UnitKind.KEY
    if not flags & UnitFlag.SHOWN:
        return UnitKind.HIDDEN
    return UnitKind.DROPPABLE if flags & UnitFlag.DROPPABLE else UnitKind.INTER
