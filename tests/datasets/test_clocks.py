"""Which frame a row means where its clock and the video's don't start together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import reelseek
from reelseek.errors import TimestampToleranceError
from tests.datasets.makers import (
    SPEC,
    TOP,
    WRIST,
    bars_video,
    change_rows,
    numbers,
    shown,
    v2_data,
    v2_video,
    v3_data,
    v3_episodes,
    with_column,
)


def shift(path: Path, seconds: float) -> None:
    """Let the clock of all rows of a file start later."""

    def change(table: pa.Table) -> pa.Table:
        later = table["timestamp"].to_numpy() + np.float32(seconds)
        return with_column(table, "timestamp", pa.array(later, pa.float32()))

    change_rows(path, change)


def all_shown(root: Path, **options: Any) -> list[int]:
    ds = reelseek.open_dataset(root, **options)
    return [numbers(ds[index][TOP]) for index in range(len(ds))]


@pytest.mark.parametrize("seconds", [0.1, 0.05, -0.3, 2.0, 0.0334])
def test_v2_clock_that_starts_late_takes_no_neighbour(v21: Path, seconds: float) -> None:
    for episode in range(4):
        shift(v2_data(v21, episode), seconds)
    assert all_shown(v21) == list(range(25))


@pytest.mark.parametrize("seconds", [0.1, 0.05, -0.3, 2.0])
def test_v3_clock_that_starts_late_takes_no_neighbour(v30: Path, seconds: float) -> None:
    for number in (0, 1):
        shift(v3_data(v30, number), seconds)
    assert all_shown(v30) == list(range(25))


def times_of_the_whole_file(table: pa.Table) -> pa.Table:
    times = pa.array(table["index"].to_numpy() / SPEC.fps, pa.float32())
    return with_column(table, "timestamp", times)


def test_v3_clock_that_runs_on_over_episodes_takes_no_neighbour(v30: Path) -> None:
    for number in (0, 1):
        path = v3_data(v30, number)
        change_rows(path, times_of_the_whole_file)
    assert all_shown(v30) == list(range(25))


def test_video_that_starts_late_has_its_frames_in_order(v21: Path, tmp_path: Path) -> None:
    from tests.corpus import ffmpeg

    path = v2_video(v21, TOP, 0)
    ffmpeg("-i", path, "-c", "copy", "-output_ts_offset", "1.5", tmp_path / "late.mp4")
    path.write_bytes((tmp_path / "late.mp4").read_bytes())
    assert all_shown(v21) == list(range(25))


def test_rows_cut_at_the_start_keep_their_times(v21: Path) -> None:
    """The video has two frames more than the rows, which start at its third."""
    v2_video(v21, TOP, 0).write_bytes(bars_video(500, 9))
    v2_video(v21, WRIST, 0).write_bytes(bars_video(600, 9))
    shift(v2_data(v21, 0), 0.2)
    ds = reelseek.open_dataset(v21)
    assert [numbers(ds[index][TOP]) for index in range(7)] == list(range(502, 509))
    assert [numbers(ds[index][WRIST]) for index in range(7)] == list(range(602, 609))


@pytest.mark.parametrize(("start", "episode", "index"), [(0.8, 0, 0), (-0.7, 1, 7)])
def test_v3_row_in_another_episode_is_refused(
    v30: Path, start: float, episode: int, index: int
) -> None:
    """Its time leads to a frame that is another episode's."""
    name, ends = f"videos/{TOP}/to_timestamp", [0.5, 1.0, 0.9]
    change_rows(v3_episodes(v30), lambda table: with_column(table, name, ends))
    shift(v3_data(v30, 0), start)
    with pytest.raises(TimestampToleranceError, match=rf"episode {episode}, .*another episode's"):
        reelseek.open_dataset(v30)[index]


def test_uneven_times_are_refused_though_the_counts_agree(v21: Path) -> None:
    times = pa.array([0.0, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7], pa.float32())
    change_rows(v2_data(v21, 0), lambda table: with_column(table, "timestamp", times))
    ds = reelseek.open_dataset(v21)
    assert numbers(ds[1][TOP]) == 1
    with pytest.raises(TimestampToleranceError, match=r"row 2 .* 0.100000 s away"):
        ds[2]


def test_both_cameras_take_the_same_row(v30: Path) -> None:
    shift(v3_data(v30, 0), 0.1)
    sample = reelseek.open_dataset(v30)[13]
    assert (numbers(sample[TOP]), numbers(sample[WRIST])) == (13, shown(WRIST, 13))
