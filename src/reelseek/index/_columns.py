"""Columns of whole numbers in few bytes: what is regular costs nothing.

A column is stored as its difference from a prediction, which the reader makes from other columns.
The difference is nothing, one number, an evenly rising row, or numbers of 1, 2, 4 or 8 bytes above
the smallest: each kind gives a single value as readily as the whole column. Arithmetic is modulo
2**64, so that every column comes back exactly. The columns' positions come first.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reelseek._truths import are_all, is_any
from reelseek.errors import IndexFileError

Integers = NDArray[np.int64]

_BASE = struct.Struct("<q")
_BASE_AND_STEP = struct.Struct("<qq")
_WIDTHS = (1, 2, 4, 8)
_ABOVE = {
    1: struct.Struct("<B"),
    2: struct.Struct("<H"),
    4: struct.Struct("<I"),
    8: struct.Struct("<Q"),
}
_SMALL = 1 << 62
"""The sum of two numbers below this is an int64."""
_TYPES = {width: np.dtype(f"<u{width}") for width in _WIDTHS}
NOT_WRITTEN_BY_US = (struct.error, ValueError, KeyError, TypeError, IndexError, RecursionError)
"""What bytes with a right sum and wrong content can raise."""


# How a column's difference from its prediction is stored: the first byte of each column. Plain
# numbers, as an enum's members take longer to compare than the columns to read.
EQUAL = 0
"""It is zero."""
CONSTANT = 16
"""It is one number (int64)."""
LINEAR = 17
"""It starts at a number and rises by a step (two int64)."""
BITS = 18
"""Truth values, eight to the byte, the first in the highest bit."""
OCTETS = 19
"""Numbers of one byte."""
# 1, 2, 4 and 8: the smallest number (int64), then what each is above it in so many bytes.


@functools.cache
def _positions(num_columns: int) -> struct.Struct:
    """The columns' positions."""
    return struct.Struct(f"<{num_columns}I")


