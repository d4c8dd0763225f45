"""Which rows around a sample it consists of, and what happens at an episode's ends.

The rule is LeRobot's: past an end, the nearest row of the episode is repeated, and ``<key>_is_pad``
says so.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._files import MAX_COUNT
from reelseek.errors import DatasetFormatError, FeatureNotFoundError

Deltas = dict[str, NDArray[np.int64]]
"""Key to (T,) row offsets from the sample's own row."""


def resolve_deltas(
    keys: Sequence[str],
    fps: float,
    indices: Mapping[str, Iterable[int]] | None,
    timestamps: Mapping[str, Iterable[float]] | None,
    tolerance_seconds: float,
) -> Deltas:
    """Offsets in rows for each key that has some.

    Args:
        keys: The keys of a sample.
        fps: Frames a second.
        indices: Offsets in frames by key; a key may be a pattern (``observation.images.*``).
        timestamps: Offsets in seconds by key or pattern, as LeRobot takes them.
        tolerance_seconds: How far from a whole number of frames an offset may be, in seconds.

    Raises:
        FeatureNotFoundError: A key or pattern fits no key of the dataset.
        DatasetFormatError: A key has two lists of offsets, or an offset falls between frames.
    """
    deltas: Deltas = {}
    for pattern, offsets in (indices or {}).items():
        values = _whole_offsets(pattern, offsets)
        for key in matching(pattern, keys):
            _add(deltas, key, values)
    for pattern, seconds in (timestamps or {}).items():
        values = _frames_of(pattern, list(seconds), fps, tolerance_seconds)
        for key in matching(pattern, keys):
            _add(deltas, key, values)
    return deltas


def matching(pattern: str, keys: Sequence[str]) -> list[str]:
    """The keys that a name or pattern fits.

    Raises:
        FeatureNotFoundError: It fits none.
    """
    found = [pattern] if pattern in keys else fnmatch.filter(keys, pattern)
    if not found:
        raise FeatureNotFoundError(
            f"no feature {pattern!r}", remedy=f"The dataset has: {', '.join(sorted(keys))}"
        )
    return found


def padded(
    row: int | NDArray[np.int64], length: int | NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rows of an episode for a sample, and which of them stand in for missing ones.

    Also for several samples at once, whose rows and lengths are (B, 1); the results are (B, T).
    """
    wanted = row + offsets
    is_pad = (wanted < 0) | (wanted >= length)
    return np.minimum(np.maximum(wanted, 0), length - 1), is_pad


def _add(deltas: Deltas, key: str, offsets: NDArray[np.int64]) -> None:
    if key in deltas and not np.array_equal(deltas[key], offsets):
        raise DatasetFormatError(
            f"{key!r} is given two lists of offsets: {deltas[key].tolist()} and {offsets.tolist()}",
            remedy="Give the key one list; patterns may overlap only where they agree",
        )
    deltas[key] = offsets


def _whole_offsets(pattern: str, offsets: Iterable[int]) -> NDArray[np.int64]:
    values = np.asarray(list(offsets))
    is_whole = values.ndim == 1 and len(values) > 0 and np.issubdtype(values.dtype, np.integer)
    if not is_whole or np.any(values < -MAX_COUNT) or np.any(values > MAX_COUNT):
        raise DatasetFormatError(
            f"delta_indices of {pattern!r} are {values.tolist()}",
            remedy="Give a list of whole numbers of frames, such as [0, 16]; for seconds use "
            "delta_timestamps",
        )
    return values.astype(np.int64)


def _frames_of(
    pattern: str, seconds: list[float], fps: float, tolerance_seconds: float
) -> NDArray[np.int64]:
    values = np.asarray(seconds, np.float64)
    is_sane = values.ndim == 1 and len(values) > 0 and np.isfinite(values).all()
    if not is_sane or np.any(np.abs(values) * fps > MAX_COUNT):
        raise DatasetFormatError(
            f"delta_timestamps of {pattern!r} are {seconds}",
            remedy="Give a list of times in seconds, such as [0, 0.5]",
        )
    frames = np.round(values * fps)
    off = np.abs(frames / fps - values)
    if np.any(off > tolerance_seconds):
        worst = int(np.argmax(off))
        raise DatasetFormatError(
            f"delta_timestamps of {pattern!r}: {values[worst]} s falls between frames at {fps} fps",
            remedy=f"Give multiples of 1/{fps:g} s, such as {frames[worst] / fps:.6f}, or use "
            "delta_indices",
        )
    return frames.astype(np.int64)
