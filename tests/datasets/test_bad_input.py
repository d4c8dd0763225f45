"""Damaged data and videos: a typed error that says where, what, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reelseek
from reelseek.errors import (
    CorruptVideoError,
    DatasetFormatError,
    DatasetNotFoundError,
    NotAVideoError,
    ReelseekError,
    TimestampToleranceError,
    VideoLengthError,
    VideoNotFoundError,
)
from tests.datasets.makers import (
    SPEC,
    TOP,
    WRIST,
    as_cut,
    as_folder,
    as_lfs_pointer,
    as_pipe,
    bars_video,
    change_rows,
    make_gr00t,
    numbers,
    shown,
    v2_data,
    v2_video,
    v3_data,
    v3_episodes,
    v3_video,
    with_column,
)

GOOD = 8
"""A sample of episode 1; the tests damage episode 0."""


def refused_sample(
    root: Path,
    kind: type[ReelseekError],
    match: str,
    path: Path,
    *,
    sample: int = 3,
    **options: Any,
) -> ReelseekError:
    """The error of one sample; the dataset reads good ones before and after it."""
    ds = reelseek.open_dataset(root, **options)
    good = ds[GOOD][WRIST] if WRIST in ds.cameras else ds[GOOD]["index"]
    with pytest.raises(kind, match=match) as caught:
        ds[sample]
    assert caught.value.path == str(path)
    assert caught.value.remedy
    again = ds[GOOD][WRIST] if WRIST in ds.cameras else ds[GOOD]["index"]
    assert np.array_equal(good, again)
    with pytest.raises(kind):
        ds.get_batch([GOOD, sample])
    return caught.value


# Parquet


def test_parquet_missing(v21: Path) -> None:
    ds = reelseek.open_dataset(v21)
    v2_data(v21, 0).unlink()
    with pytest.raises(DatasetNotFoundError, match=r"missing.*data folder again") as caught:
        ds[3]
    assert caught.value.path == str(v2_data(v21, 0))
    assert ds[GOOD]["index"] == GOOD


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (as_cut, "no readable parquet file.*Copy it again"),
        (as_lfs_pointer, "LFS pointer.*git lfs pull"),
        (lambda path: path.write_bytes(b""), "an empty file"),
        (lambda path: path.write_bytes(b"PAR1" * 40), "no readable parquet file"),
        (as_folder, "folder, device or pipe"),
        (as_pipe, "folder, device or pipe"),
    ],
)
def test_parquet_damaged(v21: Path, damage: Callable[[Path], Any], match: str) -> None:
    damage(v2_data(v21, 2))
    refused_sample(v21, DatasetFormatError, match, v2_data(v21, 2), sample=14)


def test_first_parquet_damaged_is_refused_at_once(v21: Path) -> None:
    as_cut(v2_data(v21, 0))
    with pytest.raises(DatasetFormatError, match=r"no readable parquet file"):
        reelseek.open_dataset(v21)


def test_parquet_with_its_pages_damaged(v21: Path) -> None:
    path = v2_data(v21, 0)
    data = bytearray(path.read_bytes())
    data[4:64] = bytes(60)
    path.write_bytes(bytes(data))
    refused_sample(v21, DatasetFormatError, "no readable parquet file", path)


def test_v2_rows_that_disagree_with_meta(v21: Path) -> None:
    change_rows(v2_data(v21, 0), lambda table: table.slice(0, 6))
    refused_sample(v21, DatasetFormatError, "episode 0: the file has 6 rows where meta needs 7",
            v2_data(v21, 0))  # fmt: skip


def test_v3_rows_that_disagree_with_meta(v30: Path) -> None:
    change_rows(v3_data(v30, 0), lambda table: table.slice(0, 20))
    refused_sample(v30, DatasetFormatError, "episode 2: the file has 20 rows where meta needs 21",
            v3_data(v30, 0), sample=14)  # fmt: skip


def test_v2_rows_of_another_episode(v21: Path) -> None:
    change_rows(v2_data(v21, 0), lambda table: with_column(table, "episode_index", [0] * 6 + [2]))
    refused_sample(v21, DatasetFormatError, "rows of episode 0 say that they are of episode 2",
            v2_data(v21, 0))  # fmt: skip


def test_v3_rows_of_another_episode(v30: Path) -> None:
    path = v3_data(v30, 0)
    change_rows(path, lambda table: table.slice(1).append_column("x", pa.array(range(20)))
                .drop_columns(["x"]).take(pa.array([*range(20), 19])))  # fmt: skip
    ds = reelseek.open_dataset(v30)
    with pytest.raises(DatasetFormatError, match=r"rows of episode 0 say that they are of episode"):
        ds[3]


def test_v3_rows_that_do_not_say_their_episode(v30: Path) -> None:
    change_rows(v3_data(v30, 0), lambda table: table.drop_columns(["episode_index"]))
    ds = reelseek.open_dataset(v30)
    with pytest.raises(DatasetFormatError, match=r"no column 'episode_index'"):
        ds[3]


def test_column_that_one_episode_lacks(v21: Path) -> None:
    change_rows(v2_data(v21, 2), lambda table: table.drop_columns(["action"]))
    refused_sample(
        v21, DatasetFormatError, "episode 2 has no column 'action'", v2_data(v21, 2), sample=14
    )


def test_column_that_is_there_twice(v21: Path) -> None:
    table = pq.read_table(v2_data(v21, 2), partitioning=None)
    pq.write_table(table.append_column("action", table["index"]), v2_data(v21, 2))
    refused_sample(v21, DatasetFormatError, "two columns 'action'", v2_data(v21, 2), sample=14)


def test_rows_of_more_values_than_fit_in_memory(v21: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reelseek.datasets._parquet.MAX_VALUES", 12 * 7)
    refused_sample(
        v21, DatasetFormatError, "hold 91 values, and at most 84 are read", v2_data(v21, 0)
    )


@pytest.mark.parametrize("name", ["index", "next.reward", "next.done", "timestamp", "task_index"])
def test_missing_value(v21: Path, name: str) -> None:
    def change(table: pa.Table) -> pa.Table:
        column = table[name]
        return with_column(table, name, pa.array([None, *column.to_pylist()[1:]], type=column.type))

    change_rows(v2_data(v21, 0), change)
    refused_sample(v21, DatasetFormatError, f"1 values of {name} are missing", v2_data(v21, 0))


@pytest.mark.parametrize("cell", [None, [1.0, None, 2.0, 3.0]])
def test_missing_vector_or_element(v21: Path, cell: Any) -> None:
    def change(table: pa.Table) -> pa.Table:
        cells = [cell, *table["observation.state"].to_pylist()[1:]]
        return with_column(table, "observation.state", pa.array(cells, pa.list_(pa.float32())))

    change_rows(v2_data(v21, 0), change)
    refused_sample(
        v21, DatasetFormatError, "1 values of observation.state are missing", v2_data(v21, 0)
    )


def ragged(table: pa.Table) -> pa.Table:
    """A table whose action vectors grow from row to row."""
    cells = [[float(n)] * (n + 1) for n in range(len(table))]
    return with_column(table, "action", pa.array(cells, pa.list_(pa.float64())))


def test_ragged_vectors_do_not_stack(v21: Path) -> None:
    change_rows(v2_data(v21, 0), ragged)
    refused_sample(v21, DatasetFormatError, r"values of 'action' differ in shape: \(3,\), \(4,\)",
            v2_data(v21, 0), sample=2, delta_indices={"action": [0, 1]})  # fmt: skip


def test_ragged_vectors_are_read_one_at_a_time(v21: Path) -> None:
    change_rows(v2_data(v21, 0), ragged)
    ds = reelseek.open_dataset(v21)
    assert ds[2]["action"].tolist() == [2.0, 2.0, 2.0]
    assert str(ds[2]["action"].dtype) == "torch.float32"
    with pytest.raises(DatasetFormatError, match=r"one at a time"):
        ds.get_batch([2, 3])


@pytest.mark.parametrize("value", [9, -1, 2**40])
def test_task_without_a_text(v21: Path, value: int) -> None:
    change_rows(v2_data(v21, 0), lambda table: with_column(table, "task_index", [value] * 7))
    refused_sample(v21, DatasetFormatError, f"task_index is {value}, .*no task", v2_data(v21, 0))


@pytest.mark.parametrize("values", [["x"] * 7, [0.5] * 7, [[0]] * 7])
def test_task_number_of_another_type(v21: Path, values: list[Any]) -> None:
    change_rows(v2_data(v21, 0), lambda table: with_column(table, "task_index", values))
    refused_sample(v21, DatasetFormatError, "task_index is .*no task", v2_data(v21, 0))


@pytest.mark.parametrize("values", [["x"] * 7, [[0.0]] * 7, [True] * 7])
def test_time_of_another_type(v21: Path, values: list[Any]) -> None:
    change_rows(v2_data(v21, 0), lambda table: with_column(table, "timestamp", values))
    refused_sample(v21, DatasetFormatError, "the column 'timestamp' holds", v2_data(v21, 0))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_time_that_is_no_number(v21: Path, value: float) -> None:
    change_rows(v2_data(v21, 0), lambda table: with_column(table, "timestamp", [value] * 7))
    refused_sample(v21, DatasetFormatError, "timestamp is (nan|inf) in row 0", v2_data(v21, 0))


def test_whole_number_beyond_64_bits(v21: Path) -> None:
    big = pa.array([2**64 - 1] * 7, pa.uint64())
    change_rows(v2_data(v21, 0), lambda table: with_column(table, "index", big))
    refused_sample(
        v21, DatasetFormatError, "no readable parquet file.*not in range", v2_data(v21, 0)
    )


def test_text_column_is_kept_as_text(v21: Path) -> None:
    for episode, length in enumerate(SPEC.lengths):
        words = [f"{episode}-{row}" for row in range(length)]
        path = v2_data(v21, episode)
        pq.write_table(with_column(pq.read_table(path, partitioning=None), "note", words), path)
    ds = reelseek.open_dataset(v21)
    assert ds[3]["note"] == "0-3"
    assert ds.get_batch([3, 8])["note"] == ["0-3", "1-1"]
    windows = reelseek.open_dataset(v21, delta_indices={"note": [0, 9]})
    assert windows[3]["note"] == ["0-3", "0-6"]


# Videos


def test_video_missing(v21: Path) -> None:
    path = v2_video(v21, TOP, 0)
    path.unlink()
    refused_sample(v21, VideoNotFoundError, "no such file.*mounted", path)


def test_video_that_is_a_dead_link(v21: Path) -> None:
    path = v2_video(v21, TOP, 0)
    path.unlink()
    path.symlink_to("../../blobs/none")
    refused_sample(v21, VideoNotFoundError, "symbolic link", path)


@pytest.mark.parametrize(
    ("damage", "kind", "match"),
    [
        (lambda path: path.write_bytes(b""), NotAVideoError, "an empty file"),
        (as_lfs_pointer, NotAVideoError, "LFS pointer.*git lfs pull"),
        (as_cut, CorruptVideoError, "cut short"),
        (lambda path: path.write_text("404: Not Found\n"), NotAVideoError, "a text file"),
        (as_folder, NotAVideoError, "a folder"),
    ],
)
def test_video_damaged(
    v21: Path, damage: Callable[[Path], Any], kind: type[ReelseekError], match: str
) -> None:
    path = v2_video(v21, TOP, 0)
    damage(path)
    refused_sample(v21, kind, match, path)


def test_video_shorter_than_its_episode_names_both_counts(v21: Path) -> None:
    path = v2_video(v21, TOP, 0)
    path.write_bytes(bars_video(0, 5))
    refused_sample(
        v21, VideoLengthError, "episode 0 has 7 rows, and its video of .*top 5 frames", path
    )


def test_v3_video_shorter_than_its_episodes_names_both_counts(v30: Path) -> None:
    path = v3_video(v30, TOP, 1)
    path.write_bytes(bars_video(12, 11))
    refused_sample(v30, VideoLengthError, "episode 3 has 4 rows, .* 2 frames from frame 9 on", path,
            sample=22)  # fmt: skip


def test_video_longer_than_its_episode_is_read(v21: Path) -> None:
    v2_video(v21, TOP, 0).write_bytes(bars_video(0, 9))
    ds = reelseek.open_dataset(v21, delta_indices={TOP: [0, 1]})
    assert numbers(ds[6][TOP]) == [6, 6]


@pytest.mark.parametrize(
    ("start", "kind"),
    [(9.0, VideoLengthError), (0.73, TimestampToleranceError), (-3.0, TimestampToleranceError),
     (1e300, VideoLengthError), (1.0, VideoLengthError)],
)  # fmt: skip
def test_v3_episode_that_starts_where_no_frame_is(
    v30: Path, start: float, kind: type[ReelseekError]
) -> None:
    name = f"videos/{TOP}/from_timestamp"

    def change(table: pa.Table) -> pa.Table:
        return with_column(table, name, [table[name][0].as_py(), start, table[name][2].as_py()])

    change_rows(v3_episodes(v30), change)
    ds = reelseek.open_dataset(v30)
    with pytest.raises(kind, match=r"episode 1"):
        ds[GOOD]
    assert numbers(ds[3][TOP]) == 3


def test_v3_episode_of_one_row_past_the_end(tmp_path: Path) -> None:
    from tests.datasets.makers import Spec, make_v30

    root = make_v30(tmp_path, Spec(lengths=(3, 1), cameras=(TOP,)), data_files=[[0, 1]],
                    video_files=[[0, 1]], meta_files=[[0, 1]])  # fmt: skip
    name = f"videos/{TOP}/from_timestamp"
    change_rows(v3_episodes(root), lambda table: with_column(table, name, [0.0, 0.4]))
    with pytest.raises(TimestampToleranceError, match=r"0.100000 s away"):
        reelseek.open_dataset(root)[3]


def test_times_off_the_grid_give_the_distance(v21: Path) -> None:
    late = [0.0, 0.1, 0.23, 0.3, 0.4, 0.5, 0.6]
    change_rows(v2_data(v21, 0), lambda table: with_column(table, "timestamp", late))
    refused_sample(v21, TimestampToleranceError,
            "episode 0, row 2 of .*top is at 0.23.*frame there, 2, is 0.030000 s away.*tolerance_s",
            v2_video(v21, TOP, 0), sample=2)  # fmt: skip
    assert numbers(reelseek.open_dataset(v21)[1][TOP]) == 1
    assert numbers(reelseek.open_dataset(v21, tolerance_s=0.031)[2][TOP]) == 2


def test_frames_off_the_grid_give_the_distance(v21: Path) -> None:
    path = v2_video(v21, WRIST, 2)
    path.write_bytes(bars_video(shown(WRIST, 12), 9, late=0.002))
    refused_sample(v21, TimestampToleranceError, "0.002000 s away", path, sample=14)
    ds = reelseek.open_dataset(v21, tolerance_s=0.003)
    assert numbers(ds[14][WRIST]) == shown(WRIST, 14)


def test_times_are_counted_where_the_file_has_none(v21: Path) -> None:
    change_rows(v2_data(v21, 0), lambda table: table.drop_columns(["timestamp"]))
    ds = reelseek.open_dataset(v21, delta_indices={TOP: [0, 2]})
    assert numbers(ds[3][TOP]) == [3, 5]


def test_videos_of_two_sizes_do_not_stack(v21: Path, tmp_path: Path) -> None:
    from tests.corpus import ffmpeg

    path = v2_video(v21, TOP, 0)
    ffmpeg("-i", path, "-vf", "scale=160:32", "-c:v", "libx264", tmp_path / "small.mp4")
    path.write_bytes((tmp_path / "small.mp4").read_bytes())
    ds = reelseek.open_dataset(v21)
    assert ds[3][TOP].shape == (3, 32, 160)
    with pytest.raises(DatasetFormatError, match=r"videos of .*top differ in size: .*160x32"):
        ds.get_batch([3, 8])


def test_annotation_without_a_text(tmp_path: Path) -> None:
    root = make_gr00t(tmp_path)
    name = "annotation.human.validity"
    change_rows(v2_data(root, 0), lambda table: with_column(table, name, [50] * 7))
    refused_sample(root, DatasetFormatError, f"{name} is 50", v2_data(root, 0), keys="gr00t")
