"""The unit table: where each decodable piece of a stream is, and what it reads and writes.

A unit is what a decoder can be fed on its own: a packet, or, in AV1, one frame of a temporal unit
(OBU_FRAME, or OBU_FRAME_HEADER with its OBU_TILE_GROUPs, shown or hidden, or a show_existing_frame
header). Dependencies are kept as the reference slots that a unit reads and writes: what a unit
needs is found by walking back from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag

import numpy as np
from numpy.typing import NDArray

UNIT = np.dtype(
    [("offset", "<i8"), ("size", "<i4"), ("reads", "u1"), ("writes", "u1"), ("flags", "u1")]
)
"""One unit: position and length in bytes, slots read and written as bit sets, and UnitFlag."""


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


class Pruning(Enum):
    """How the units that a frame needs are found."""

    SLOTS = "only the frames that it refers to"
    """AV1: the closure over reference slots."""
    DROPPABLE = "all frames from its key frame on, without those that nothing refers to"
    """H.264 and HEVC: non-reference pictures are left out."""
    NONE = "all frames from its key frame on"
    """Everything else."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnitTable:
    """The units of one stream in decoding order."""

    units: NDArray[np.void]
    """(U,) of ``UNIT``."""
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

    def __repr__(self) -> str:
        return f"UnitTable({len(self.units)} units, {len(self.of_frame)} frames, {self.codec})"
