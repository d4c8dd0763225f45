"""The columns of a video's record: their order, and what each is predicted from.

What a read looks at (times, damage, the units and which of them show frames) is stored so that a
single value can be found without the rest. What it doesn't look at is predicted from that: in a
file whose packets lie one behind the other and show one frame each, it takes a byte a column.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reelseek.errors import IndexFileError
from reelseek.index._columns import (
    NOT_WRITTEN_BY_US,
    Columns,
    ColumnWriter,
    Integers,
    impossible,
)
from reelseek.index._units import UnitFlag

STARTS = np.uint8(UnitFlag.STARTS_PACKET)

Counts = tuple[int, int, int]
"""Numbers of frames, packets and units; 0 units where they aren't known."""


class Known(Protocol):
    """Columns by name."""

    def __getitem__(self, name: str, /) -> NDArray[Any]: ...


class Of(Enum):
    """What a column has one value for."""

    FRAME = 0
    PACKET = 1
    UNIT = 2
    FRAME_WITH_UNITS = 3
    """A frame, where units are known."""


class Column(NamedTuple):
    """How one column is stored."""

    name: str
    """The field of FrameTable or UnitTable."""
    of: Of
    predict: Callable[[Known, Counts], Integers] | None = None
    """From columns before it in the list; the writer and the reader predict the same."""
    is_octets: bool = False
    is_truth: bool = False


# Predictions. Where one is wrong, as for files that aren't what they usually are, the column takes
# more bytes.


def _evenly_shown(_known: Known, counts: Counts) -> Integers:
    """As many units to each frame."""
    frames, _packets, units = counts
    every = np.arange(frames)
    return every if units == frames else every * units // max(frames, 1)


def _shown_at_once(known: Known, _counts: Counts) -> Integers:
    """Each frame is its own entry."""
    units: Integers = known["of_frame"]
    return units


def _are_packets(counts: Counts) -> bool:
    """True where each unit seems to be a packet, as in all codecs but AV1."""
    _frames, packets, units = counts
    return packets == units


def _packets_of(known: Known, counts: Counts, units: Integers) -> Integers:
    """The packets that these units are in."""
    if _are_packets(counts):
        return units
    packets: Integers = np.cumsum(known["flags"] & STARTS != 0)
    return packets[units] - 1


def _shown_in(known: Known, counts: Counts) -> Integers:
    """Each frame's packet is the one with the unit that shows it."""
    return _packets_of(known, counts, known["of_frame"])


def _entered_in(known: Known, counts: Counts) -> Integers:
    """Each frame's entry is the packet with the unit that is its entry."""
    return _packets_of(known, counts, known["entry_of_frame"])


def _pts_in_decoding_order(known: Known, _counts: Counts) -> Integers:
    """Each packet has the timestamp of the frame that it shows, else its decoding timestamp."""
    pts: Integers = known["packet_dts"].copy()
    pts[known["decode_position"]] = known["pts"]
    return pts


def _packet_offsets(known: Known, counts: Counts) -> Integers:
    """Each packet begins with its first unit."""
    offsets: Integers = known["offset"]
    if not _are_packets(counts):
        offsets = offsets[(known["flags"] & STARTS).nonzero()]
    return offsets


def _packet_sizes(known: Known, counts: Counts) -> Integers:
    """Each packet ends with its last unit."""
    if _are_packets(counts) and known["packet_offset"] is known["offset"]:
        return known["size"]
    ends: Integers = known["offset"] + known["size"]
    if not _are_packets(counts):
        first = (known["flags"] & STARTS).nonzero()[0]
        ends = ends[np.append(first[1:], len(ends)) - 1]
    starts: Integers = known["packet_offset"]
    return ends - starts


def _own_entries(known: Known, counts: Counts) -> Integers:
    """The entry of the frame that each unit shows; the unit itself for a hidden one."""
    entries = np.arange(counts[2])
    entries[known["of_frame"]] = known["entry_of_frame"]
    return entries


