"""A batch as it was read: numbers and times become arrays when somebody looks at them.

Training looks at the pixels alone, and to look up and convert the times of a few frames takes
longer than to find their bytes.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np

from reelseek.errors import IndexFileError
from reelseek.index import FrameTable
from reelseek.types import FrameBatch, Pixels


class ReadBatch(FrameBatch):
    """A FrameBatch that looks its frames' numbers and times up in their table.

    It keeps the table until its times have been looked at. Where the table comes from an index file
    that is damaged there, to look at them raises IndexFileError.
    """

    _path: str
    _frames: list[int]
    _table: FrameTable

    def __new__(cls, *fields: Any, **named_fields: Any) -> FrameBatch:  # type: ignore[misc]
        """A plain batch: ``dataclasses.replace`` and copies have no table behind them."""
        return FrameBatch(*fields, **named_fields)

    def __getattr__(self, name: str) -> Any:
        known = vars(self)
        if name == "indices":
            known[name] = np.array(self._frames, np.int64)
        elif name in ("pts_seconds", "duration_seconds"):
            self._look_up_times()
        else:
            raise AttributeError(f"'FrameBatch' object has no attribute {name!r}")
        return known[name]

    def _look_up_times(self) -> None:
        table: FrameTable | None = vars(self).get("_table")
        if table is None:  # another thread was here meanwhile
            return
        try:
            pts_seconds, duration_seconds = table.times_at(self._frames)
        except IndexFileError as exc:
            exc.path = self._path
            raise
        vars(self).update(pts_seconds=pts_seconds, duration_seconds=duration_seconds)
        vars(self).pop("_table", None)

    def __setattr__(self, name: str, _value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __len__(self) -> int:
        return len(self._frames)

    def __reduce__(self) -> tuple[Any, ...]:
        return FrameBatch, (self.pixels, self.indices, self.pts_seconds, self.duration_seconds)


def read_batch(path: str, pixels: Pixels, frames: list[int], table: FrameTable) -> FrameBatch:
    """A batch of frames.

    Args:
        path: Their video, for errors.
        pixels: (T, H, W, 3) uint8.
        frames: Their T numbers; the batch's own from now on.
        table: Says when they appear.
    """
    batch = object.__new__(ReadBatch)
    vars(batch).update(pixels=pixels, _path=path, _frames=frames, _table=table)  # it is frozen
    return batch
