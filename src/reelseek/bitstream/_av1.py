"""What an AV1 temporal unit shows, and whether decoding can start at it.

Source: AV1 bitstream specification 1.0.0 errata 1, 5.3 (OBU syntax), 5.9.2 (uncompressed header)
and 4.10.5 (leb128).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

OBU_SEQUENCE_HEADER, OBU_FRAME_HEADER, OBU_FRAME = 1, 3, 6


@dataclass(frozen=True, slots=True)
class Av1Facts:
    """What a temporal unit says."""

    is_whole: bool
    """True where it is made of whole OBUs; what follows says nothing where it isn't."""
    shown_frames: int
    """The number of frames that it shows."""
    sequence_header: bytes
    """The last sequence header, in this unit or before it."""
    starts_with_key: bool
    """True where its first frame is a key frame that is shown: decoding can start here."""


class Av1Reader:
    """Reads temporal units, one after the other."""

    def __init__(self) -> None:
        self._is_still_picture = False
        self._sequence_header = b""

    def read(self, unit: bytes) -> Av1Facts:
        """What a temporal unit says."""
        try:
            headers = list(self._frame_headers(unit))
        except (IndexError, ValueError):
            return Av1Facts(False, 0, self._sequence_header, starts_with_key=False)
        # show_existing_frame (1 bit), frame_type (2), show_frame (1); 0 is KEY_FRAME.
        shown = sum(bool(header & 0x90) for header in headers)
        starts_with_key = bool(headers) and headers[0] & 0xF0 == 0x10
        return Av1Facts(True, shown, self._sequence_header, starts_with_key=starts_with_key)

    def _frame_headers(self, unit: bytes) -> Iterator[int]:
        """The first byte of each frame header; 5.9.2 gives a still picture's where it has none."""
        for kind, payload in _iter_obus(unit):
            if kind == OBU_SEQUENCE_HEADER:
                self._sequence_header = payload
                self._is_still_picture = bool(payload[0] & 0x08)  # reduced_still_picture_header
            elif kind in (OBU_FRAME_HEADER, OBU_FRAME):
                yield 0x10 if self._is_still_picture else payload[0]


def _iter_obus(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each OBU's type and payload; ValueError or IndexError where the bytes are no OBUs."""
    position = 0
    while position < len(data):
        header = data[position]
        if header & 0x80:  # obu_forbidden_bit
            raise ValueError(position)
        position += 2 if header & 0x04 else 1  # obu_extension_flag
        size = len(data) - position
        if header & 0x02:  # obu_has_size_field
            size, position = _leb128(data, position)
        if size < 0 or position + size > len(data):
            raise ValueError(position)
        yield header >> 3 & 15, data[position : position + size]
        position += size


def _leb128(data: bytes, position: int) -> tuple[int, int]:
    """A length and the position after it."""
    value = 0
    for index in range(8):
        byte = data[position + index]
        value |= (byte & 0x7F) << (index * 7)
        if not byte & 0x80:
            return value, position + index + 1
    raise ValueError(position)
