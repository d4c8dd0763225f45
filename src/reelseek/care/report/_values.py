"""Ranges of states and actions, over the rows of some episodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.care.report._records import Dimension, Sampled, ValueRanges, Values
from reelseek.care.report._source import READ_ERRORS, Source, fault_text
from reelseek.errors import DatasetFormatError

MAX_EPISODES = 200
"""Episodes whose rows are read."""
MAX_DIMENSIONS = 64
"""Elements of one vector that are shown."""
MAX_KEYS = 16
"""Keys that are shown: state and action before the others."""
MAX_FAULTS = 5
"""Faults of single files that are told."""
BINS = 24
FIRST = ("observation.state", "action")
"""Keys that stand before all others."""


def values_of(source: Source) -> Values:
    """Read rows, and sum up each element of each vector of floating-point numbers.

    Raises:
        DatasetFormatError: No column of numbers can be read.
    """
    names = [feature.name for feature in source.number_columns]
    names.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    names = names[:MAX_KEYS]
    episodes = source.some_episodes(MAX_EPISODES)
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    faults = []
    for position in episodes:
        try:
            for name, values in _rows(source, position, names).items():
                parts[name].append(values)
        except READ_ERRORS as exc:
            faults.append(fault_text(source.root, exc))
    keys = [_ranges(source, name, values) for name, values in parts.items() if values]
    if names and not keys:
        raise DatasetFormatError(
            "no row of states and actions could be read: " + "; ".join(faults[:1]),
            path=source.root,
        )
    total = int((source.layout.episodes.lengths > 0).sum())
    if len(faults) > MAX_FAULTS:
        faults[MAX_FAULTS:] = [f"and {len(faults) - MAX_FAULTS} more files"]
    return Values(tuple(keys), Sampled(len(episodes), total, "episodes"), tuple(faults))


def _rows(source: Source, position: int, names: list[str]) -> dict[str, NDArray[Any]]:
    """(rows, D) numbers of one episode by column, those that are vectors of one length."""
    from reelseek.datasets._parquet import column_names, read_rows

    span = source.layout.rows_of(position)
    others = frozenset(column_names(span.path)) - set(names)
    columns = read_rows(span, int(source.layout.episodes.indices[position]), others)
    return {
        name: values.reshape(len(values), -1)
        for name, values in columns.items()
        if values.dtype.kind == "f" and len(values)
    }


def _ranges(source: Source, name: str, parts: list[NDArray[Any]]) -> ValueRanges:
    """Sum up a key; episodes whose vectors have another length than the first are left out."""
    size = parts[0].shape[1]
    values = np.concatenate([part for part in parts if part.shape[1] == size])
    labels = _labels(source.info.features[name].names, size)
    dimensions = tuple(
        found
        for place in range(min(size, MAX_DIMENSIONS))
        if (found := _dimension(labels[place], values[:, place])) is not None
    )
    return ValueRanges(name, dimensions, size, len(values))


def _dimension(label: str, values: NDArray[Any]) -> Dimension | None:
    """One element; None where no row holds a number."""
    finite = values[np.isfinite(values)].astype(np.float64)
    if not len(finite):
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # between numbers of any size
        q01, q50, q99 = np.quantile(finite, (0.01, 0.5, 0.99)).tolist()
    ends = float(finite.min()), float(finite.max())
    found = Dimension(
        label, ends[0], (q01, q50, q99), ends[1], len(values) - len(finite), np.zeros(0, np.int64)
    )
    places = np.minimum(found.place_of(finite) * BINS, BINS - 1).astype(np.int64)
    return replace(found, counts=np.bincount(places, minlength=BINS))


def _labels(names: Any, size: int) -> list[str]:
    """Names of a vector's elements, as ``info.json`` gives them: a list, or a list in a dict."""
    if isinstance(names, dict) and len(names) == 1:
        names = next(iter(names.values()))
    if isinstance(names, list) and len(names) == size:
        return [str(name) for name in names]
    return [str(place) for place in range(size)]
