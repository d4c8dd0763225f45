"""Damaged ``meta`` of v3.0: its episodes, and its tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import reelseek
from reelseek.errors import DatasetFormatError, DatasetNotFoundError
from tests.datasets.makers import (
    TOP,
    as_cut,
    as_lfs_pointer,
    change_rows,
    numbers,
    v3_episodes,
    with_column,
)
from tests.datasets.test_bad_meta import refused

VIDEO_PLACES = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")


def set_value(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """A change of a table: the first row's value of a column."""

    def change(table: pa.Table) -> pa.Table:
        return with_column(table, name, [value, *table[name].to_pylist()[1:]])

    return change


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("length", 6, "episode 0 has length 6, and its rows 0 to 7 are 7"),
        ("length", -7, "length is -7"),
        ("dataset_to_index", -1, "dataset_to_index is -1"),
        ("dataset_to_index", 2**62, "dataset_to_index is 4"),
        ("dataset_from_index", None, "values of dataset_from_index are missing"),
        ("episode_index", 1, "episode 1 is listed twice"),
        ("data/file_index", -1, "data/file_index is -1"),
        ("data/chunk_index", 2**60, "data/chunk_index is"),
        (f"videos/{TOP}/file_index", None, "missing"),
        (f"videos/{TOP}/from_timestamp", float("nan"), "from_timestamp is nan in row 0"),
        (f"videos/{TOP}/from_timestamp", float("inf"), "from_timestamp is inf in row 0"),
        (f"videos/{TOP}/from_timestamp", None, "missing"),
    ],
)
def test_v3_episode_that_says_what_cannot_be(v30: Path, name: str, value: Any, match: str) -> None:
    change_rows(v3_episodes(v30), set_value(name, value))
    with pytest.raises(DatasetFormatError, match=match) as caught:
        reelseek.open_dataset(v30)
    assert str(v30 / "meta/episodes") in str(caught.value.path)
    assert caught.value.remedy


@pytest.mark.parametrize("values", [["a", "b", "c"], [0.5, 1.5, 2.5], [[0], [1], [2]], [True] * 3])
@pytest.mark.parametrize("name", ["episode_index", "length", f"videos/{TOP}/chunk_index"])
def test_v3_column_of_another_type(v30: Path, name: str, values: list[Any]) -> None:
    change_rows(v3_episodes(v30), lambda table: with_column(table, name, values))
    with pytest.raises(DatasetFormatError, match=f"{name}.*not numbers"):
        reelseek.open_dataset(v30)


@pytest.mark.parametrize("name", ["episode_index", "length", "data/file_index", "dataset_to_index"])
def test_v3_column_that_is_missing(v30: Path, name: str) -> None:
    change_rows(v3_episodes(v30, 1), lambda table: table.drop_columns([name]))
    path = v3_episodes(v30, 1).relative_to(v30)
    refused(v30, DatasetFormatError, f"no column '{name}'", path)


def test_v3_without_episodes(v30: Path) -> None:
    for number in (0, 1):
        v3_episodes(v30, number).unlink()
    refused(v30, DatasetNotFoundError, "no episodes", "meta/episodes")


def test_v3_camera_that_no_file_of_meta_places_counts_as_absent(v30: Path) -> None:
    names = [f"videos/{TOP}/{name}" for name in VIDEO_PLACES]
    change_rows(v3_episodes(v30), lambda table: table.drop_columns(names))
    assert TOP not in reelseek.open_dataset(v30).cameras


@pytest.mark.parametrize("name", VIDEO_PLACES[:3])
def test_v3_camera_that_is_placed_in_part(v30: Path, name: str) -> None:
    column = f"videos/{TOP}/{name}"
    change_rows(v3_episodes(v30), lambda table: table.drop_columns([column]))
    path = v3_episodes(v30).relative_to(v30)
    refused(v30, DatasetFormatError, f"no column '{column}'", path)


def test_v3_camera_whose_ends_are_not_given_is_read(v30: Path) -> None:
    column = f"videos/{TOP}/to_timestamp"
    for number in (0, 1):
        change_rows(v3_episodes(v30, number), lambda table: table.drop_columns([column]))
    ds = reelseek.open_dataset(v30)
    assert [numbers(ds[index][TOP]) for index in range(25)] == list(range(25))


@pytest.mark.parametrize("name", ["meta/tasks.parquet", "meta/episodes/chunk-000/file-001.parquet"])
def test_v3_meta_file_that_is_damaged(v30: Path, name: str) -> None:
    as_cut(v30 / name)
    refused(v30, DatasetFormatError, "no readable parquet file.*Copy it again", name)
    as_lfs_pointer(v30 / name)
    refused(v30, DatasetFormatError, "LFS pointer.*git lfs pull", name)
    (v30 / name).write_bytes(b"")
    refused(v30, DatasetFormatError, "an empty file", name)
    (v30 / name).unlink()
    (v30 / name).mkdir()
    refused(v30, DatasetFormatError, "folder, device or pipe", name)


def test_v3_tasks_that_are_missing(v30: Path) -> None:
    (v30 / "meta/tasks.parquet").unlink()
    refused(v30, DatasetNotFoundError, "missing.*meta folder", "meta/tasks.parquet")


def test_v3_tasks_without_texts(v30: Path) -> None:
    path = v30 / "meta/tasks.parquet"
    change_rows(path, lambda table: table.drop_columns(["__index_level_0__"]))
    refused(v30, DatasetFormatError, "no tasks in its columns", "meta/tasks.parquet")


def test_v3_tasks_without_numbers(v30: Path) -> None:
    path = v30 / "meta/tasks.parquet"
    change_rows(path, lambda table: with_column(table, "task_index", ["a", "b"]))
    refused(v30, DatasetFormatError, "task_index", "meta/tasks.parquet")


def test_v3_episodes_may_stand_in_any_order(v30: Path) -> None:
    change_rows(v3_episodes(v30), lambda table: table.take(pa.array([2, 0, 1])))
    ds = reelseek.open_dataset(v30)
    assert [episode.index for episode in ds.episodes] == [0, 1, 2, 3]
    assert [int(ds[n]["index"]) for n in range(25)] == list(range(25))