class ColumnWriter:
    """Puts columns one behind the other."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._numbers: dict[int, list[tuple[int, Integers]]] = {}
        """The columns of numbers by their length: the place of each, and what is to be stored."""

    def integers(self, values: Integers, predicted: Integers | None = None) -> None:
        """Add numbers; the reader has to pass the same prediction."""
        if values is not predicted:
            rest = values if predicted is None else values - predicted
            self._numbers.setdefault(len(rest), []).append((len(self._parts), rest))
        self._parts.append(bytes([EQUAL]))

    def booleans(self, values: NDArray[np.bool_]) -> None:
        """Add truth values."""
        if is_any(values):
            self._parts.append(bytes([BITS]) + np.packbits(values).tobytes())
        else:
            self._parts.append(bytes([EQUAL]))

    def octets(self, values: NDArray[np.uint8]) -> None:
        """Add numbers of one byte."""
        octets = values.tobytes()
        is_zero = octets.count(0) == len(octets)
        self._parts.append(bytes([EQUAL]) if is_zero else bytes([OCTETS]) + octets)

    def getvalue(self) -> bytes:
        """All columns."""
        for length, columns in self._numbers.items():
            if length:
                self._store([place for place, _rest in columns], [rest for _, rest in columns])
        sizes = [len(part) for part in self._parts]
        places = itertools.accumulate(sizes[:-1], initial=_positions(len(sizes)).size)
        return _positions(len(sizes)).pack(*places) + b"".join(self._parts)

    def _store(self, places: list[int], columns: list[Integers]) -> None:
        """Columns of one length."""
        table = np.concatenate(columns, dtype=np.int64).reshape(len(columns), -1)
        least = np.minimum.reduce(table, axis=1).tolist()
        most = np.maximum.reduce(table, axis=1).tolist()
        for place, rest, low, high in zip(places, table, least, most, strict=True):
            self._parts[place] = _stored(rest, low, high)


def _stored(rest: Integers, least: int, most: int) -> bytes:
    if least == most:
        return bytes([CONSTANT]) + _BASE.pack(least) if least else bytes([EQUAL])
    first, second = rest[:2].tolist()
    step = second - first
    if abs(step) * (len(rest) - 1) == most - least and _rises(rest, step):
        return bytes([LINEAR]) + _BASE_AND_STEP.pack(first, step)
    width = next((w for w in _WIDTHS if most - least < 1 << (8 * w)), 8)
    base = 0 if width == 8 else least
    above = (rest - base).view(np.uint64).astype(_TYPES[width])
    return bytes([width]) + _BASE.pack(base) + above.tobytes()


def _rises(rest: Integers, step: int) -> bool:
    return are_all(rest[1:] - rest[:-1] == step)


class Columns:
    """Reads what a ``ColumnWriter`` put together, each column when it is asked for.

    Bytes that it didn't write give other numbers, or IndexFileError where a few values are asked
    for and one of ``NOT_WRITTEN_BY_US`` where a whole column is; whoever doesn't trust them checks
    a sum first.
    """

    def __init__(self, data: bytes, position: int, counts: Sequence[int]) -> None:
        """Find the columns.

        Args:
            data: Bytes that end with the columns.
            position: Where the first column begins.
            counts: How many values each column has.

        Raises:
            struct.error: The bytes are no such columns.
        """
        self._data = data
        self._counts = counts
        self._start = position
        self._places: tuple[int, ...] = _positions(len(counts)).unpack_from(data, position)

    def items(self, number: int, indices: Sequence[int]) -> list[int]:
        """Some numbers of a column, without their prediction."""
        data, count = self._data, self._counts[number]
        try:
            for index in indices:
                if not 0 <= index < count:
                    raise IndexError(f"no {index} in a column of {count}")
            place = self._start + self._places[number]
            kind = data[place]
            place += 1
            if kind == EQUAL:
                return [0] * len(indices)
            if kind == BITS:
                return [data[place + index // 8] >> (7 - index % 8) & 1 for index in indices]
            base: int = _BASE.unpack_from(data, place)[0]
            if kind == CONSTANT:
                return [base] * len(indices)
            place += _BASE.size
            if kind == LINEAR:
                step: int = _BASE.unpack_from(data, place)[0]
                found = [base + step * index for index in indices]
                is_small = -_SMALL < base < _SMALL and -_SMALL < step * count < _SMALL
            else:
                above = _ABOVE[kind].unpack_from
                found = [base + above(data, place + kind * index)[0] for index in indices]
                is_small = -_SMALL < base < _SMALL and kind < 8
        except NOT_WRITTEN_BY_US as exc:
            raise impossible(exc) from exc
        return found if is_small else [_wrapped(number) for number in found]

    def integers(self, number: int, predicted: Integers | None = None) -> Integers:
        """The numbers of a column; the prediction is the writer's."""
        kind, place, count = self._at(number)
        if kind == EQUAL:
            return np.zeros(count, np.int64) if predicted is None else predicted
        if kind == CONSTANT:
            (base,) = _BASE.unpack_from(self._data, place)
            return np.full(count, base, np.int64) if predicted is None else predicted + base
        values = self._linear(place, count) if kind == LINEAR else self._narrow(kind, place, count)
        return values if predicted is None else values + predicted

    def octets(self, number: int) -> NDArray[np.uint8]:
        """The bytes of a column; not to be written to."""
        kind, place, count = self._at(number)
        if kind == EQUAL:
            return np.zeros(count, np.uint8)
        if kind != OCTETS:
            raise ValueError(f"no column of bytes is of kind {kind}")
        return np.frombuffer(self._data, np.uint8, count, place)

    def octets_between(self, number: int, first: int, stop: int) -> bytes:
        """Some bytes of a column, ``octets(number)[first:stop]``, which has as many."""
        try:
            place = self._start + self._places[number]
            kind = self._data[place]
            if kind == EQUAL:
                octets = bytes(stop - first)
            elif kind == OCTETS:
                place += 1
                octets = self._data[place + first : place + stop]
            else:
                raise ValueError(f"no column of bytes is of kind {kind}")
            if not 0 <= first <= stop <= self._counts[number] or len(octets) != stop - first:
                raise IndexError(f"no {first} to {stop} in a column of {self._counts[number]}")
        except NOT_WRITTEN_BY_US as exc:
            raise impossible(exc) from exc
        return octets

    def booleans(self, number: int) -> NDArray[np.bool_]:
        """The truth values of a column."""
        kind, place, count = self._at(number)
        if kind == EQUAL:
            return np.zeros(count, np.bool_)
        if kind != BITS:
            raise ValueError(f"no column of truth values is of kind {kind}")
        packed = np.frombuffer(self._data, np.uint8, (count + 7) // 8, place)
        return np.unpackbits(packed, count=count).view(np.bool_)

    def _at(self, number: int) -> tuple[int, int, int]:
        """A column's kind, where what follows it begins, and the number of values."""
        place = self._start + self._places[number]
        return self._data[place], place + 1, self._counts[number]

    def _linear(self, place: int, count: int) -> Integers:
        base, step = _BASE_AND_STEP.unpack_from(self._data, place)
        values = np.arange(count)
        values *= step
        values += base
        return values

    def _narrow(self, width: int, place: int, count: int) -> Integers:
        if width not in _TYPES:
            raise ValueError(f"no column of numbers is of kind {width}")
        (base,) = _BASE.unpack_from(self._data, place)
        stored = np.frombuffer(self._data, _TYPES[width], count, place + _BASE.size)
        values = stored.astype(np.int64)
        if base:
            values += base
        return values


def impossible(exc: Exception) -> IndexFileError:
    """What is said of bytes that ``ColumnWriter`` didn't write."""
    return IndexFileError(
        "the index says of this video what can't be",
        remedy="Build it anew with `reelseek index`",
        detail=str(exc),
    )


def _wrapped(value: int) -> int:
    """Modulo 2**64, as an int64 holds it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
