"""LeRobot v2.0 and v2.1, and GR00T: one parquet and one video per episode (and camera)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reelseek.datasets._files import fill_template, read_json_lines, whole_number
from reelseek.datasets._records import DatasetInfo, Episodes, RowSpan, VideoSpan
from reelseek.errors import DatasetFormatError


class LayoutV2:
    """Files of a v2.0 or v2.1 dataset."""

    def __init__(self, root: Path, info: DatasetInfo) -> None:
        self._root = root
        self._info = info
        self._source = root / "meta" / "info.json"
        self.tasks = _read_tasks(root / "meta" / "tasks.jsonl")
        self.episodes = _read_episodes(root / "meta" / "episodes.jsonl")

    def rows_of(self, position: int) -> RowSpan:
        """Where the rows of the episode at this place are."""
        path = fill_template(
            self._root, self._info.data_path, self._source, **self._fields(position)
        )
        return RowSpan(path, 0, int(self.episodes.lengths[position]), is_whole_file=True)

    def video_of(self, position: int, camera: str) -> VideoSpan:
        """Where one camera's frames of the episode at this place are."""
        if self._info.video_path is None:
            raise no_video_path(self._source)
        fields = {**self._fields(position), "video_key": camera}
        path = fill_template(self._root, self._info.video_path, self._source, **fields)
        return VideoSpan(path, 0.0, None, is_whole_file=True)

    def _fields(self, position: int) -> dict[str, Any]:
        index = int(self.episodes.indices[position])
        return {"episode_index": index, "episode_chunk": index // self._info.chunks_size}


def _read_tasks(path: Path) -> dict[int, str]:
    return {
        whole_number(line.get("task_index"), "task_index", path): str(line.get("task", ""))
        for line in read_json_lines(path)
    }


def _read_episodes(path: Path) -> Episodes:
    lines = sorted(
        (
            whole_number(line.get("episode_index"), "episode_index", path),
            whole_number(line.get("length"), "length", path),
            _task_texts(line.get("tasks")),
        )
        for line in read_json_lines(path)
    )
    numbers = [line[0] for line in lines]
    if len(set(numbers)) != len(numbers):
        raise listed_twice(next(n for n in numbers if numbers.count(n) > 1), path)
    return Episodes(
        np.array(numbers, np.int64),
        np.array([line[1] for line in lines], np.int64),
        [line[2] for line in lines],
    )


def _task_texts(tasks: Any) -> tuple[str, ...]:
    return tuple(map(str, tasks)) if isinstance(tasks, list) else ()


def no_video_path(source: Path) -> DatasetFormatError:
    """The error for videos that ``info.json`` doesn't place."""
    return DatasetFormatError(
        "there is no video_path, and a feature is a video",
        remedy="Copy the file again from its source, or pass cameras=()",
        path=source,
    )


def listed_twice(episode: int, path: Path) -> DatasetFormatError:
    """The error for an episode number that stands for two."""
    return DatasetFormatError(
        f"episode {episode} is listed twice",
        remedy="Copy the dataset's meta folder again, or delete the wrong entry",
        path=path,
    )
