"""The loader: every sample once, states that are exact, seeds, and what it refuses."""

from __future__ import annotations

import gc
import json
import multiprocessing
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.datasets import Dataset
from reelseek.errors import DeviceUnavailableError, LoaderStateError, SampleIndexError
from reelseek.loader import Sequential, Shuffle
from tests.conftest import needed
from tests.patience import PATIENCE

torch = needed("torch")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """No worker outlives its test."""
    yield
    gc.collect()
    for child in multiprocessing.active_children():
        child.join(PATIENCE)
    assert multiprocessing.active_children() == []


def samples(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch["index"].tolist()]


def test_epoch_holds_every_sample_once(tiny: Dataset) -> None:
    loader = reelseek.make_loader(tiny, 4)
    order = samples(loader)
    assert order != sorted(order)
    assert sorted(order) == list(range(len(tiny)))


def test_batches_are_those_of_get_batch(tiny_root: Path) -> None:
    ds = reelseek.open_dataset(tiny_root, delta_indices={"observation.images.*": [0, 3]})
    numbers = iter(range(len(ds)))
    for batch in reelseek.make_loader(ds, 4, num_workers=2, shuffle=False):
        wanted = ds.get_batch([next(numbers) for _ in range(len(batch["index"]))])
        assert batch.keys() == wanted.keys()
        for key, value in wanted.items():
            same = torch.equal(value, batch[key]) if key != "task" else value == batch[key]
            assert same, key
    assert next(numbers, None) is None


def test_each_pass_is_the_next_epoch(tiny: Dataset) -> None:
    loader = reelseek.make_loader(tiny, 4)
    first, second = samples(loader), samples(loader)
    assert first != second
    loader.set_epoch(0)
    assert samples(loader) == first


