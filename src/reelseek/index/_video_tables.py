"""All that is known of one video file before it is read."""

from __future__ import annotations

from dataclasses import dataclass

from reelseek.index._build import index_video
from reelseek.index._table import FrameTable
from reelseek.index._unit_build import build_units
from reelseek.index._units import UnitTable


@dataclass(frozen=True, slots=True, eq=False)
class VideoTables:
    """The frames of a file, and the units that give them."""

    frames: FrameTable
    """What frame numbers mean for this file."""
    units: UnitTable | str | None
    """Where its units are and what they refer to; or why it can't be read by them; None where
    that wasn't looked at yet."""


def index_tables(path: str) -> VideoTables:
    """Index a file fully; errors as of ``index_video``."""
    frames = index_video(path)
    return VideoTables(frames, build_units(path, frames))
