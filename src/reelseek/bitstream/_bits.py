"""A reader of bits, bounded by the bytes that are left."""

from __future__ import annotations

LONGEST_HEADER_BYTES = 4096
"""More than any parameter set or slice header takes."""


class BitReader:
    """Reads bits from the most significant on; raises EOFError at the end."""

    __slots__ = ("_left", "_value")

    def __init__(self, data: bytes) -> None:
        self._value = int.from_bytes(data, "big")
        self._left = len(data) * 8

    def take(self, count: int) -> int:
        """An unsigned number of this many bits: f(n) in AV1, u(n) in H.264 and HEVC."""
        if count > self._left:
            raise EOFError
        self._left -= count
        return (self._value >> self._left) & ((1 << count) - 1)

    def flag(self) -> bool:
        """One bit."""
        return self.take(1) == 1

    def exp_golomb(self) -> int:
        """An unsigned Exp-Golomb number: ue(v) in H.264 and HEVC."""
        zeros = 0
        while not self.take(1):
            zeros += 1
            if zeros > 32:
                raise EOFError
        return (1 << zeros) - 1 + self.take(zeros)

    def count(self, most: int) -> int:
        """An Exp-Golomb number of things to come; EOFError where the standard allows fewer."""
        value = self.exp_golomb()
        if value > most:
            raise EOFError
        return value

    def signed_exp_golomb(self) -> int:
        """A signed Exp-Golomb number: se(v) in H.264 and HEVC."""
        value = self.exp_golomb()
        return (value + 1) // 2 if value % 2 else -(value // 2)

    def non_symmetric(self, count: int) -> int:
        """A number below ``count``, as AV1 4.10.7 writes it: ns(n)."""
        length = count.bit_length()
        shorter = (1 << length) - count
        value = self.take(length - 1)
        return value if value < shorter else (value << 1) - shorter + self.take(1)

    def uvlc(self) -> int:
        """A variable-length number, as AV1 4.10.3 writes it."""
        zeros = 0
        while not self.take(1):
            zeros += 1
            if zeros >= 32:
                return (1 << 32) - 1
        return self.take(zeros) + (1 << zeros) - 1


def nal_bits(unit: bytes, header_bytes: int) -> BitReader:
    """A reader of what follows a NAL unit's header.

    Without the emulation prevention bytes, which are no part of it (H.264 7.4.1, H.265 7.4.2).
    Of its first bytes only: no header is longer, and a number that long is slow to take bits from.
    """
    return BitReader(unit[header_bytes:LONGEST_HEADER_BYTES].replace(b"\0\0\3", b"\0\0"))
