"""The rows of one episode at a time, kept in memory up to a bound."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek._fork_lock import ForkLock
from reelseek.datasets._records import Layout, RowSpan
from reelseek.errors import DatasetFormatError

CACHE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """All rows of one episode."""

    position: int
    """The episode's place among all episodes."""
    episode: int
    """The episode's number."""
    path: Path
    """The parquet file."""
    columns: dict[str, NDArray[Any]]
    """Column name to array (rows, ...)."""

    def column(self, name: str) -> NDArray[Any]:
        """A column's values, (rows, ...).

        Raises:
            DatasetFormatError: This episode hasn't got it.
        """
        values = self.columns.get(name)
        if values is None:
            raise DatasetFormatError(
                f"episode {self.episode} has no column {name!r}",
                remedy=f"It has {', '.join(self.columns)}; leave the episode out with `episodes=`",
                path=self.path,
            )
        return values

    def times(self, fps: float) -> NDArray[Any]:
        """(rows,) seconds since the episode's start, as stored, or counted where they aren't.

        Raises:
            DatasetFormatError: A time is not a number.
        """
        from reelseek.datasets._parquet import times

        if "timestamp" in self.columns:
            return times(self.columns, "timestamp", self.path)
        return np.arange(len(next(iter(self.columns.values()), ()))) / fps


class RowStore:
    """Reads episodes' rows, and keeps the last ones used.

    Threads: safe. Fork: the rows kept go along. Pickling: none goes along.
    """

    def __init__(self, layout: Layout, unused: frozenset[str] = frozenset()) -> None:
        self._layout = layout
        self._unused = unused  # columns that no sample holds, such as pictures of other cameras
        self._kept: OrderedDict[int, tuple[Rows, int]] = OrderedDict()
        self._bytes = 0
        self._lock = ForkLock()

    def rows_of(self, position: int) -> Rows:
        """All columns of the episode at this place.

        Raises:
            DatasetNotFoundError: Its parquet file isn't there.
            DatasetFormatError: The file is damaged, or holds other rows than ``meta`` says.
        """
        with self._lock:
            kept = self._kept.get(position)
            if kept is not None:
                self._kept.move_to_end(position)
                return kept[0]
        rows = self._read(position)
        with self._lock:
            if position not in self._kept:
                size = _size(rows.columns)
                self._kept[position] = rows, size
                self._bytes += size
            while self._bytes > CACHE_BYTES and len(self._kept) > 1:
                _position, (_dropped, size) = self._kept.popitem(last=False)
                self._bytes -= size
        return rows

    def has_room(self) -> bool:
        """True where another episode's rows can be kept beside those that are."""
        with self._lock:
            mean = self._bytes / len(self._kept) if self._kept else 0
            return self._bytes + mean <= CACHE_BYTES

    def _read(self, position: int) -> Rows:
        from reelseek.datasets._parquet import read_rows

        span = self._layout.rows_of(position)
        episode = int(self._layout.episodes.indices[position])
        columns = read_rows(span, episode, self._unused)
        _check(columns, span, episode)
        return Rows(position, episode, span.path, columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowStore, (self._layout, self._unused)


def _check(columns: dict[str, NDArray[Any]], span: RowSpan, episode: int) -> None:
    from reelseek.datasets._parquet import counts

    if span.is_whole_file and "episode_index" not in columns:
        return
    numbers = counts(columns, "episode_index", span.path)
    others = numbers[numbers != episode]
    if len(others):
        raise DatasetFormatError(
            f"the rows of episode {episode} say that they are of episode {others[0]}",
            remedy="Copy the dataset again: its data and meta folders don't belong together",
            path=span.path,
        )


def _size(columns: dict[str, NDArray[Any]]) -> int:
    return sum(
        sum(map(_object_size, values.flat)) if values.dtype == object else values.nbytes
        for values in columns.values()
    )


def _object_size(value: Any) -> int:
    """About the bytes that a cell holds; pictures are dicts with their file's bytes."""
    if isinstance(value, dict):
        return 64 + sum(map(_object_size, value.values()))
    if isinstance(value, np.ndarray):
        return 64 + value.nbytes
    return 64 + (len(value) if isinstance(value, bytes | str) else 0)