def test_seed_decides_the_order(tiny: Dataset) -> None:
    orders = [samples(reelseek.make_loader(tiny, 4, seed=seed)) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


def test_order_does_not_depend_on_the_workers(tiny: Dataset) -> None:
    orders = [samples(reelseek.make_loader(tiny, 4, num_workers=n)) for n in (0, 1, 2)]
    assert orders[0] == orders[1] == orders[2]


# Ranks


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_ranks_share_the_samples(tiny: Dataset, world_size: int) -> None:
    def epoch(uneven: Any) -> list[list[int]]:
        loaders = [
            reelseek.make_loader(tiny, 4, rank=r, world_size=world_size, uneven=uneven)
            for r in range(world_size)
        ]
        return [samples(loader) for loader in loaders]

    padded, dropped = epoch("pad"), epoch("drop")
    assert {len(own) for own in padded} == {-(-len(tiny) // world_size)}
    assert {number for own in padded for number in own} == set(range(len(tiny)))
    assert {len(own) for own in dropped} == {len(tiny) // world_size}
    assert len({number for own in dropped for number in own}) == sum(map(len, dropped))


def test_rank_is_torchruns(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    told = reelseek.make_loader(tiny, 4, rank=1, world_size=2)
    assert samples(reelseek.make_loader(tiny, 4)) == samples(told)


def test_last_batch_is_dropped_by_choice(tiny: Dataset) -> None:
    size = 4
    assert len(tiny) % size
    loader = reelseek.make_loader(tiny, size, drop_last=True)
    assert [len(batch["index"]) for batch in loader] == [size] * (len(tiny) // size)
    assert len(loader) == len(tiny) // size


# State


@pytest.mark.parametrize("workers", [(0, 2), (2, 0), (2, 1), (2, 2)])
def test_resumed_epoch_goes_on_exactly(tiny: Dataset, workers: tuple[int, int]) -> None:
    whole = samples(reelseek.make_loader(tiny, 3, seed=5))
    stopped = reelseek.make_loader(tiny, 3, seed=5, num_workers=workers[0])
    batches = iter(stopped)
    before = samples(next(batches) for _ in range(3))
    state = json.loads(json.dumps(stopped.state_dict()))
    del batches, stopped
    resumed = reelseek.make_loader(tiny, 3, seed=5, num_workers=workers[1])
    resumed.load_state_dict(state)
    resumed.set_epoch(state["epoch"])  # as a training loop does
    assert before + samples(resumed) == whole


def test_epoch_after_a_resumed_one_is_the_next(tiny: Dataset) -> None:
    straight = reelseek.make_loader(tiny, 3)
    samples(straight)
    second = samples(straight)
    stopped = reelseek.make_loader(tiny, 3)
    next(iter(stopped))
    resumed = reelseek.make_loader(tiny, 3)
    resumed.load_state_dict(stopped.state_dict())
    assert len(samples(resumed)) == len(tiny) - 3
    assert samples(resumed) == second


def test_state_between_epochs_starts_the_next(tiny: Dataset) -> None:
    loader = reelseek.make_loader(tiny, 3)
    samples(loader)
    assert (loader.state_dict()["epoch"], loader.state_dict()["batches"]) == (1, 0)


def test_ranks_resume_exactly(tiny: Dataset) -> None:
    seen: list[int] = []
    for rank in range(2):
        stopped = reelseek.make_loader(tiny, 3, rank=rank, world_size=2, uneven="drop")
        batches = iter(stopped)
        seen += samples(next(batches) for _ in range(2))
        resumed = reelseek.make_loader(tiny, 3, rank=rank, world_size=2, uneven="drop")
        resumed.load_state_dict(stopped.state_dict())
        seen += samples(resumed)
    assert len(seen) == len(set(seen)) == len(tiny) // 2 * 2


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("world_size", {"rank": 0, "world_size": 2}),
        ("seed", {"seed": 1}),
        ("batch_size", {"batch_size": 4}),
        ("order", {"shuffle": False}),
        ("order", {"sampler": Shuffle(range(5))}),
    ],
)
def test_state_of_another_loader_is_refused(
    tiny: Dataset, name: str, options: dict[str, Any]
) -> None:
    state = reelseek.make_loader(tiny, 3).state_dict()
    other = reelseek.make_loader(tiny, **{"batch_size": 3, **options})
    with pytest.raises(LoaderStateError, match=rf"the state's {name} is .* set_epoch\(1\)"):
        other.load_state_dict(state)


# Workers


def drawn(batch: dict[str, Any]) -> list[float]:
    return [float(torch.rand(())), float(np.random.rand()), random.random()]


@pytest.mark.parametrize("workers", [0, 2])
def test_random_numbers_of_a_batch_are_its_own(tiny: Dataset, workers: int) -> None:
    torch.manual_seed(3)
    expected = float(torch.rand(()))
    torch.manual_seed(3)
    loader = reelseek.make_loader(tiny, 4, num_workers=workers, transform=drawn)
    values = list(loader)
    if workers == 0:
        assert float(torch.rand(())) == expected  # the training's own are left as they were
    plain = list(reelseek.make_loader(tiny, 4, num_workers=1, transform=drawn))
    assert values == plain
    assert len({value for batch in values for value in batch}) == 3 * len(values)


def threads_of(batch: dict[str, Any]) -> int:
    decoding = [t for t in threading.enumerate() if t.name.startswith("reelseek-decode")]
    return int(torch.get_num_threads()) + len(decoding)


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_workers_use_one_thread_each(tiny_root: Path, start_method: str) -> None:
    ds = reelseek.open_dataset(tiny_root, threads=4, episodes=[0])
    loader = reelseek.make_loader(
        ds, 4, num_workers=1, multiprocessing_context=start_method, transform=threads_of
    )
    assert set(loader) == {1}


def test_forked_workers_cannot_decode_on_a_gpu(tiny_root: Path) -> None:
    ds = reelseek.open_dataset(tiny_root, device="cuda")
    with pytest.raises(DeviceUnavailableError, match="multiprocessing_context='spawn'"):
        reelseek.make_loader(ds, 4, num_workers=1, multiprocessing_context="fork")
    reelseek.make_loader(ds, 4, num_workers=1, multiprocessing_context="spawn")
    reelseek.make_loader(ds, 4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"rank": 2, "world_size": 2}, "rank=2"),
        ({"rank": 0}, "give both, or neither"),
        ({"seed": -1}, "seed=-1"),
        ({"uneven": "spread"}, "pad or drop"),
    ],
)
def test_options_out_of_range_are_refused(
    tiny: Dataset, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        reelseek.make_loader(tiny, **{"batch_size": 4, **options})


def test_samples_that_do_not_exist_are_refused(tiny: Dataset) -> None:
    with pytest.raises(SampleIndexError, match=f"no sample {len(tiny)}"):
        reelseek.make_loader(tiny, 4, sampler=Sequential([0, len(tiny)]))


def test_numpy_samples_are_refused(tiny_root: Path) -> None:
    ds = reelseek.open_dataset(tiny_root, output="numpy")
    with pytest.raises(ValueError, match="output='torch'"):
        reelseek.make_loader(ds, 4)
