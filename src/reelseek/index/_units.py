"""The unit table: where each decodable piece of a stream is, and what it reads and writes.

A unit is what a decoder can be fed on its own: a packet, or, in AV1, one frame of a temporal unit
(OBU_FRAME, or OBU_FRAME_HEADER with its OBU_TILE_GROUPs, shown or hidden, or a show_existing_frame
header). Dependencies are kept as the reference slots that a unit reads and writes: what a unit
needs is found by walking back from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntFlag

import numpy as np
from numpy.typing import NDArray


class UnitFlag(IntFlag):
    """What a unit is."""

    SHOWN = 1
    """The decoder puts out a frame for it."""
    ENTRY = 2
    """Decoding can start here, and is exact for what follows in display order too."""
    DROPPABLE = 4
    """No other unit reads it."""
    STARTS_PACKET = 8
    """The first unit of its packet."""
    LEADING = 16
    """Displayed before an entry that comes ahead of it: it is reached from an earlier one. Not set
    in AV1, where references say what is needed."""


class Pruning(Enum):
    """How the units that a frame needs are found."""

    SLOTS = "only the frames that it refers to"
    """AV1: the closure over reference slots."""
    DROPPABLE = "all frames from its key frame on, without those that nothing refers to"
    """H.264 and HEVC: non-reference pictures are left out."""
    NONE = "all frames from its key frame on"
    """Everything else."""


# Without slots: what is looked up late is kept among a table's other attributes.
@dataclass(frozen=True, eq=False, repr=False)
class UnitTable:
    """The units of one stream in decoding order."""

    offset: NDArray[np.int64]
    """(U,) the position of each unit in the file, in bytes."""
    size: NDArray[np.int64]
    """(U,) the number of each unit's bytes."""
    reads: NDArray[np.uint8]
    """(U,) the reference slots that each unit reads, as a bit set."""
    writes: NDArray[np.uint8]
    """(U,) the reference slots that each unit writes, as a bit set."""
    flags: NDArray[np.uint8]
    """(U,) of ``UnitFlag``."""
    of_frame: NDArray[np.int64]
    """(N,) the unit that displays each frame."""
    entry_of_frame: NDArray[np.int64]
    """(N,) the unit from which decoding reaches each frame exactly; -1 where there is none."""
    entry_of_unit: NDArray[np.int64]
    """(U,) the same for the frame that each unit displays; the unit itself for a hidden one."""
    pruning: Pruning
    """How the units that a frame needs are found."""
    pruning_reason: str
    """Why not by slots; empty where it is."""
    codec: str
    """The codec's name."""
    configuration: bytes
    """What the decoder is told first: the codec's configuration record; in AV1 the sequence
    header OBU, which goes before the first unit."""

    def __len__(self) -> int:
        return len(self.size)

    def for_many_reads(self) -> UnitTable:
        """The same table, where whole columns are looked up rather than single values."""
        return self

    def spans_of(self, frames: Sequence[int]) -> list[tuple[int, int]]:
        """``entry_of_frame`` and ``of_frame`` of these frames."""
        entry, unit = self.entry_of_frame.item, self.of_frame.item
        return [(entry(frame), unit(frame)) for frame in frames]

    def places_of(self, units: Sequence[int]) -> list[tuple[int, int]]:
        """Where units' bytes are: the position of each in the file, and their number."""
        offset, size = self.offset.item, self.size.item
        return [(offset(unit), size(unit)) for unit in units]

    def slots_between(self, first: int, stop: int) -> tuple[Sequence[int], Sequence[int]]:
        """``reads[first:stop]`` and ``writes[first:stop]``."""
        return self.reads[first:stop].tolist(), self.writes[first:stop].tolist()

    def flags_between(self, first: int, stop: int) -> Sequence[int]:
        """``flags[first:stop]``."""
        flags: list[int] = self.flags[first:stop].tolist()
        return flags

    def __repr__(self) -> str:
        return f"UnitTable({len(self)} units, {len(self.of_frame)} frames, {self.codec})"
