"""Statistics for normalisation: the values, and that no picture is looked at."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import reelseek
from reelseek.errors import DatasetNotFoundError, FeatureNotFoundError
from tests.datasets.makers import SPEC


def column(ds: Any, key: str) -> Any:
    return np.stack([ds[number][key] for number in range(len(ds))]).astype(np.float64)


def test_statistics_are_those_of_all_rows(root: Path) -> None:
    ds = reelseek.open_dataset(root, output="numpy", cameras=())
    found = ds.statistics()
    assert "action" in found
    for key, statistics in found.items():
        values = column(ds, key).reshape(len(ds), -1)
        assert statistics.count == len(ds)
        np.testing.assert_allclose(statistics.mean, values.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(statistics.std, values.std(axis=0), rtol=1e-6)
        assert np.array_equal(statistics.min, values.min(axis=0))
        assert np.array_equal(statistics.max, values.max(axis=0))
        median = np.median(values, axis=0)
        np.testing.assert_allclose(statistics.quantiles[0.5], median, rtol=1e-6)


def test_only_the_chosen_episodes_count(root: Path) -> None:
    ds = reelseek.open_dataset(root, output="numpy", episodes=[2, 1])
    action = ds.statistics(["action"], quantiles=())["action"]
    assert action.count == SPEC.lengths[1] + SPEC.lengths[2]
    np.testing.assert_allclose(action.mean, column(ds, "action").mean(axis=0), rtol=1e-6)
    assert action.quantiles == {}


def test_gr00ts_parts_have_their_own(roots: dict[str, Path]) -> None:
    ds = reelseek.open_dataset(roots["gr00t"], output="numpy", keys="gr00t", cameras=())
    for key, statistics in ds.statistics().items():
        assert statistics.mean.shape == np.atleast_1d(ds[0][key]).shape


def test_unknown_keys_are_refused(root: Path) -> None:
    ds = reelseek.open_dataset(root, output="numpy", cameras=())
    with pytest.raises(FeatureNotFoundError, match=r"'speed'.* Those are: .*action"):
        ds.statistics(["speed"])


def test_missing_files_are_named(v21: Path) -> None:
    ds = reelseek.open_dataset(v21, output="numpy", cameras=())
    shutil.rmtree(v21 / "data")
    with pytest.raises(DatasetNotFoundError, match=r"episode_000000\.parquet"):
        ds.statistics()


def test_no_video_is_looked_at(v21: Path) -> None:
    ds = reelseek.open_dataset(v21, output="numpy", cameras=())
    shutil.rmtree(v21 / "videos")
    assert ds.statistics(["action"])["action"].count == len(ds)
    assert len(ds.get_batch(range(len(ds)))["action"]) == len(ds)


@pytest.mark.parametrize("name", ["aloha3cam_v30_128", "aloha3cam_v21_128"])
def test_statistics_take_little_more_than_arrow(
    real_datasets: Path, name: str, figure: Callable[[str], None]
) -> None:
    root = real_datasets / name
    ds = reelseek.open_dataset(root, output="numpy", cameras=())
    keys = ["observation.state", "action"]

    def plain() -> None:
        for path in sorted((root / "data").rglob("*.parquet")):
            table = pq.read_table(path, columns=keys, use_threads=False)
            for key in keys:
                table[key].combine_chunks().flatten().to_numpy()

    def ours() -> None:
        ds.statistics(keys, quantiles=())

    times = {plain: [], ours: []}  # type: dict[Any, list[float]]
    for _turn in range(7):
        for function, taken in times.items():
            started = time.process_time()
            function()
            taken.append(time.process_time() - started)
    arrow, own = (float(np.median(taken)) for taken in times.values())
    figure(f"statistics of {name}: {len(ds) / own:,.0f} rows/s; {own / arrow:.2f}x pyarrow's read")
    assert own < 2.5 * arrow
