"""A dataset with an index gives the samples that it gives without."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.datasets import Dataset
from reelseek.index import build_index
from reelseek.video import _open as opening
from tests.conftest import needed
from tests.datasets import makers
from tests.datasets.makers import TOP, v2_video
from tests.patience import PATIENCE

torch = needed("torch")
DataLoader = needed("torch.utils.data").DataLoader

DELTAS = {"observation.images.*": [-1, 0, 3], "action": range(4)}

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@pytest.fixture(params=["v2.1", "v3.0"])
def indexed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[Any]]:
    """A dataset with an index, and its samples as they were without."""
    make = makers.make_v21 if request.param == "v2.1" else makers.make_v30
    root = make(tmp_path / "data")
    expected = samples(opened(root))
    assert build_index(root).failures == ()
    return root, expected


def opened(root: Path) -> Dataset:
    return reelseek.open_dataset(root, delta_indices=DELTAS)


def samples(ds: Dataset) -> list[Any]:
    return [ds[index] for index in range(len(ds))]


def assert_equal(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert set(one) == set(other)
        for key, value in one.items():
            same = torch.equal if isinstance(value, torch.Tensor) else np.array_equal
            assert same(value, other[key]), key


def refuse(path: str) -> Any:
    raise AssertionError(f"{path} was looked into")


def test_samples_are_the_same_and_no_video_is_looked_into(
    indexed: tuple[Path, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "index_video", refuse)
    monkeypatch.setattr(opening, "index_tables", refuse)
    root, expected = indexed
    ds = opened(root)
    assert_equal(samples(ds), expected)
    assert ds.index.note == ""
    assert_equal(samples(pickle.loads(pickle.dumps(ds))), expected)


@pytest.mark.parametrize(
    ("start_method", "read_before"), [("fork", False), ("fork", True), ("spawn", True)]
)
def test_workers_give_the_same_samples(
    indexed: tuple[Path, list[Any]], start_method: str, read_before: bool
) -> None:
    root, expected = indexed
    ds = opened(root)
    if read_before:
        ds[0]
    loader = DataLoader(
        ds, batch_size=None, num_workers=2, multiprocessing_context=start_method, timeout=PATIENCE
    )
    assert_equal(list(loader), expected)


def test_changed_video_is_read_as_it_is_now(tmp_path: Path) -> None:
    root = makers.make_v21(tmp_path / "data")
    build_index(root)
    path = v2_video(root, TOP, 1)
    path.write_bytes(makers.bars_video(77, 5))
    assert makers.numbers(opened(root)[7][TOP])[1] == 77


def test_damaged_index_is_left_aside_with_a_note(tmp_path: Path) -> None:
    root = makers.make_v21(tmp_path / "data")
    build_index(root)
    os.truncate(root / "meta" / "reelseek" / "index.bin", 100)
    ds = opened(root)
    assert makers.numbers(ds[3][TOP])[1] == 3
    assert "reelseek index" in ds.index.note
