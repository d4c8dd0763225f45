"""Statistics of states and actions, for normalisation: no picture is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._keys import ValueKey
from reelseek.datasets._records import RowSpan
from reelseek.datasets._values import sliced
from reelseek.errors import DatasetFormatError, FeatureNotFoundError

if TYPE_CHECKING:
    from reelseek.datasets._dataset import Dataset

QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
"""LeRobot's: q01, q10, q50, q90, q99."""


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Statistics of one key over all rows, element by element; (D,) float64 each."""

    count: int
    """The number of rows."""
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    """Of the population: divided by the number of rows, as LeRobot's is."""
    min: NDArray[np.float64]
    max: NDArray[np.float64]
    quantiles: dict[float, NDArray[np.float64]]
    """By the part of the rows that lie below; exact, interpolated between rows as NumPy does."""


def statistics_of(
    dataset: Dataset, keys: Sequence[str] | None, quantiles: Sequence[float]
) -> dict[str, Statistics]:
    """See ``Dataset.statistics``."""
    chosen = _chosen(dataset, keys)
    columns = sorted({key.column for key in chosen})
    parts: dict[str, list[NDArray[Any]]] = {key.key: [] for key in chosen}
    for path, spans in _by_file(dataset):
        values = _read(path, columns, spans)
        for key in chosen:
            for span in spans:
                rows = values[key.column][span.first : span.first + span.length]
                parts[key.key].append(
                    rows if key.part is None else sliced(rows, key, key.part, path)
                )
    return {key: _statistics(key, arrays, quantiles) for key, arrays in parts.items()}


def _chosen(dataset: Dataset, keys: Sequence[str] | None) -> list[ValueKey]:
    numbers = [key for key in dataset.sample_keys.values if _is_float(dataset, key)]
    if keys is None:
        return numbers
    by_name = {key.key: key for key in numbers}
    for name in keys:
        if name not in by_name:
            raise FeatureNotFoundError(
                f"no key of floating-point numbers is called {name!r}",
                remedy=f"Those are: {', '.join(by_name)}",
                path=dataset.root,
            )
    return [by_name[name] for name in keys]


def _is_float(dataset: Dataset, key: ValueKey) -> bool:
    feature = dataset.features.get(key.column)
    is_time = key.column == "timestamp"
    return feature is not None and feature.dtype.startswith("float") and not is_time


def _by_file(dataset: Dataset) -> list[tuple[Path, list[RowSpan]]]:
    """The parquet files of the dataset's episodes, and the episodes' rows in each."""
    files: dict[Path, list[RowSpan]] = {}
    for position in dataset.positions.tolist():
        span = dataset.layout.rows_of(position)
        files.setdefault(span.path, []).append(span)
    return list(files.items())


def _read(path: Path, columns: list[str], spans: list[RowSpan]) -> dict[str, NDArray[Any]]:
    from reelseek.datasets._parquet import read_columns

    values = read_columns(path, columns)
    for name in columns:
        if name not in values or values[name].dtype == object:
            raise DatasetFormatError(
                f"the column {name!r} is missing, or its vectors differ in length",
                remedy="Leave the key out with keys=, or the episode with episodes=",
                path=path,
            )
        rows, needed = len(values[name]), max(span.first + span.length for span in spans)
        if rows < needed:
            raise DatasetFormatError(
                f"the file has {rows} rows where meta needs {needed}",
                remedy="Copy the dataset again: its data and meta folders don't belong together",
                path=path,
            )
    return values


def _statistics(key: str, parts: list[NDArray[Any]], quantiles: Sequence[float]) -> Statistics:
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) != 1:
        raise DatasetFormatError(
            f"values of {key!r} differ in shape, or there are none: {sorted(shapes)}",
            remedy="Open episodes that go together with episodes=",
        )
    values = np.concatenate(parts)
    values = values[:, None] if values.ndim == 1 else values
    found = np.quantile(values, list(quantiles), axis=0) if len(quantiles) else []
    return Statistics(
        count=len(values),
        mean=values.mean(axis=0, dtype=np.float64),
        std=values.std(axis=0, dtype=np.float64),
        min=values.min(axis=0).astype(np.float64),
        max=values.max(axis=0).astype(np.float64),
        quantiles={q: np.asarray(v, np.float64) for q, v in zip(quantiles, found, strict=True)},
    )
