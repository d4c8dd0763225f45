"""All that is known of one video file before it is read."""

from __future__ import annotations

from dataclasses import dataclass, field

from reelseek.index._stamp import Stamp
from reelseek.index._table import FrameTable
from reelseek.index._units import UnitTable


@dataclass(frozen=True, slots=True, eq=False)
class VideoTables:
    """The frames of a file, and the units that give them."""

    frames: FrameTable
    """What frame numbers mean for this file."""
    units: UnitTable | str
    """Where its units are and what they refer to; or why it can't be read by them."""
    stamp: Stamp | None = field(default=None, compare=False)
    """The file's when they were made; None where that isn't known."""
