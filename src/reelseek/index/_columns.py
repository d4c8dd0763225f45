"""Columns of whole numbers in few bytes: what is regular costs nothing.

A column is stored as its difference from a prediction, which the reader makes from columns that it
has already. The difference is nothing, one number, an evenly rising row, or numbers of 1, 2, 4 or
8 bytes above the smallest. Arithmetic is modulo 2**64, so that every column comes back exactly.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_BASE = struct.Struct("<q")
_BASE_AND_STEP = struct.Struct("<qq")
_WIDTHS = (1, 2, 4, 8)
_TYPES = {width: np.dtype(f"<u{width}") for width in _WIDTHS}


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
# 1, 2, 4 and 8: the smallest number (int64), then what each is above it in so many bytes.


class ColumnWriter:
    """Puts columns one behind the other."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def integers(self, values: Integers, predicted: Integers | None = None) -> None:
        """Add numbers; the reader has to pass the same prediction."""
        rest = values if predicted is None else values - predicted
        self._parts.append(_stored(np.ascontiguousarray(rest, np.int64)))

    def booleans(self, values: NDArray[np.bool_]) -> None:
        """Add truth values."""
        if not values.any():
            self._parts.append(bytes([EQUAL]))
        else:
            self._parts.append(bytes([BITS]) + np.packbits(values).tobytes())

    def getvalue(self) -> bytes:
        """All columns."""
        return b"".join(self._parts)


def _stored(rest: Integers) -> bytes:
    if not rest.any():
        return bytes([EQUAL])
    first = int(rest[0])
    if (rest == first).all():
        return bytes([CONSTANT]) + _BASE.pack(first)
    step = rest[1:2] - rest[:1]
    if np.array_equal(rest, np.arange(len(rest)) * step + first):
        return bytes([LINEAR]) + _BASE_AND_STEP.pack(first, int(step[0]))
    least, most = int(rest.min()), int(rest.max())
    width = next((w for w in _WIDTHS if most - least < 1 << (8 * w)), 8)
    base = 0 if width == 8 else least
    above = (rest - base).view(np.uint64).astype(_TYPES[width])
    return bytes([width]) + _BASE.pack(base) + above.tobytes()


class ColumnReader:
    """Reads what a ``ColumnWriter`` put together.

    Bytes that it didn't write give ValueError, struct.error or IndexError, or other numbers;
    whoever doesn't trust them checks a sum first.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self._position = position

    def integers(self, count: int, predicted: Integers | None = None) -> Integers:
        """The next ``count`` numbers."""
        kind = self._data[self._position]
        self._position += 1
        if kind == EQUAL:
            return np.zeros(count, np.int64) if predicted is None else predicted
        if kind == CONSTANT:
            (base,) = self._take(_BASE)
            return np.full(count, base, np.int64) if predicted is None else predicted + base
        values = self._linear(count) if kind == LINEAR else self._narrow(kind, count)
        return values if predicted is None else values + predicted

    def booleans(self, count: int) -> NDArray[np.bool_]:
        """The next ``count`` truth values."""
        kind = self._data[self._position]
        self._position += 1
        if kind == EQUAL:
            return np.zeros(count, np.bool_)
        if kind != BITS:
            raise ValueError(f"no column of truth values is of kind {kind}")
        packed = np.frombuffer(self._data, np.uint8, (count + 7) // 8, self._position)
        self._position += len(packed)
        return np.unpackbits(packed, count=count).view(np.bool_)

    def _linear(self, count: int) -> Integers:
        base, step = self._take(_BASE_AND_STEP)
        values = np.arange(count)
        values *= step
        values += base
        return values

    def _narrow(self, width: int, count: int) -> Integers:
        if width not in _TYPES:
            raise ValueError(f"no column of numbers is of kind {width}")
        (base,) = self._take(_BASE)
        stored = np.frombuffer(self._data, _TYPES[width], count, self._position)
        self._position += width * count
        values = stored.astype(np.int64)
        if base:
            values += base
        return values

    def _take(self, numbers: struct.Struct) -> tuple[int, ...]:
        found = numbers.unpack_from(self._data, self._position)
        self._position += numbers.size
        return found
