"""The same bit fields of many headers at once, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_WINDOW_BYTES = 24
"""How much is looked at from a position on."""
PADDING_BYTES = MOST_WINDOW_BYTES
"""Zeros that must follow the bytes, so that reading ahead stays inside."""
MOST_BITS = 64 - 7
"""Bits that are there whatever the place in a byte."""
LONGEST_CODE = 24
"""Leading zeros of an Exp-Golomb number, at most."""

Ints = NDArray[np.int64]


def windows(data: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """(N - size + 1, size) the bytes from each position on, which aren't copied."""
    return np.ndarray((len(data) - size + 1, size), np.uint8, data, strides=(1, 1))


class BitColumns:
    """Reads the same fields of all headers at once."""

    def __init__(self, data: NDArray[np.uint8], start: Ints) -> None:
        self._data = data
        self._start: Ints = start
        self._first: Ints = start
        self._place: Ints = np.zeros(len(start), np.int64)
        self._load()

    def _load(self) -> None:
        """Take the next 57 bits or more; PADDING_BYTES follow the last header."""
        self._start = self._start + (self._place >> 3)
        self._place = self._place & 7
        inside = np.minimum(self._start, len(self._data) - 8)
        # A word of eight bytes begins at each byte.
        words: NDArray[Any] = np.ndarray(len(self._data) - 7, ">u8", self._data, strides=1)
        self._words = words[inside].astype(np.uint64)
        self._left = MOST_BITS

    def take(self, count: int, where: NDArray[np.bool_] | None = None) -> Ints:
        """The next bits of all headers, or of some; 0 for the others."""
        if count > MOST_BITS:
            raise ValueError(f"{count} bits at once")
        if count > self._left:
            self._load()
        self._left -= count
        shift = (64 - count - self._place).astype(np.uint64)
        value: Ints = ((self._words >> shift) & np.uint64((1 << count) - 1)).astype(np.int64)
        if where is None:
            self._place = self._place + count
            return value
        self._place = self._place + count * where
        return np.where(where, value, 0)

    def flag(self, where: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """The next bit of all headers, or of some; False for the others."""
        is_set: NDArray[np.bool_] = self.take(1, where) == 1
        return is_set

    def exp_golomb(self, where: NDArray[np.bool_] | None = None) -> tuple[Ints, NDArray[np.bool_]]:
        """The next unsigned Exp-Golomb number, ue(v) in H.264 and HEVC.

        Returns:
            The numbers, and True where one is longer than any that a slice header needs; nothing
            that follows it in its header is right.
        """
        self._load()
        ahead = (self._words << self._place.astype(np.uint64)) >> np.uint64(64 - LONGEST_CODE - 1)
        length = np.frexp(ahead.astype(np.float64))[1].astype(np.int64)  # bits up to the first one
        zeros = np.where(length > 0, LONGEST_CODE + 1 - length, 0)
        shift = (64 - self._place - 2 * zeros - 1).astype(np.uint64)
        mask = (np.uint64(1) << (2 * zeros + 1).astype(np.uint64)) - np.uint64(1)
        value = ((self._words >> shift) & mask).astype(np.int64) - 1
        read = 2 * zeros + 1
        self._left = 0  # the numbers differ in length: what is left is found anew
        if where is None:
            self._place = self._place + read
            return value, length == 0
        self._place = self._place + read * where
        return np.where(where, value, 0), where & (length == 0)

    def num_read(self) -> Ints:
        """How many bits of each header were read."""
        whole_bytes: Ints = self._start - self._first
        return whole_bytes * 8 + self._place
