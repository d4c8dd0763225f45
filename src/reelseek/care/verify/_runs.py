"""Runs of frames, as facts keep them: the first and the last of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Runs = list[list[int]]


def runs_of(flags: NDArray[np.bool_]) -> Runs:
    """The runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [[int(first), int(end) - 1] for first, end in edges.reshape(-1, 2)]


def runs_of_numbers(numbers: list[int]) -> Runs:
    """The runs of successive numbers, which ascend."""
    if not numbers:
        return []
    flags = np.zeros(numbers[-1] + 1, np.bool_)
    flags[numbers] = True
    return runs_of(flags)
