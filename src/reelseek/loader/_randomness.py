"""How random an order is: figures that need no pixels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reelseek.loader._orders import Order, Share

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

NEAR_ROWS = 16
"""Two samples of an episode that are at most so many rows apart show about the same."""


@dataclass(frozen=True, slots=True)
class Randomness:
    """What one epoch's order is like. In brackets: what plain random order gives."""

    travel: float
    """The mean distance between a sample's place in the epoch and its place in the dataset, as a
    part of the epoch. [1/3; 0 in the dataset's own order]"""
    neighbour_distance: float
    """The median distance, in the epoch, between a sample and the next one of its episode, as a
    part of the epoch. [0.29]"""
    correlation: float
    """The correlation between the numbers of samples that follow each other. [0]"""
    episodes_per_batch: float
    """The mean number of episodes in a batch."""
    near_in_batch: float
    """The part of the samples that have another one of their episode, at most 16 rows away, in
    their batch."""

    def to_json(self) -> dict[str, Any]:
        """For a JSON document."""
        return {name: round(value, 4) for name, value in dataclasses.asdict(self).items()}


def measure_randomness(
    dataset: Dataset, order: Order, batch_size: int, *, num_workers: int = 0, seed: int = 0
) -> Randomness:
    """Figures of the first epoch of an order, of one process.

    Args:
        dataset: An open dataset; nothing of it is decoded.
        order: An order of ``reelseek.loader``.
        batch_size: Samples in a batch.
        num_workers: Workers of the loader; ``GopShuffle`` has a buffer for each.
        seed: Of the order.

    Example:
        >>> import reelseek
        >>> from reelseek.loader import Shuffle, measure_randomness
        >>> ds = reelseek.open_dataset(sample_dataset, cameras=())
        >>> round(measure_randomness(ds, Shuffle(), 16).travel, 1)
        0.3
    """
    order.bind(dataset, num_workers)
    share = Share(seed, 0, 0, 1, batch_size, drop_last=False, uneven="pad")
    batches = [batch.samples for batch in order.batches(share, 0)]
    episode = np.repeat(np.arange(len(dataset.episodes)), dataset.episodes.lengths)
    drawn = np.concatenate(batches)
    place = np.empty(len(drawn), np.int64)
    ranks = np.argsort(np.argsort(drawn, kind="stable"), kind="stable")
    place[ranks] = np.arange(len(drawn))
    same = np.diff(episode[np.sort(drawn)]) == 0
    return Randomness(
        travel=float(np.mean(np.abs(place - np.arange(len(drawn)))) / len(drawn)),
        neighbour_distance=float(np.median(np.abs(np.diff(place))[same]) / len(drawn)),
        correlation=float(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]),
        episodes_per_batch=float(np.mean([len(np.unique(episode[batch])) for batch in batches])),
        near_in_batch=_near_in_batch(batches, episode),
    )


def _near_in_batch(batches: Sequence[NDArray[np.int64]], episode: NDArray[np.int64]) -> float:
    near = 0
    for batch in batches:
        numbers = np.sort(batch)
        close = (np.diff(numbers) <= NEAR_ROWS) & (np.diff(episode[numbers]) == 0)
        near += int(np.sum(np.append(close, False) | np.append(False, close)))
    return near / max(1, sum(map(len, batches)))
