"""The same bit fields of many headers at once, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek._truths import is_any

MOST_WINDOW_BYTES = 24
"""How much is looked at from a position on."""
PADDING_BYTES = MOST_WINDOW_BYTES
"""Zeros that must follow the bytes, so that reading ahead stays inside."""
MOST_BITS = 64 - 7
"""Bits that are there whatever the place in a byte."""
LONGEST_CODE = 24
"""Leading zeros of an Exp-Golomb number, at most."""
SHORT_BITS = 11
"""Exp-Golomb numbers of up to so many bits, nearly all in slice headers, are looked up."""

Ints = NDArray[np.int64]


def _short_codes() -> tuple[Ints, Ints]:
    """For each of the next ``SHORT_BITS`` bits a code's length and its number; 0 for longer."""
    ahead = np.arange(1 << SHORT_BITS)
    bits = 2 * (SHORT_BITS - np.frexp(ahead)[1].astype(np.int64)) + 1
    is_short = bits <= SHORT_BITS
    bits = np.where(is_short, bits, 0)
    return bits, np.where(is_short, (ahead >> (SHORT_BITS - bits)) - 1, 0)


_LENGTHS, _NUMBERS = _short_codes()


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
        self._left = 0  # the numbers differ in length: what is left is found anew
        words = self._words << self._place.astype(np.uint64)
        short = words >> np.uint64(64 - SHORT_BITS)
        read, value = _LENGTHS[short], _NUMBERS[short]
        is_long = read == 0
        if is_any(is_long):
            read, value = self._long_codes(words)
        if where is None:
            self._place = self._place + read
            return value, is_long & (read == 1)
        self._place = self._place + read * where
        return np.where(where, value, 0), is_long & (read == 1) & where

    def _long_codes(self, words: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """The length and number of each; 1 and 0 for one that is too long."""
        ahead = words >> np.uint64(64 - LONGEST_CODE - 1)
        length = np.frexp(ahead.astype(np.float64))[1].astype(np.int64)  # bits up to the first one
        zeros = np.where(length > 0, LONGEST_CODE + 1 - length, 0)
        read = 2 * zeros + 1
        value = (words >> (64 - read).astype(np.uint64)).astype(np.int64) - 1
        return read, np.where(length > 0, value, 0)

    def num_read(self) -> Ints:
        """How many bits of each header were read."""
        whole_bytes: Ints = self._start - self._first
        return whole_bytes * 8 + self._place
