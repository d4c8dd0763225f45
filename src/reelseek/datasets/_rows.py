"""The rows of one episode at a time, kept in memory up to a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._records import Layout
from reelseek.errors import DatasetFormatError

Columns = dict[str, NDArray[Any]]
"""Column name to array (rows, ...)."""

CACHE_BYTES = 64 * 1024 * 1024


class RowStore:
    """Reads episodes' rows, and keeps the last ones used.

    Threads: safe. Fork and pickling: the rows kept go along, nothing else is open.
    """

    def __init__(self, layout: Layout, unused: frozenset[str] = frozenset()) -> None:
        self._layout = layout
        self._unused = unused  # columns that no sample holds, such as pictures of other cameras
        self._kept: OrderedDict[int, Columns] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def rows_of(self, position: int) -> Columns:
        """All columns of the episode at this place.

        Raises:
            DatasetNotFoundError: Its parquet file isn't there.
            DatasetFormatError: The file is damaged, or holds other rows than ``meta`` says.
        """
        with self._lock:
            columns = self._kept.get(position)
            if columns is not None:
                self._kept.move_to_end(position)
                return columns
        columns = self._read(position)
        with self._lock:
            if position not in self._kept:
                self._kept[position] = columns
                self._bytes += _size(columns)
            while self._bytes > CACHE_BYTES and len(self._kept) > 1:
                _oldest, dropped = self._kept.popitem(last=False)
                self._bytes -= _size(dropped)
        return columns

    def _read(self, position: int) -> Columns:
        from reelseek.datasets._parquet import as_array, read_rows

        span = self._layout.rows_of(position)
        episode = int(self._layout.episodes.indices[position])
        table = read_rows(span, episode, self._unused)
        columns = {name: as_array(table[name], name, span.path) for name in table.column_names}
        _check(columns, span.path, episode)
        return columns

    def __getstate__(self) -> dict[str, Any]:
        return {"layout": self._layout, "unused": self._unused}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _check(columns: Columns, path: Path, episode: int) -> None:
    numbers = columns.get("episode_index")
    if numbers is not None and len(numbers) and np.any(numbers != episode):
        other = int(numbers[numbers != episode][0])
        raise DatasetFormatError(
            f"the rows of episode {episode} say that they are of episode {other}",
            remedy="Copy the dataset again: its data and meta folders don't belong together",
            path=path,
        )


def _size(columns: Columns) -> int:
    return sum(
        values.nbytes if values.dtype != object else 64 * len(values) + _object_bytes(values)
        for values in columns.values()
    )


def _object_bytes(values: NDArray[Any]) -> int:
    """Bytes held by the objects of a column; images are dicts that hold their file's bytes."""
    return sum(
        len(value.get("bytes") or b"") if isinstance(value, dict) else getattr(value, "nbytes", 64)
        for value in values
    )
