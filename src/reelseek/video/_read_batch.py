"""A batch as it was read: numbers and times become arrays when somebody looks at them.

Training looks at the pixels alone, and to look up and convert the times of a few frames takes
longer than to find their bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reelseek.index import FrameTable
from reelseek.types import FrameBatch, Pixels


class ReadBatch(FrameBatch):
    """A FrameBatch that looks its frames' numbers and times up in their table."""

    _frames: list[int]
    _table: FrameTable

    def __new__(cls, *fields: Any, **named_fields: Any) -> FrameBatch:  # type: ignore[misc]
        """A plain batch: ``dataclasses.replace`` and copies have no table behind them."""
        return FrameBatch(*fields, **named_fields)

    def __getattr__(self, name: str) -> Any:
        if name == "indices":
            vars(self)[name] = np.array(self._frames, np.int64)
        elif name in ("pts_seconds", "duration_seconds"):
            pts_seconds, duration_seconds = self._table.times_at(self._frames)
            vars(self).update(pts_seconds=pts_seconds, duration_seconds=duration_seconds)
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return vars(self)[name]

    def __len__(self) -> int:
        return len(self._frames)

    def __reduce__(self) -> tuple[Any, ...]:
        return FrameBatch, (self.pixels, self.indices, self.pts_seconds, self.duration_seconds)


def read_batch(pixels: Pixels, frames: list[int], table: FrameTable) -> FrameBatch:
    """A batch of frames.

    Args:
        pixels: (T, H, W, 3) uint8.
        frames: Their T numbers; the batch's own from now on.
        table: Says when they appear.
    """
    batch = object.__new__(ReadBatch)
    vars(batch).update(pixels=pixels, _frames=frames, _table=table)  # it is frozen
    return batch
