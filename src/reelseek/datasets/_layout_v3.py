"""LeRobot v3.0: several episodes in one parquet and in one video per camera."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._files import fill_template
from reelseek.datasets._records import DatasetInfo, Episodes, RowSpan, VideoSpan
from reelseek.errors import DatasetFormatError, DatasetNotFoundError, FeatureNotFoundError

ROW_COLUMNS = (
    "episode_index",
    "length",
    "data/chunk_index",
    "data/file_index",
    "dataset_from_index",
    "dataset_to_index",
)


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
            raise DatasetFormatError("there is no video_path", path=self._source)
        if f"videos/{camera}/file_index" not in self._columns:
            raise FeatureNotFoundError(
                f"meta/episodes has no files for the camera {camera!r}", path=self._root
            )
        path = fill_template(
            self._root,
            self._info.video_path,
            self._source,
            video_key=camera,
            chunk_index=int(self._columns[f"videos/{camera}/chunk_index"][position]),
            file_index=int(self._columns[f"videos/{camera}/file_index"][position]),
        )
        start = float(self._columns[f"videos/{camera}/from_timestamp"][position])
        if not math.isfinite(start):
            raise DatasetFormatError(
                f"from_timestamp of {camera} is {start}", path=self._root / "meta" / "episodes"
            )
        return VideoSpan(path, start)


def _read_tasks(path: Path) -> dict[int, str]:
    from reelseek.datasets._parquet import read_columns

    # A pandas frame whose index is the task's text.
    columns = read_columns(path, None)
    texts = columns.get("__index_level_0__", columns.get("task"))
    if texts is None or "task_index" not in columns:
        raise DatasetFormatError(f"no tasks in its columns {sorted(columns)}", path=path)
    return {int(i): str(text) for i, text in zip(columns["task_index"], texts, strict=True)}


def _read_episodes(
    folder: Path, cameras: list[str]
) -> tuple[dict[str, NDArray[Any]], list[tuple[str, ...]]]:
    """The columns that say where each episode is, without the statistics beside them."""
    from reelseek.datasets._parquet import read_columns

    paths = sorted(folder.glob("*/*.parquet"))
    if not paths:
        raise DatasetNotFoundError("no episodes: there is no parquet file in it", path=folder)
    video_columns = [
        f"videos/{camera}/{name}"
        for camera in cameras
        for name in ("chunk_index", "file_index", "from_timestamp")
    ]
    parts = [read_columns(path, [*ROW_COLUMNS, "tasks", *video_columns]) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        missing = [name for name in ROW_COLUMNS if name not in part]
        if missing:
            raise DatasetFormatError(f"there is no column {missing[0]}", path=path)
    names = set(parts[0]).intersection(*parts)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    order = np.argsort(columns["episode_index"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    _check_spans(columns, folder)
    tasks = columns.pop("tasks", None)
    if tasks is None:
        return columns, [()] * len(order)
    return columns, [() if texts is None else tuple(map(str, texts)) for texts in tasks]


def _check_spans(columns: dict[str, NDArray[Any]], folder: Path) -> None:
    length = columns["dataset_to_index"] - columns["dataset_from_index"]
    wrong = np.flatnonzero((length != columns["length"]) | (length < 0))
    if len(wrong):
        episode, at = int(columns["episode_index"][wrong[0]]), int(wrong[0])
        raise DatasetFormatError(
            f"episode {episode} has length {columns['length'][at]} and {length[at]} rows",
            path=folder,
        )
    if len(np.unique(columns["episode_index"])) != len(length):
        raise DatasetFormatError("an episode is listed twice", path=folder)


def _first_rows(columns: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
    """(E,) each episode's first row in its parquet file."""
    file_of = np.stack([columns["data/chunk_index"], columns["data/file_index"]], axis=1)
    _files, group = np.unique(file_of, axis=0, return_inverse=True)
    group = group.reshape(-1)
    first = np.full(group.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, group, columns["dataset_from_index"])
    rows: NDArray[np.int64] = columns["dataset_from_index"] - first[group]
    return rows
