"""The keys of a sample, and what each is made from: LeRobot's own, or GR00T's names."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reelseek.datasets._modality import Modality
from reelseek.errors import DatasetFormatError, FeatureNotFoundError

Naming = Literal["lerobot", "gr00t"]


@dataclass(frozen=True, slots=True)
class ValueKey:
    """A key whose values come from a parquet column."""

    key: str
    """The key in a sample."""
    column: str
    """The column in the parquet file."""
    part: tuple[int, int] | None = None
    """Elements (first, after the last) of the column's vectors; None for all."""
    is_task: bool = False
    """True where the column holds a task's number and the sample its text."""


@dataclass(frozen=True, slots=True)
class CameraKey:
    """A key whose pictures come from a video or an image column."""

    key: str
    """The key in a sample."""
    camera: str
    """The camera's own name in the dataset."""
    is_video: bool
    """True for a video file, False for an image column."""


@dataclass(frozen=True, slots=True)
class Keys:
    """All keys of a sample."""

    values: tuple[ValueKey, ...]
    cameras: tuple[CameraKey, ...]

    @property
    def names(self) -> list[str]:
        """Every key, cameras first."""
        return [camera.key for camera in self.cameras] + [value.key for value in self.values]


def lerobot_keys(columns: Sequence[str], cameras: dict[str, bool]) -> Keys:
    """LeRobot's keys: the columns by their names, and the task's text.

    Args:
        columns: Columns of the parquet files.
        cameras: Cameras that have pictures, True where they are video.
    """
    values = [ValueKey(name, name) for name in columns if name not in cameras]
    if "task_index" in columns:
        values.append(ValueKey("task", "task_index", is_task=True))
    return Keys(tuple(values), tuple(CameraKey(n, n, video) for n, video in cameras.items()))


def gr00t_keys(columns: Sequence[str], cameras: dict[str, bool], modality: Modality) -> Keys:
    """GR00T's keys: the modality file's names, and the columns that say which sample it is.

    Raises:
        DatasetFormatError: The file names a column that isn't there.
    """
    named = {
        **{key: part.column for key, part in modality.parts.items()},
        **modality.annotation,
    }
    for key, column in named.items():
        if column not in columns:
            raise DatasetFormatError(
                f"modality.json takes {key} from the column {column!r}, which doesn't exist",
                remedy=f"The columns are: {', '.join(columns)}",
            )
    values = [
        *(ValueKey(key, p.column, (p.start, p.end)) for key, p in modality.parts.items()),
        *(ValueKey(key, c, is_task=True) for key, c in modality.annotation.items()),
        *(ValueKey(n, n) for n in ("timestamp", "frame_index", "episode_index", "index",
                                   "task_index") if n in columns),
    ]  # fmt: skip
    videos = [
        CameraKey(key, camera, cameras[camera])
        for key, camera in modality.video.items()
        if camera in cameras
    ]
    return Keys(tuple(values), tuple(videos))


def selected(keys: Keys, cameras: Sequence[str] | None) -> Keys:
    """Only these cameras, given by key, by the camera's own name, or by a pattern of either.

    Args:
        keys: All keys.
        cameras: Names and patterns; None takes all cameras.

    Raises:
        FeatureNotFoundError: A name or pattern fits no camera.
    """
    if cameras is None:
        return keys
    if isinstance(cameras, str):
        cameras = [cameras]
    chosen: list[CameraKey] = []
    for pattern in cameras:
        found = [
            camera
            for camera in keys.cameras
            if any(
                name == pattern or fnmatch.fnmatchcase(name, pattern)
                for name in (camera.key, camera.camera)
            )
        ]
        if not found:
            names = ", ".join(camera.key for camera in keys.cameras) or "none"
            raise FeatureNotFoundError(f"no camera {pattern!r}", remedy=f"The cameras are: {names}")
        chosen.extend(camera for camera in found if camera not in chosen)
    return Keys(keys.values, tuple(chosen))
