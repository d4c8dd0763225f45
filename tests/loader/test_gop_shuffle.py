"""The GOP-aware shuffle: exact frames, every sample once, each GOP decoded once, its randomness."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.datasets import Dataset
from reelseek.errors import LoaderStateError
from reelseek.loader import GopShuffle
from reelseek.loader._gop_shuffle import pieces_of
from reelseek.video.backends._contexts import CodecState
from tests.conftest import needed

torch = needed("torch")

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker"),  # on 2 cores
]

DELTAS = {"observation.images.*": [-2, 0, 3]}
LONG_GOPS = {"observation.images.*": [0, 16]}


@pytest.fixture
def pictures(tiny_root: Path) -> Dataset:
    return reelseek.open_dataset(tiny_root, delta_indices=DELTAS)


def small(**options: Any) -> GopShuffle:
    """A shuffle whose buffer is far smaller than the dataset."""
    return GopShuffle(**{"buffer_samples": 8, "open_episodes": 2, "chunk": 3, **options})


def samples(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch["index"].tolist()]


def assert_batches_equal(batches: Any, ds: Dataset) -> int:
    count = 0
    for batch in batches:
        wanted = ds.get_batch(batch["index"].tolist())
        for camera in ds.cameras:
            assert torch.equal(batch[camera], wanted[camera])
        count += len(batch["index"])
    return count


@pytest.mark.parametrize("backend", ["indexed", "torchcodec", "pyav"])
@pytest.mark.parametrize("offsets", [[0], [-2, 0, 3], [5, 0], [0, 0, 1], [-40, 40]])
def test_batches_are_those_of_get_batch(tiny_root: Path, backend: str, offsets: list[int]) -> None:
    deltas = {"observation.images.*": offsets}
    ds = reelseek.open_dataset(tiny_root, delta_indices=deltas, backend=backend)
    loader = reelseek.make_loader(ds, 4, sampler=small())
    for _epoch in range(2):
        assert assert_batches_equal(loader, ds) == len(ds)


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_epoch_holds_every_sample_once(pictures: Dataset, workers: int) -> None:
    loader = reelseek.make_loader(pictures, 4, num_workers=workers, sampler=small())
    first, second = samples(loader), samples(loader)
    assert first != second
    assert sorted(first) == sorted(second) == list(range(len(pictures)))


def test_order_is_the_seeds(pictures: Dataset) -> None:
    orders = [
        samples(reelseek.make_loader(pictures, 4, sampler=small(), seed=s)) for s in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("streams", [1, 2])
def test_ranks_share_the_samples(pictures: Dataset, world_size: int, streams: int) -> None:
    def epoch(uneven: Any) -> list[list[int]]:
        return [
            samples(
                reelseek.make_loader(
                    pictures, 4, rank=rank, world_size=world_size, uneven=uneven,
                    sampler=small(streams=streams),
                )
            )
            for rank in range(world_size)
        ]  # fmt: skip

    padded, dropped = epoch("pad"), epoch("drop")
    assert {number for own in padded for number in own} == set(range(len(pictures)))
    assert {len(own) for own in padded} == {-(-len(pictures) // world_size)}
    assert {len(own) for own in dropped} == {len(pictures) // world_size}
    assert len({number for own in dropped for number in own}) == sum(map(len, dropped))


@pytest.mark.parametrize("stop", [1, 2, 5])
@pytest.mark.parametrize("workers", [(2, 0), (0, 2), (2, 3)])
def test_resumed_epoch_goes_on_exactly(
    pictures: Dataset, stop: int, workers: tuple[int, int]
) -> None:
    def make(num_workers: int) -> Any:
        return reelseek.make_loader(pictures, 3, num_workers=num_workers, sampler=small())

    stopped = make(workers[0])
    whole = samples(make(workers[0]))
    batches = iter(stopped)
    before = samples(itertools.islice(batches, stop))
    state = stopped.state_dict()
    del batches, stopped
    resumed = make(workers[1])
    resumed.load_state_dict(state)
    rest = list(resumed)
    assert before + samples(rest) == whole
    assert_batches_equal(rest, pictures)


def test_state_of_another_buffer_is_refused(pictures: Dataset) -> None:
    state = reelseek.make_loader(pictures, 3, sampler=small()).state_dict()
    other = reelseek.make_loader(pictures, 3, sampler=small(buffer_samples=9))
    with pytest.raises(LoaderStateError, match="the state's order"):
        other.load_state_dict(state)


def test_only_the_named_samples_come(pictures: Dataset) -> None:
    chosen = list(range(1, len(pictures), 3))
    loader = reelseek.make_loader(pictures, 4, sampler=small(samples=chosen))
    batches = list(loader)
    assert sorted(samples(batches)) == chosen
    assert_batches_equal(batches, pictures)


def test_pass_broken_off_leaves_nothing_behind(pictures: Dataset) -> None:
    loader = reelseek.make_loader(pictures, 4, sampler=small())
    next(iter(loader))
    assert assert_batches_equal(loader, pictures) == len(pictures)
    ahead = loader.dataset._ahead
    assert (ahead._kept, ahead._cursors) == ({}, {})


def test_long_episodes_are_cut_at_key_frames(pictures: Dataset) -> None:
    numbers = np.arange(len(pictures))
    cut = list(pieces_of(pictures, numbers, 2))
    assert np.concatenate(cut).tolist() == numbers.tolist()
    assert len(cut) > len(pictures.episodes)
    for piece in cut:
        assert piece[0] in pictures.key_samples(int(piece[0]))


# What it is for


def units_fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    fed: list[int] = []
    feed = CodecState.feed

    def counting(self: CodecState, unit: int, data: bytes) -> Any:
        fed.append(unit)
        return feed(self, unit, data)

    monkeypatch.setattr(CodecState, "feed", counting)
    return fed


def test_each_gop_is_decoded_once(
    real_datasets: Path, monkeypatch: pytest.MonkeyPatch, figure: Callable[[str], None]
) -> None:
    ds = reelseek.open_dataset(real_datasets / "gr00t_picknplace", delta_indices=LONG_GOPS)
    fed = units_fed(monkeypatch)
    assert sum(len(batch["index"]) for batch in reelseek.make_loader(ds, 16, sampler=GopShuffle()))
    units = len(fed)
    figure(f"GOP-aware shuffle, gr00t_picknplace: {units / len(ds):.3f} units decoded a sample")
    assert units <= 1.01 * len(ds)


@pytest.mark.parametrize(
    "name", ["gr00t_picknplace", "aloha3cam_v21_128_hevc_default", "aloha3cam_v21_128_av1_default"]
)
def test_real_frames_are_those_of_get_batch(real_datasets: Path, name: str) -> None:
    ds = reelseek.open_dataset(real_datasets / name, delta_indices=LONG_GOPS, episodes=[0, 1])
    loader = reelseek.make_loader(ds, 24, sampler=GopShuffle(buffer_samples=150))
    for batch in itertools.islice(loader, 0, None, 5):
        wanted = ds.get_batch(batch["index"].tolist())
        assert all(torch.equal(batch[camera], wanted[camera]) for camera in ds.cameras)


def test_memory_stays_within_the_buffer(real_datasets: Path) -> None:
    ds = reelseek.open_dataset(real_datasets / "gr00t_picknplace", delta_indices=LONG_GOPS)
    size = 48 * 1024 * 1024
    loader = reelseek.make_loader(ds, 16, sampler=GopShuffle(buffer_bytes=size))
    for _epoch in range(2):
        assert sum(len(batch["index"]) for batch in loader) == len(ds)
    places = sum(map(len, loader.dataset._ahead._free.values()))
    assert places * ds.frame_bytes(ds.cameras[0]) <= 1.1 * size
