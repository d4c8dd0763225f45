"""AV1 units: the frames of each temporal unit, and the reference slots that each uses."""

from __future__ import annotations

from dataclasses import dataclass, field

from reelseek.bitstream._av1_headers import (
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
    _tiles: int = 0
    _has_sequence: bool = False
    """True where the temporal unit brought a sequence header."""
    _awaits_tiles: bool = False
    """True behind a frame header whose tile groups haven't come yet."""
    _takes_tiles: bool = False
    """True behind a frame header and its tile groups."""

    def add(self, data: bytes, offset: int) -> None:
        """Follow the next temporal unit, which lies at this position of the file."""
        if self.why_not:
            return
        try:
            self._add(data, offset)
        except (UnprovenError, EOFError, ValueError) as exc:
            self.why_not = f"a frame {exc}" if isinstance(exc, UnprovenError) else "damaged headers"

    def _add(self, data: bytes, offset: int) -> None:
        self._awaits_tiles = self._takes_tiles = False
        self._has_sequence = False
        first = len(self.size)
        for kind, start, payload, end in iter_obus(data):
            if data[start] & 0x04:
                raise UnprovenError("belongs to a layer")
            if kind == ObuType.SEQUENCE_HEADER:
                self._take_sequence(data[start:end], data[payload:end])
            elif kind in (ObuType.FRAME, ObuType.FRAME_HEADER):
                self._take_frame(kind, data[payload : min(end, payload + LONG_HEADER_BYTES)])
                self.offset.append(offset + start)
                self.size.append(end - start)
            elif kind == ObuType.TILE_GROUP:
                if not self._takes_tiles:
                    raise UnprovenError("has tile groups apart from its header")
                self.size[-1] = offset + end - self.offset[-1]
                self._awaits_tiles = False
            elif kind in (ObuType.TILE_LIST, ObuType.REDUNDANT_FRAME_HEADER):
                raise UnprovenError("has OBUs for large scale tiles, or a header sent twice")
        if self._awaits_tiles:
            raise UnprovenError("has a header without tiles")
        shown = sum(flags & UnitFlag.SHOWN for flags in self.flags[first:])
        if shown != 1:
            raise UnprovenError(f"is one of {shown} that a temporal unit shows")
        self.flags[first] |= UnitFlag.STARTS_PACKET

    def _take_frame(self, kind: int, payload: bytes) -> None:
        if self._sequence is None:
            raise UnprovenError("comes before any sequence header")
        if self._awaits_tiles:
            raise UnprovenError("has a header without tiles")
        header = self._slots.read_frame_header(payload, self._sequence)
        self._check_tiles(header.tiles)
        is_coded = header.shows_slot < 0
        is_entry = header.frame_type is FrameType.KEY and header.shows and is_coded
        self.reads.append(header.reads)
        self.writes.append(header.writes)
        self.flags.append(
            (UnitFlag.SHOWN if header.shows else 0)
            | (UnitFlag.ENTRY if is_entry and self._has_sequence else 0)
        )
        self._awaits_tiles = self._takes_tiles = kind == ObuType.FRAME_HEADER and is_coded

    def _check_tiles(self, tiles: int) -> None:
        """A decoder drops a frame silently that lacks tiles: none may have another number."""
        if tiles and self._tiles and tiles != self._tiles:
            raise UnprovenError("has another number of tiles than the first")
        self._tiles = self._tiles or tiles

    def _take_sequence(self, whole: bytes, payload: bytes) -> None:
        self._has_sequence = True
        if whole == self.sequence_bytes:
            return
        if self.sequence_bytes:
            raise UnprovenError("comes after another sequence header than the first")
        sequence = read_sequence_header(payload)
        if sequence.has_layers:
            raise UnprovenError("belongs to a layer")
        self._sequence, self.sequence_bytes = sequence, whole
