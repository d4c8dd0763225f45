"""The loader's dataset: what a worker does with a batch."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from reelseek.datasets import Dataset
from reelseek.datasets._memory import NewPixels, new_pixels, new_shared_pixels
from reelseek.loader._ahead import ReadAhead
from reelseek.loader._handover import Handover, handed_over
from reelseek.loader._orders import Batch


class BatchReader:
    """Reads whole batches: PyTorch hands ``__getitems__`` what the batch sampler gives.

    Fork, forkserver and spawn: works in workers. Pickling: the dataset's and the transform's.
    """

    def __init__(self, dataset: Dataset, transform: Callable[[dict[str, Any]], Any] | None) -> None:
        self.dataset = dataset
        self.transform = transform
        self._ahead = ReadAhead(dataset)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, batch: Batch) -> Any:
        """One batch, see ``Dataset.get_batch``; from a worker as a ``Handover``."""
        self._ahead.begin(batch.run)
        self._ahead.admit(batch.ahead)
        read = self.dataset.read_batch(
            batch.samples, new_pixels=self._new_pixels(), kept=self._ahead
        )
        if self.transform is not None:
            with random_numbers_of(batch.seed):
                read = self.transform(read)
        return read if get_worker_info() is None else handed_over(read)

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchReader, (self.dataset, self.transform)

    def _new_pixels(self) -> NewPixels:
        """In a worker memory that the main process can take over as it is."""
        if get_worker_info() is not None and self.dataset.device == "cpu":
            return new_shared_pixels
        return functools.partial(new_pixels, device=self.dataset.device)


def use_one_core(_worker: int) -> None:
    """In a worker: decode one file at a time; PyTorch has set its own threads to one already."""
    worker = get_worker_info()
    assert worker is not None
    worker.dataset.dataset.use_threads(1)


def taken_over(batch: Any) -> Any:
    """The batch that ``__getitems__`` read, in the main process."""
    return batch.batch() if isinstance(batch, Handover) else batch


def as_it_is(batch: Any) -> Any:
    """In place of a collate function: a batch is a batch already."""
    return batch


@contextmanager
def random_numbers_of(seed: tuple[int, ...]) -> Iterator[None]:
    """Seed torch's, NumPy's and Python's random numbers; in the main process only meanwhile."""
    words = [int(word) for word in np.random.SeedSequence(seed).generate_state(4)]
    is_worker = get_worker_info() is not None
    kept = None if is_worker else (random.getstate(), np.random.get_state(), torch.get_rng_state())
    random.seed(words[0])
    np.random.seed(words[1])
    torch.default_generator.manual_seed(words[2] << 32 | words[3])
    try:
        yield
    finally:
        if kept is not None:
            random.setstate(kept[0])
            np.random.set_state(kept[1])
            torch.set_rng_state(kept[2])
