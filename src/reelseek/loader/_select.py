"""Choosing samples by their episodes: by number, task or length."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reelseek.errors import FeatureNotFoundError

if TYPE_CHECKING:
    from reelseek.datasets import Dataset, Episode


def select_samples(
    dataset: Dataset,
    *,
    episodes: Iterable[int] | None = None,
    tasks: Sequence[str] | None = None,
    min_length: int = 0,
    max_length: int | None = None,
    skip_first: int = 0,
    skip_last: int = 0,
) -> NDArray[np.int64]:
    """The numbers of the samples that fit, for an order of ``reelseek.loader``.

    Args:
        dataset: An open dataset.
        episodes: Numbers of episodes; None for all that the dataset was opened with.
        tasks: Task texts, or patterns of them (``*peg*``); an episode fits that has one of them.
        min_length: Frames that an episode has at least.
        max_length: Frames that it has at most; None for no limit.
        skip_first: Samples to leave out at each episode's start.
        skip_last: Samples to leave out at its end: 16 leaves out those whose frame +16 is padded.

    Returns:
        (N,) int64, ascending.

    Raises:
        FeatureNotFoundError: There is no such episode, or a task or pattern fits none.

    Example:
        >>> import reelseek
        >>> from reelseek.loader import select_samples
        >>> ds = reelseek.open_dataset(sample_dataset, cameras=())
        >>> len(ds), len(select_samples(ds, skip_last=16))
        (381, 349)
    """
    wanted = None if episodes is None else _known(dataset, set(episodes))
    patterns = None if tasks is None else _fitting(dataset, tasks)
    found = []
    start = 0
    for episode in dataset.episodes:
        if _fits(episode, wanted, patterns, min_length, max_length):
            found.append(np.arange(start + skip_first, start + episode.length - skip_last))
        start += episode.length
    return np.concatenate([np.empty(0, np.int64), *found])


def _fits(
    episode: Episode,
    wanted: set[int] | None,
    patterns: Sequence[str] | None,
    min_length: int,
    max_length: int | None,
) -> bool:
    if wanted is not None and episode.index not in wanted:
        return False
    if patterns is not None and not _has_task(episode, patterns):
        return False
    return min_length <= episode.length and (max_length is None or episode.length <= max_length)


def _has_task(episode: Episode, patterns: Sequence[str]) -> bool:
    return any(
        text == pattern or fnmatch.fnmatchcase(text, pattern)
        for text in episode.tasks
        for pattern in patterns
    )


def _known(dataset: Dataset, wanted: set[int]) -> set[int]:
    missing = wanted - set(map(int, dataset.episodes.indices))
    if missing:
        raise FeatureNotFoundError(
            f"no episode {min(missing)}",
            remedy=f"The dataset was opened with {len(dataset.episodes)} episodes",
            path=dataset.root,
        )
    return wanted


def _fitting(dataset: Dataset, patterns: Sequence[str]) -> Sequence[str]:
    patterns = [patterns] if isinstance(patterns, str) else patterns
    for pattern in patterns:
        if not any(_has_task(episode, [pattern]) for episode in dataset.episodes):
            raise FeatureNotFoundError(
                f"no episode has a task {pattern!r}",
                remedy=f"The tasks are: {'; '.join(sorted(set(dataset.tasks.values())))}",
                path=dataset.root,
            )
    return patterns
