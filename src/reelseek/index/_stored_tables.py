"""Tables whose columns are read from a record when they are first looked at.

The first reads of a video take a few values of a few columns, one by one. Where more reads follow,
whole columns are read, whose values cost less each.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from reelseek.index._stored_columns import NUMBER_OF, StoredColumns
from reelseek.index._table import FrameTable
from reelseek.index._units import UnitTable

Table = TypeVar("Table")
IS_DAMAGED = NUMBER_OF["is_damaged"]
OFFSET, SIZE = NUMBER_OF["offset"], NUMBER_OF["size"]
READS, WRITES, FLAGS = NUMBER_OF["reads"], NUMBER_OF["writes"], NUMBER_OF["flags"]
FEW_UNITS, UNITS_FOR_ONE = 16, 400
"""So many units, and one more for so many of the file's, have their places rather looked up one by
one: to read a whole column takes longer the longer the file is."""


class LazyFrameTable(FrameTable):
    """A FrameTable that reads whole columns when they are first looked at."""

    _columns: StoredColumns

    def __new__(cls, *fields: Any, **named_fields: Any) -> FrameTable:  # type: ignore[misc]
        """A plain table: ``dataclasses.replace`` and copies have no record behind them."""
        return FrameTable(*fields, **named_fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return FrameTable, _values_of(self)

    def __getattr__(self, name: str) -> Any:
        return _column_of(self, name)

    def __len__(self) -> int:
        return self._columns.counts[0]


class StoredFrameTable(LazyFrameTable):
    """A FrameTable that looks values up one by one, where it is asked for few."""

    def for_many_reads(self) -> FrameTable:
        """The same table, where whole columns are looked up rather than single values."""
        return _made(LazyFrameTable, self._columns, _plain_fields(self))

    def damaged_among(self, frames: Sequence[int]) -> list[int]:
        """Those of these frames that are damaged."""
        return list(itertools.compress(frames, self._columns.items(IS_DAMAGED, frames)))

    def _ticks_at(self, name: Literal["pts", "duration"], frames: Sequence[int]) -> list[int]:
        return self._columns.items(NUMBER_OF[name], frames)


class LazyUnitTable(UnitTable):
    """A UnitTable that reads whole columns when they are first looked at."""

    _columns: StoredColumns

    def __new__(cls, *fields: Any, **named_fields: Any) -> UnitTable:  # type: ignore[misc]
        """A plain table: ``dataclasses.replace`` and copies have no record behind them."""
        return UnitTable(*fields, **named_fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return UnitTable, _values_of(self)

    def __getattr__(self, name: str) -> Any:
        return _column_of(self, name)

    def __len__(self) -> int:
        return self._columns.counts[2]


class StoredUnitTable(LazyUnitTable):
    """A UnitTable that looks values up one by one, where it is asked for few."""

    def for_many_reads(self) -> UnitTable:
        """The same table, where whole columns are looked up rather than single values."""
        return _made(LazyUnitTable, self._columns, _plain_fields(self))

    def spans_of(self, frames: Sequence[int]) -> list[tuple[int, int]]:
        """``entry_of_frame`` and ``of_frame`` of these frames."""
        return self._columns.spans_of(frames)

    def places_of(self, units: Sequence[int]) -> list[tuple[int, int]]:
        """Where units' bytes are: the position of each in the file, and their number."""
        if len(units) > FEW_UNITS + len(self) // UNITS_FOR_ONE:
            return UnitTable.places_of(self, units)
        items = self._columns.items
        return list(zip(items(OFFSET, units), items(SIZE, units), strict=True))

    def slots_between(self, first: int, stop: int) -> tuple[Sequence[int], Sequence[int]]:
        """``reads[first:stop]`` and ``writes[first:stop]``."""
        some = self._columns.octets_between
        return some(READS, first, stop), some(WRITES, first, stop)

    def flags_between(self, first: int, stop: int) -> Sequence[int]:
        """``flags[first:stop]``."""
        return self._columns.octets_between(FLAGS, first, stop)


def stored_frames(columns: StoredColumns, fields: dict[str, Any]) -> FrameTable:
    """A frame table over a record's columns; ``fields`` are the others."""
    return _made(StoredFrameTable, columns, fields)


def stored_units(columns: StoredColumns, fields: dict[str, Any]) -> UnitTable:
    """A unit table over a record's columns; ``fields`` are the others."""
    return _made(StoredUnitTable, columns, fields)


def _made(cls: type[Table], columns: StoredColumns, fields: dict[str, Any]) -> Table:
    table = object.__new__(cls)
    vars(table).update(fields, _columns=columns)  # the tables are frozen
    return table


def _plain_fields(table: FrameTable | UnitTable) -> dict[str, Any]:
    """Those that are no columns."""
    names = (field.name for field in dataclasses.fields(table))
    return {name: getattr(table, name) for name in names if name not in NUMBER_OF}


def _values_of(table: FrameTable | UnitTable) -> tuple[Any, ...]:
    return tuple(getattr(table, field.name) for field in dataclasses.fields(table))


def _column_of(table: Any, name: str) -> Any:
    """A field that isn't set yet, which is a column."""
    if name not in NUMBER_OF:
        raise AttributeError(f"{type(table).__name__!r} object has no attribute {name!r}")
    column = vars(table)[name] = table._columns[name]
    return column
