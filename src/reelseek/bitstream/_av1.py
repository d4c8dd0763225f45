"""What an AV1 temporal unit shows, and whether decoding can start at it.

Source: AV1 bitstream specification 1.0.0 errata 1, 5.9.2 (uncompressed header).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reelseek.bitstream._obu import ObuType, iter_obus

STILL_PICTURE_HEADER = 0x10
"""What the first byte of a frame header is where it isn't written: a key frame that is shown."""


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
        except ValueError:
            return Av1Facts(False, 0, self._sequence_header, starts_with_key=False)
        # show_existing_frame (1 bit), frame_type (2), show_frame (1); 0 is KEY_FRAME.
        shown = sum(bool(header & 0x90) for header in headers)
        starts_with_key = bool(headers) and headers[0] & 0xF0 == 0x10
        return Av1Facts(True, shown, self._sequence_header, starts_with_key=starts_with_key)

    def _frame_headers(self, unit: bytes) -> Iterator[int]:
        """The first byte of each frame header; 5.9.2 gives a still picture's where it has none."""
        for kind, _start, payload, end in iter_obus(unit):
            if kind not in (ObuType.SEQUENCE_HEADER, ObuType.FRAME_HEADER, ObuType.FRAME):
                continue
            if payload == end:
                raise ValueError(f"OBU before byte {end}: it is empty")
            if kind == ObuType.SEQUENCE_HEADER:
                self._sequence_header = unit[payload:end]
                self._is_still_picture = bool(unit[payload] & 0x08)  # reduced_still_picture_header
            else:
                yield STILL_PICTURE_HEADER if self._is_still_picture else unit[payload]
