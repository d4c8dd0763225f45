"""``make_loader``: a PyTorch DataLoader whose workers decode whole batches."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reelseek.errors import DependencyError
from reelseek.loader._orders import Order, Sequential, Shuffle, Uneven

if TYPE_CHECKING:
    from reelseek.datasets import Dataset
    from reelseek.loader._loader import Loader


def make_loader(
    dataset: Dataset,
    batch_size: int,
    *,
    num_workers: int = 0,
    shuffle: bool = True,
    sampler: Order | None = None,
    seed: int = 0,
    rank: int | None = None,
    world_size: int | None = None,
    uneven: Uneven = "pad",
    drop_last: bool = False,
    transform: Callable[[dict[str, Any]], Any] | None = None,
    pin_memory: bool | None = None,
    prefetch_factor: int | None = None,
    multiprocessing_context: Any = None,
    persistent_workers: bool = True,
    timeout: float = 0,
) -> Loader:
    """A DataLoader whose workers decode each batch at once, straight into its tensors.

    Args:
        dataset: An open dataset, with ``output="torch"``.
        batch_size: Samples in a batch of this process.
        num_workers: Processes that read, each on one core; 0 reads in this process. As many as
            there are cores for each training process, less the one that trains, is right; more
            only take turns.
        shuffle: True for all samples in random order, another one each epoch; False for the
            dataset's own order. Not looked at where there is a ``sampler``.
        sampler: An order of ``reelseek.loader``, such as ``GopShuffle()`` for long GOPs.
        seed: Of the order, and of random numbers drawn in ``transform``.
        rank: This process's number among those that share the samples; None takes it from
            torch.distributed, or else from the environment (``torchrun`` sets RANK).
        world_size: How many processes share them; None as for ``rank``, and 1 where nothing says.
        uneven: Where the samples don't divide by the processes: ``pad`` repeats a few of them,
            ``drop`` leaves a few out. All processes get the same number of batches.
        drop_last: True leaves out a last batch that isn't full.
        transform: Called with each batch in the process that read it; what it returns is the
            batch. Its random numbers (torch, numpy, random) are those of the seed, the epoch and
            the batch, whichever worker it runs in.
        pin_memory: None for True where there is a GPU.
        prefetch_factor: Batches that each worker is ahead; None for PyTorch's 2.
        multiprocessing_context: How workers start: ``fork``, ``spawn``, ``forkserver``, or a
            context; None for the platform's own.
        persistent_workers: True keeps the workers from epoch to epoch.
        timeout: Seconds to wait for a worker; 0 for no limit.

    Returns:
        A ``torch.utils.data.DataLoader`` of the dicts that ``Dataset.get_batch`` returns, which
        also has ``set_epoch(n)``, ``state_dict()`` and ``load_state_dict(state)``. Without
        ``set_epoch`` each pass over it is the next epoch.

    Raises:
        DependencyError: PyTorch isn't installed.
        ValueError: An option is out of range, or the dataset gives NumPy arrays.
        SampleIndexError: The sampler names samples that the dataset hasn't got.
        DeviceUnavailableError: The dataset decodes on a GPU, and forked workers can't.

    Example:
        >>> import reelseek
        >>> ds = reelseek.open_dataset(sample_dataset, cameras=())
        >>> loader = reelseek.make_loader(ds, 8, seed=1)
        >>> next(iter(loader))["action"].shape
        torch.Size([8, 14])
        >>> loader.state_dict()["batches"]
        1
    """
    try:
        from reelseek.loader._loader import Loader, Settings
    except ImportError as exc:
        raise DependencyError(
            "a loader needs PyTorch, which isn't installed",
            remedy="Run `pip install 'reelseek[torch]'`",
        ) from exc
    rank, world_size = _place(rank, world_size)
    order = sampler if sampler is not None else (Shuffle() if shuffle else Sequential())
    settings = Settings(batch_size, seed, rank, world_size, uneven, drop_last)
    return Loader(
        dataset,
        order,
        settings,
        transform=transform,
        num_workers=num_workers,
        pin_memory=pin_memory,
        prefetch_factor=prefetch_factor,
        multiprocessing_context=multiprocessing_context,
        persistent_workers=persistent_workers and num_workers > 0,
        timeout=timeout,
    )


def _place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """This process's number and how many there are, from what is given or known."""
    if rank is None and world_size is None:
        import torch.distributed as distributed

        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if rank is None or world_size is None:
        raise ValueError(f"rank={rank}, world_size={world_size}: give both, or neither")
    return rank, world_size
