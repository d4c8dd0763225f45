"""Values of samples: one row of a column, or a window of rows; slices of vectors; task texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._deltas import Deltas, padded
from reelseek.datasets._keys import ValueKey
from reelseek.datasets._rows import Rows
from reelseek.errors import DatasetFormatError


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a sample is."""

    rows: Rows
    """Its episode's rows."""
    row: int
    """Its own row there."""
    length: int
    """The episode's number of rows."""

    def window(self, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The rows at these offsets, and which of them stand in for missing ones."""
        return padded(self.row, self.length, offsets)


def window_rows(
    places: Sequence[Place], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(B, T) the rows of several samples, each in its own episode, and which are padding."""
    rows = np.array([place.row for place in places], np.int64)[:, None]
    lengths = np.array([place.length for place in places], np.int64)[:, None]
    return padded(rows, lengths, offsets)


def read_values(
    key: ValueKey, places: Sequence[Place], deltas: Deltas, tasks: Mapping[int, str]
) -> Any:
    """One key of several samples.

    Returns:
        (B, ...), or (B, T, ...) for a key with deltas; floats are float32, as LeRobot's tensors
        are. Lists for what is no number.

    Raises:
        DatasetFormatError: A column or task is missing, or the values differ in shape.
    """
    offsets = deltas.get(key.key)
    windows = [None] * len(places) if offsets is None else window_rows(places, offsets)[0]
    parts = [_part(key, place, rows, tasks) for place, rows in zip(places, windows, strict=True)]
    if not all(isinstance(part, np.ndarray) for part in parts):
        return parts
    return _stacked(parts, key.key, places[0].rows.path)


def _part(
    key: ValueKey, place: Place, rows: NDArray[np.int64] | None, tasks: Mapping[int, str]
) -> Any:
    """One sample's values of a key: an array, or a list or single object."""
    column, path = place.rows.column(key.column), place.rows.path
    here = slice(place.row, place.row + 1)
    values = column[here] if rows is None else column[rows]
    if key.is_task:
        texts = [_task(number, key.column, tasks, path) for number in values]
        return texts[0] if rows is None else texts
    if key.part is not None:
        values = sliced(values, key, key.part, path)
    if values.dtype == object:
        return _objects(values, rows is None, key.key, path)
    return np.asarray(values[0]) if rows is None else values


def _task(number: Any, column: str, tasks: Mapping[int, str], path: Path) -> str:
    text = tasks.get(int(number)) if isinstance(number, np.integer) else None
    if text is None:
        raise DatasetFormatError(
            f"{column} is {number}, and meta has no task of that number",
            remedy=f"It has {len(tasks)} tasks; copy the dataset's meta folder again",
            path=path,
        )
    return text


def _objects(values: NDArray[Any], is_plain: bool, key: str, path: Path) -> Any:
    """Texts and other objects as they are; vectors that may differ in length as an array."""
    if values.ndim == 1 and all(isinstance(value, np.ndarray) for value in values):
        return values[0] if is_plain else _stacked(list(values), key, path)
    return values.tolist()[0] if is_plain else values.tolist()


def sliced(values: NDArray[Any], key: ValueKey, part: tuple[int, int], path: Path) -> NDArray[Any]:
    """Elements of each row's vector; a single number counts as a vector of one."""
    if values.dtype == object:
        raise DatasetFormatError(
            f"modality.json takes {key.key} from {key.column}, which holds no numbers, or vectors "
            "of more than one length",
            remedy="Name a column of vectors there",
            path=path,
        )
    if values.ndim == 1:
        values = values[:, None]
    start, end = part
    if end > values.shape[-1]:
        raise DatasetFormatError(
            f"modality.json takes {key.key} from elements {start} to {end} of {key.column}, which "
            f"has {values.shape[-1]}",
            remedy="Correct its start and end",
            path=path,
        )
    return values[..., start:end]


def _stacked(parts: list[NDArray[Any]], key: str, path: Path) -> NDArray[Any]:
    try:
        values = np.stack(parts)
    except ValueError as exc:
        shapes = sorted({np.shape(part) for part in parts})
        raise DatasetFormatError(
            f"values of {key!r} differ in shape: {', '.join(map(str, shapes))}",
            remedy="Read such samples one at a time and without deltas for this key",
            path=path,
        ) from exc
    is_float = np.issubdtype(values.dtype, np.floating)
    return values.astype(np.float32, copy=False) if is_float else values
