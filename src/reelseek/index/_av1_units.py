"""AV1 units: the frames of each temporal unit, and the reference slots that each uses."""

from __future__ import annotations

from dataclasses import dataclass, field

from reelseek.bitstream._av1_headers import (
    ALL_SLOTS,
    LONG_HEADER_BYTES,
    FrameType,
    SequenceHeader,
    Slots,
    UnprovenError,
    read_sequence_header,
)
from reelseek.bitstream._obu import ObuType, iter_obus
from reelseek.index._units import UnitFlag


@dataclass(slots=True)
class Av1Units:
    """Follows a stream, temporal unit by temporal unit, and lists its units.

    What isn't followed (layers, several sequence headers, lost references, interleaved OBUs) ends
    the listing; ``why_not`` says what it was.
    """

    offset: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    sequence_bytes: bytes = b""
    """The sequence header OBU, its own header included."""
    why_not: str = ""
    _sequence: SequenceHeader | None = None
    _slots: Slots = field(default_factory=Slots)

    def add(self, data: bytes, offset: int) -> None:
        """Follow the next temporal unit, which lies at this position of the file."""
        if self.why_not:
            return
        try:
            self._add(data, offset)
        except (UnprovenError, EOFError, ValueError) as exc:
            self.why_not = f"a frame {exc}" if isinstance(exc, UnprovenError) else "damaged headers"

    def _add(self, data: bytes, offset: int) -> None:
        shown = 0
        opened = -1  # the unit whose tile groups may follow
        has_sequence = False
        flag = int(UnitFlag.STARTS_PACKET)
        for kind, start, payload, end in iter_obus(data):
            if data[start] & 0x04:
                raise UnprovenError("belongs to a layer")
            if kind == ObuType.SEQUENCE_HEADER:
                self._take_sequence(data[start:end], data[payload:end])
                has_sequence = True
            elif kind in (ObuType.FRAME, ObuType.FRAME_HEADER):
                if self._sequence is None:
                    raise UnprovenError("comes before any sequence header")
                header = self._slots.read_frame_header(
                    data[payload : payload + LONG_HEADER_BYTES], self._sequence
                )
                is_entry = header.frame_type is FrameType.KEY and header.shows
                is_entry = is_entry and header.shows_slot < 0 and has_sequence
                self.offset.append(offset + start)
                self.size.append(end - start)
                self.reads.append(header.reads)
                self.writes.append(header.writes)
                self.flags.append(
                    flag
                    | (UnitFlag.SHOWN if header.shows else 0)
                    | (UnitFlag.ENTRY if is_entry and header.writes == ALL_SLOTS else 0)
                )
                shown += header.shows
                flag = 0
                opened = len(self.size) - 1 if kind == ObuType.FRAME_HEADER else -1
                if kind == ObuType.FRAME_HEADER and header.shows_slot >= 0:
                    opened = -1
            elif kind == ObuType.TILE_GROUP:
                if opened < 0:
                    raise UnprovenError("has tile groups apart from its header")
                self.size[opened] = offset + end - self.offset[opened]
            elif kind in (ObuType.TILE_LIST, ObuType.REDUNDANT_FRAME_HEADER):
                raise UnprovenError("has OBUs for large scale tiles, or a header sent twice")
        if shown != 1:
            raise UnprovenError(f"is one of {shown} that a temporal unit shows")

    def _take_sequence(self, whole: bytes, payload: bytes) -> None:
        if whole == self.sequence_bytes:
            return
        if self.sequence_bytes:
            raise UnprovenError("comes after another sequence header than the first")
        sequence = read_sequence_header(payload)
        if sequence.has_layers:
            raise UnprovenError("belongs to a layer")
        self._sequence, self.sequence_bytes = sequence, whole
