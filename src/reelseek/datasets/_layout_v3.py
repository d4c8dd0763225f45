"""LeRobot v3.0: several episodes in one parquet and in one video per camera."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._files import fill_template
from reelseek.datasets._layout_v2 import listed_twice, no_video_path
from reelseek.datasets._records import DatasetInfo, Episodes, RowSpan, VideoSpan
from reelseek.errors import DatasetFormatError, DatasetNotFoundError, FeatureNotFoundError

COUNTS = (
    "episode_index",
    "length",
    "data/chunk_index",
    "data/file_index",
    "dataset_from_index",
    "dataset_to_index",
)
VIDEO_COUNTS = ("chunk_index", "file_index")
TASK_TEXT = "__index_level_0__"
"""What pandas calls the index of a frame, which the task's text is, where it has no name."""

Columns = dict[str, NDArray[Any]]


class LayoutV3:
    """Files of a v3.0 dataset."""

    def __init__(self, root: Path, info: DatasetInfo) -> None:
        self._root = root
        self._info = info
        self._source = root / "meta" / "info.json"
        self.tasks = _read_tasks(root / "meta" / "tasks.parquet")
        cameras = [name for name, f in info.features.items() if f.dtype == "video"]
        self._columns, tasks = _read_episodes(root / "meta" / "episodes", cameras)
        self.episodes = Episodes(self._columns["episode_index"], self._columns["length"], tasks)
        self._first_row = _first_rows(self._columns)
        self._videos: dict[tuple[str, int, int], Path] = {}

    def rows_of(self, position: int) -> RowSpan:
        """Where the rows of the episode at this place are."""
        chunk, file = (
            int(self._columns[f"data/{name}"][position]) for name in ("chunk_index", "file_index")
        )
        path = fill_template(
            self._root, self._info.data_path, self._source, chunk_index=chunk, file_index=file
        )
        length = int(self.episodes.lengths[position])
        return RowSpan(path, int(self._first_row[position]), length, is_whole_file=False)

    def video_of(self, position: int, camera: str) -> VideoSpan:
        """Where one camera's frames of the episode at this place are."""
        if self._info.video_path is None:
            raise no_video_path(self._source)
        if f"videos/{camera}/file_index" not in self._columns:
            raise FeatureNotFoundError(
                f"meta/episodes has no files for the camera {camera!r}",
                remedy="Leave it out with `cameras=`, or copy the meta folder again",
                path=self._root,
            )
        chunk, file = (
            int(self._columns[f"videos/{camera}/{name}"][position]) for name in VIDEO_COUNTS
        )
        path = self._videos.get((camera, chunk, file))
        if path is None:
            path = fill_template(
                self._root, self._info.video_path, self._source, video_key=camera,
                chunk_index=chunk, file_index=file,
            )  # fmt: skip
            self._videos[camera, chunk, file] = path
        start = float(self._columns[f"videos/{camera}/from_timestamp"][position])
        ends = self._columns.get(f"videos/{camera}/to_timestamp")
        end = None if ends is None else float(ends[position])
        return VideoSpan(path, start, end, is_whole_file=False)


def _read_tasks(path: Path) -> dict[int, str]:
    from reelseek.datasets._parquet import counts, read_columns

    columns = read_columns(path, None)
    texts = columns.get(TASK_TEXT, columns.get("task"))
    if texts is None:
        raise DatasetFormatError(
            f"no tasks in its columns {sorted(columns)}",
            remedy="Copy the file again from its source",
            path=path,
        )
    numbers = counts(columns, "task_index", path)
    return {int(number): str(text) for number, text in zip(numbers, texts, strict=True)}


def _read_episodes(folder: Path, cameras: list[str]) -> tuple[Columns, list[tuple[str, ...]]]:
    """The columns that say where each episode is, without the statistics beside them."""
    paths = sorted(folder.glob("*/*.parquet"))
    if not paths:
        raise DatasetNotFoundError(
            "no episodes: there is no parquet file in it",
            remedy="Copy or download the dataset's meta folder again",
            path=folder,
        )
    parts = [_read_places(path, cameras) for path in paths]
    names = set(parts[0][0]).intersection(*(columns for columns, _tasks in parts))
    columns = {name: np.concatenate([part[name] for part, _tasks in parts]) for name in names}
    tasks = [texts for _columns, part in parts for texts in part]
    order = np.argsort(columns["episode_index"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    _check_spans(columns, folder)
    return columns, [tasks[place] for place in order]


def _read_places(path: Path, cameras: list[str]) -> tuple[Columns, list[tuple[str, ...]]]:
    """One file's columns, checked, and each episode's tasks."""
    from reelseek.datasets._parquet import counts, read_columns, times

    columns = read_columns(path, [*COUNTS, "tasks", *map("/".join, _video_columns(cameras))])
    tasks = columns.pop("tasks", None)
    checked: Columns = {name: counts(columns, name, path) for name in COUNTS}
    placed = {column.rpartition("/")[0] for column in columns}  # cameras of which it says anything
    for camera, name in _video_columns(cameras):
        column = f"{camera}/{name}"
        if camera not in placed or (name == "to_timestamp" and column not in columns):
            continue
        if name in VIDEO_COUNTS:
            checked[column] = counts(columns, column, path)
        else:
            checked[column] = times(columns, column, path).astype(np.float64)
    count = len(checked["episode_index"])
    return checked, [()] * count if tasks is None else [_texts(cell) for cell in tasks]


def _video_columns(cameras: list[str]) -> list[tuple[str, str]]:
    """Prefix and name of the columns that place cameras' frames."""
    names = (*VIDEO_COUNTS, "from_timestamp", "to_timestamp")
    return [(f"videos/{camera}", name) for camera in cameras for name in names]


def _texts(cell: Any) -> tuple[str, ...]:
    return tuple(map(str, cell)) if isinstance(cell, np.ndarray) else (str(cell),)


def _check_spans(columns: Columns, folder: Path) -> None:
    length = columns["dataset_to_index"] - columns["dataset_from_index"]
    wrong = np.flatnonzero(length != columns["length"])
    if len(wrong):
        episode, at = int(columns["episode_index"][wrong[0]]), int(wrong[0])
        raise DatasetFormatError(
            f"episode {episode} has length {columns['length'][at]}, and its rows "
            f"{columns['dataset_from_index'][at]} to {columns['dataset_to_index'][at]} are "
            f"{length[at]}",
            remedy="Copy the dataset's meta folder again",
            path=folder,
        )
    again = np.flatnonzero(np.diff(columns["episode_index"]) == 0)
    if len(again):
        raise listed_twice(int(columns["episode_index"][again[0]]), folder)


def _first_rows(columns: Columns) -> NDArray[np.int64]:
    """(E,) each episode's first row in its parquet file."""
    file_of = np.stack([columns["data/chunk_index"], columns["data/file_index"]], axis=1)
    _files, group = np.unique(file_of, axis=0, return_inverse=True)
    group = group.reshape(-1)
    first = np.full(group.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, group, columns["dataset_from_index"])
    rows: NDArray[np.int64] = columns["dataset_from_index"] - first[group]
    return rows
