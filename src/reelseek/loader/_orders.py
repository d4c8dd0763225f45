"""The order of an epoch: which samples each batch of each rank holds.

An order is a function of the seed, the epoch, the rank and the number of ranks, and of nothing
else: not of the number of workers, and not of what was read before. That is what makes a loader's
state a few numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reelseek.errors import LoaderStateError, SampleIndexError

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

Uneven = Literal["pad", "drop"]
"""What happens to samples that don't divide by the ranks: some come twice, or some not at all."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one rank asks an order for."""

    seed: int
    """Of the random choice; the same on all ranks."""
    epoch: int
    """The epoch's number; each has another order."""
    rank: int
    """This process's number."""
    world_size: int
    """The number of processes that share the samples."""
    batch_size: int
    """Samples in a batch."""
    drop_last: bool
    """True leaves out a last batch that isn't full."""
    uneven: Uneven
    """What to do where samples don't divide by the processes."""
    run: int = 0
    """The number of the pass in this process; frames that were kept for another one are dropped."""

    def samples_per_rank(self, num_samples: int) -> int:
        """How many samples each rank gets; the same for all."""
        if self.uneven == "pad":
            return -(-num_samples // self.world_size)
        return num_samples // self.world_size

    def num_batches(self, num_samples: int) -> int:
        """How many batches each rank gets."""
        own = self.samples_per_rank(num_samples)
        return own // self.batch_size if self.drop_last else -(-own // self.batch_size)

    def size_of(self, number: int, num_samples: int) -> int:
        """How many samples the batch of this number has."""
        own = self.samples_per_rank(num_samples)
        return min(self.batch_size, own - number * self.batch_size)

    def seed_of(self, number: int) -> tuple[int, ...]:
        """Of random numbers that are drawn for the batch of this number."""
        return (self.seed, self.epoch, self.rank, number)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """The numbers below ``count`` in an order of this seed and epoch, the same on all ranks.

        NumPy keeps what its bit generators give from release to release, but not what
        ``Generator.permutation`` makes of it; a run may be resumed with another NumPy.
        """
        keys = np.random.PCG64((self.seed, self.epoch)).random_raw(count)
        return np.argsort(keys, kind="stable")


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Samples of one piece of an episode, whose frames are to be decoded and kept."""

    piece: tuple[int, int]
    """A name of the piece, in this pass; its chunks come in order."""
    samples: NDArray[np.int64]
    """(N,) numbers of samples, ascending."""
    following: int
    """The sample that the piece's next chunk begins with; -1 where there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What a worker is asked for."""

    number: int
    """Its place in the rank's epoch."""
    seed: tuple[int, ...]
    """Of random numbers that are drawn for this batch, in whichever process."""
    samples: NDArray[np.int64]
    """(B,) numbers of samples."""
    ahead: tuple[Chunk, ...] = ()
    """What is to be decoded before, and kept for this batch and later ones."""
    run: int = 0
    """The number of the pass that it belongs to."""


class Order(Protocol):
    """Says which samples each batch holds. It is used in the process that made it only."""

    def bind(self, dataset: Dataset, num_workers: int) -> None:
        """Look at the dataset, before anything else is asked.

        Raises:
            SampleIndexError: It names samples that the dataset hasn't got.
        """
        ...

    def num_samples(self) -> int:
        """How many samples an epoch has, over all ranks."""
        ...

    def batches(self, share: Share, first: int) -> Iterator[Batch]:
        """The batches of one rank's epoch, from the batch of this number on."""
        ...

    def describe(self) -> dict[str, Any]:
        """The order's kind and options, as plain values for the state."""
        ...

    def go_on_from(self, description: Any) -> None:
        """Be the order that a state was taken of.

        Raises:
            LoaderStateError: It is another one.
        """
        ...


class _Permutation:
    """An order that is one list of samples, dealt to the ranks in turn."""

    def __init__(self, samples: ArrayLike | None = None) -> None:
        self._wanted = None if samples is None else np.asarray(samples, np.int64)
        self._samples: NDArray[np.int64] = np.empty(0, np.int64)

    def bind(self, dataset: Dataset, num_workers: int) -> None:
        """Take all samples, or check those that were named."""
        self._samples = checked_samples(self._wanted, dataset)

    def num_samples(self) -> int:
        """How many samples an epoch has, over all ranks."""
        return len(self._samples)

    def batches(self, share: Share, first: int) -> Iterator[Batch]:
        """The batches of one rank's epoch, from the batch of this number on."""
        own = dealt(self._ordered(share), share)
        size = share.batch_size
        for number in range(first, share.num_batches(len(self._samples))):
            samples = own[number * size : (number + 1) * size]
            yield Batch(number, share.seed_of(number), samples, run=share.run)

    def describe(self) -> dict[str, Any]:
        """The order's kind and options, for the state."""
        return {"kind": type(self).__name__, "samples": samples_digest(self._samples)}

    def go_on_from(self, description: Any) -> None:
        """See to it that a state is of this order."""
        if description != self.describe():
            raise LoaderStateError(f"the state's order is {description}, not {self.describe()}")

    def _ordered(self, share: Share) -> NDArray[np.int64]:
        raise NotImplementedError


class Sequential(_Permutation):
    """The samples as they come.

    Args:
        samples: Numbers of samples, in the order wanted; None for all of the dataset.
    """

    def _ordered(self, share: Share) -> NDArray[np.int64]:
        return self._samples


class Shuffle(_Permutation):
    """All samples in plain random order, another one each epoch.

    Args:
        samples: Numbers of samples; None for all of the dataset.
    """

    def _ordered(self, share: Share) -> NDArray[np.int64]:
        return self._samples[share.permutation(len(self._samples))]


def dealt(ordered: NDArray[np.int64], share: Share) -> NDArray[np.int64]:
    """One rank's samples, as torch's DistributedSampler deals them: every n-th."""
    count = share.samples_per_rank(len(ordered)) * share.world_size
    if count == 0:
        return ordered[:0]
    return np.resize(ordered, count)[share.rank :: share.world_size]


def checked_samples(wanted: NDArray[np.int64] | None, dataset: Dataset) -> NDArray[np.int64]:
    """Numbers of samples, all of which exist.

    Raises:
        SampleIndexError: There is no such sample.
    """
    count = len(dataset)
    if wanted is None:
        return np.arange(count)
    outside = wanted[(wanted < 0) | (wanted >= count)]
    if len(outside):
        raise SampleIndexError(
            f"no sample {outside[0]}",
            remedy=f"The {count} samples are 0 to {count - 1}",
            path=dataset.root,
        )
    return wanted


def samples_digest(samples: NDArray[np.int64]) -> str:
    """A short text that differs where the samples do."""
    import hashlib

    digest = hashlib.sha256(np.ascontiguousarray(samples, "<i8").tobytes())
    return f"{len(samples)} samples, {digest.hexdigest()[:12]}"