LAYOUT = (
    Column("pts", Of.FRAME),
    Column("duration", Of.FRAME),
    Column("is_damaged", Of.FRAME, is_truth=True),
    Column("of_frame", Of.FRAME_WITH_UNITS, _evenly_shown),
    Column("entry_of_frame", Of.FRAME_WITH_UNITS, _shown_at_once),
    Column("size", Of.UNIT),
    Column("offset", Of.UNIT),
    Column("reads", Of.UNIT, is_octets=True),
    Column("writes", Of.UNIT, is_octets=True),
    Column("flags", Of.UNIT, is_octets=True),
    Column("is_key", Of.FRAME, is_truth=True),
    Column("decode_position", Of.FRAME, _shown_in),
    Column("entry", Of.FRAME, _entered_in),
    Column("packet_dts", Of.PACKET),
    Column("packet_pts", Of.PACKET, _pts_in_decoding_order),
    Column("packet_offset", Of.PACKET, _packet_offsets),
    Column("packet_size", Of.PACKET, _packet_sizes),
    Column("entry_of_unit", Of.UNIT, _own_entries),
)
"""The columns in the order in which they are stored."""
NUMBER_OF = {column.name: number for number, column in enumerate(LAYOUT)}
OF_FRAME, ENTRY_OF_FRAME = NUMBER_OF["of_frame"], NUMBER_OF["entry_of_frame"]
NEEDS_UNITS = frozenset({_shown_in, _entered_in, _packet_offsets, _packet_sizes})
"""Predictions that can't be made without units; there the columns are stored plainly."""


def write_columns(known: Known, counts: Counts) -> bytes:
    """All columns as bytes.

    Args:
        known: Every column of ``LAYOUT``; those of units may lack where there are none.
        counts: How many values they have.
    """
    writer = ColumnWriter()
    for column, count in zip(LAYOUT, _counts_of_columns(counts), strict=True):
        values: NDArray[Any] = known[column.name] if count else np.empty(0)
        if column.is_octets:
            writer.octets(values)
        elif column.is_truth:
            writer.booleans(values)
        else:
            writer.integers(values, _prediction(column, known, counts) if count else None)
    return writer.getvalue()


class StoredColumns(Columns):
    """The columns of a record by name, each read at its first look-up; or value by value.

    Threads: two that look up one column at once both read it, and find the same.
    """

    def __init__(self, data: bytes, position: int, counts: Counts) -> None:
        """Find the columns, which begin at ``position``.

        Raises:
            struct.error: The bytes are no such columns.
        """
        super().__init__(data, position, _counts_of_columns(counts))
        self.counts = counts
        self._whole: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        values = self._whole.get(name)
        if values is None:
            try:
                values = self._read(NUMBER_OF[name])
            except IndexFileError:
                raise
            except NOT_WRITTEN_BY_US as exc:
                raise impossible(exc) from exc
            self._whole[name] = values
        return values

    def spans_of(self, frames: Sequence[int]) -> list[tuple[int, int]]:
        """``self["entry_of_frame"]`` and ``self["of_frame"]`` of these frames."""
        num_frames, _packets, num_units = self.counts
        spans = []
        shown, entered = self.items(OF_FRAME, frames), self.items(ENTRY_OF_FRAME, frames)
        for frame, above_predicted, above_unit in zip(frames, shown, entered, strict=True):
            unit = above_predicted + frame * num_units // num_frames
            entry = above_unit + unit
            if not 0 <= unit < num_units or not 0 <= entry < num_units:
                # A plan goes from one unit to another: with such numbers it would never end.
                raise impossible(IndexError(f"units {entry} and {unit} of {num_units}"))
            spans.append((entry, unit))
        return spans

    def _read(self, number: int) -> NDArray[Any]:
        column = LAYOUT[number]
        if column.is_octets:
            return self.octets(number)
        if column.is_truth:
            return self.booleans(number)
        values = self.integers(number, _prediction(column, self, self.counts))
        if column.of is Of.FRAME_WITH_UNITS and len(values):
            least, most = int(values.min()), int(values.max())
            if least < 0 or most >= self.counts[2]:
                raise IndexError(f"units {least} to {most} of {self.counts[2]}")
        return values


def _prediction(column: Column, known: Known, counts: Counts) -> Integers | None:
    predict = column.predict
    if predict is None or (predict in NEEDS_UNITS and not counts[2]):
        return None
    return predict(known, counts)


def _counts_of_columns(counts: Counts) -> tuple[int, ...]:
    frames, packets, units = counts
    return _PICK((frames, packets, units, frames if units else 0))


_PICK: Callable[[tuple[int, ...]], tuple[int, ...]] = operator.itemgetter(
    *(column.of.value for column in LAYOUT)
)
