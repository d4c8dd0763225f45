"""The loader: PyTorch's DataLoader over whole batches, with a state."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader

from reelseek.datasets import Dataset
from reelseek.errors import DeviceUnavailableError, LoaderStateError
from reelseek.loader._orders import Batch, Order, Share, Uneven
from reelseek.loader._reader import BatchReader, as_it_is, taken_over, use_one_core

STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What an epoch's batches depend on beside the order; see ``make_loader``."""

    batch_size: int
    seed: int
    rank: int
    world_size: int
    uneven: Uneven
    drop_last: bool

    def __post_init__(self) -> None:
        for name, value, least in (
            ("batch_size", self.batch_size, 1),
            ("seed", self.seed, 0),
            ("world_size", self.world_size, 1),
            ("rank", self.rank, 0),
        ):
            if value < least:
                raise ValueError(f"{name}={value}: give {least} or more")
        if self.rank >= self.world_size:
            raise ValueError(f"rank={self.rank}: ranks of {self.world_size} start at 0")
        if self.uneven not in ("pad", "drop"):
            raise ValueError(f"uneven={self.uneven!r}: choose pad or drop")

    def share(self, epoch: int, run: int = 0) -> Share:
        """What this rank asks the order for."""
        return Share(
            self.seed, epoch, self.rank, self.world_size, self.batch_size, self.drop_last,
            self.uneven, run,
        )  # fmt: skip


class Plan:
    """The batches of one pass, as PyTorch's batch sampler."""

    def __init__(self, order: Order, settings: Settings) -> None:
        self._order = order
        self._settings = settings
        self.epoch = 0
        self.first = 0
        self.run = 0

    def __iter__(self) -> Iterator[Batch]:
        return self._order.batches(self._settings.share(self.epoch, self.run), self.first)

    def __len__(self) -> int:
        return self._settings.share(self.epoch).num_batches(self._order.num_samples())


class Loader(DataLoader):  # type: ignore[misc] # torch has no types here
    """PyTorch's DataLoader over whole batches; made by ``make_loader``.

    One pass at a time. Its state is the number of batches that were handed out, so it is exact
    whatever the workers have prefetched, and may be loaded with another number of workers.
    """

    def __init__(
        self,
        dataset: Dataset,
        order: Order,
        settings: Settings,
        *,
        transform: Callable[[dict[str, Any]], Any] | None,
        pin_memory: bool | None,
        **options: Any,
    ) -> None:
        import torch

        check_dataset(dataset)
        if check_start_method(dataset, options["num_workers"], options["multiprocessing_context"]):
            dataset.read_rows_ahead()
        order.bind(dataset, options["num_workers"])
        self._order = order
        self._settings = settings
        self._plan = Plan(order, settings)
        self._pending: tuple[int, int] | None = (0, 0)  # where the next pass begins
        self._reached = (0, 0)  # epoch, and batches handed out of it
        self._run = 0  # the number of the pass that counts
        super().__init__(
            BatchReader(dataset, transform),
            batch_sampler=self._plan,
            collate_fn=as_it_is,
            worker_init_fn=use_one_core,
            pin_memory=torch.cuda.is_available() if pin_memory is None else pin_memory,
            generator=torch.Generator().manual_seed(settings.seed),
            **options,
        )

    def __iter__(self) -> Iterator[Any]:
        epoch, first = self._pending or (self._reached[0] + 1, 0)
        self._run += 1
        self._plan.epoch, self._plan.first, self._plan.run = epoch, first, self._run
        self._pending, self._reached = None, (epoch, first)
        return _Pass(self, self._run, super().__iter__(), epoch, first)

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass this epoch's; the place of a state of the same epoch is kept."""
        if epoch < 0:
            raise ValueError(f"epoch={epoch}: epochs start at 0")
        if self._pending is None or self._pending[0] != epoch:
            self._pending = (epoch, 0)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is: plain values, to be kept in a checkpoint.

        The state of one rank is that of all, where all have taken as many batches.
        """
        epoch, batches = self._pending or self._reached
        order = self._order.describe()
        return {**self._identity(), "order": order, "epoch": epoch, "batches": batches}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next pass go on from this state, with any number of workers.

        Raises:
            LoaderStateError: It is of another order, dataset, seed, batch size or number of
                processes, so that samples would come twice or not at all.
        """
        for name, own in self._identity().items():
            if name not in state or state[name] != own:
                raise LoaderStateError(
                    f"the state's {name} is {state.get(name, 'missing')!r}, and this loader's is "
                    f"{own!r}",
                    remedy=_remedy(state),
                )
        try:
            self._order.go_on_from(state.get("order"))
        except LoaderStateError as exc:
            exc.remedy = _remedy(state)
            raise
        epoch, batches = int(state["epoch"]), int(state["batches"])
        if epoch < 0 or not 0 <= batches <= len(self):
            raise LoaderStateError(f"an epoch has {len(self)} batches, and the state {batches}")
        self._pending = (epoch, batches)
        self._run += 1  # a pass that is under way doesn't count any more

    def _identity(self) -> dict[str, Any]:
        settings = self._settings
        return {
            "version": STATE_VERSION,
            "seed": settings.seed,
            "batch_size": settings.batch_size,
            "world_size": settings.world_size,
            "uneven": settings.uneven,
            "drop_last": settings.drop_last,
        }

    def _handed_out(self, run: int, epoch: int, batches: int) -> None:
        if run == self._run:
            self._reached = (epoch, batches)

    def _ended(self, run: int, epoch: int) -> None:
        if run == self._run:
            self._pending = self._pending or (epoch + 1, 0)


def _remedy(state: dict[str, Any]) -> str:
    return (
        "Make the loader as it was when the state was taken; or start the next epoch instead: "
        f"set_epoch({int(state.get('epoch', 0)) + 1})"
    )


class _Pass:
    """One pass over the batches, counted."""

    def __init__(self, loader: Loader, run: int, batches: Any, epoch: int, first: int) -> None:
        self._loader = loader
        self._run = run
        self._batches = batches
        self._epoch = epoch
        self._number = first

    def __iter__(self) -> _Pass:
        return self

    def __next__(self) -> Any:
        try:
            batch = taken_over(next(self._batches))
        except StopIteration:
            self._loader._ended(self._run, self._epoch)
            raise
        self._number += 1
        self._loader._handed_out(self._run, self._epoch, self._number)
        return batch


def check_dataset(dataset: Dataset) -> None:
    """Refuse a dataset that gives no tensors."""
    if dataset.output != "torch":
        raise ValueError(f"the dataset gives {dataset.output} arrays: open it with output='torch'")


def check_start_method(dataset: Dataset, num_workers: int, context: Any) -> bool:
    """Refuse forked workers for a dataset that decodes on a GPU.

    Returns:
        True where what this process has in memory is there where batches are read.

    Raises:
        DeviceUnavailableError: CUDA doesn't work in a forked process.
    """
    if num_workers == 0:
        return True
    if context is None or isinstance(context, str):
        context = multiprocessing.get_context(context)
    is_forked = bool(context.get_start_method() == "fork")
    if is_forked and dataset.device != "cpu":
        raise DeviceUnavailableError(
            f"the dataset decodes on {dataset.device!r}, and the workers would be forked: CUDA "
            "doesn't work in a forked process",
            remedy="Pass multiprocessing_context='spawn', or num_workers=0, or decode on the CPU",
        )
    return is_forked
