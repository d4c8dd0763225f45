"""The videos of a dataset: which files they are, and the episodes in each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reelseek.datasets import Dataset
from reelseek.errors import DatasetFormatError, DatasetNotFoundError, OutputError

SUFFIXES = (".mp4", ".m4v", ".mov")
"""Names that an MP4 file may have."""


@dataclass(frozen=True, slots=True)
class DatasetVideo:
    """One video of a dataset."""

    key: str
    """Its path, relative to the dataset's folder."""
    camera: str
    """The feature whose pictures it holds."""
    num_bytes: int
    """Its size."""
    num_rows: int
    """Rows of the episodes whose pictures it holds."""
    episodes: tuple[int, ...]
    """Where it may hold several episodes (v3.0): their numbers."""
    spans: tuple[tuple[float, int], ...]
    """Of each of these: when it begins, in seconds, and its length in frames."""


def videos_of(dataset: Dataset, cameras: Sequence[str] | None = None) -> list[DatasetVideo]:
    """All videos of a dataset's cameras, sorted by path.

    Args:
        dataset: An open dataset.
        cameras: The cameras' own names; None takes all that have files.

    Raises:
        DatasetNotFoundError: A video of an episode isn't there.
        DatasetFormatError: Two cameras share a video.
        OutputError: A video's name is none of an MP4 file.
    """
    videos: list[DatasetVideo] = []
    for camera in dataset.every_key.cameras:
        if camera.is_video and (cameras is None or camera.camera in cameras):
            videos += _videos_of_camera(dataset, camera.camera)
    keys = [video.key for video in videos]
    if len(set(keys)) != len(keys):
        raise DatasetFormatError(
            "two cameras have one video",
            remedy="Correct video_path in meta/info.json: it must name {video_key}",
            path=dataset.root,
        )
    return sorted(videos, key=lambda video: video.key)


def _videos_of_camera(dataset: Dataset, camera: str) -> list[DatasetVideo]:
    """One camera's videos, each with its episodes."""
    episodes_of: dict[Path, list[tuple[float, int, int]]] = {}
    is_shared = False
    for position, episode in enumerate(dataset.episodes):
        span = dataset.layout.video_of(position, camera)
        is_shared = not span.is_whole_file
        there = episodes_of.setdefault(span.path, [])
        there.append((span.from_seconds, episode.index, episode.length))
    return [
        _video(dataset.root, camera, path, sorted(there), is_shared)
        for path, there in episodes_of.items()
    ]


def _video(
    root: Path, camera: str, path: Path, there: list[tuple[float, int, int]], is_shared: bool
) -> DatasetVideo:
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(
            f"videos are written as MP4, and the dataset names them {path.suffix or path.name}",
            remedy="Convert the dataset to LeRobot's .mp4 files first",
            path=path,
        )
    try:
        num_bytes = path.stat().st_size
    except OSError as exc:
        raise DatasetNotFoundError(
            f"a video of episode {there[0][1]} is missing",
            remedy="Copy or download the dataset's videos folder again; "
            "`reelseek verify` lists all that are missing",
            path=path,
        ) from exc
    return DatasetVideo(
        key=os.path.relpath(path, root),
        camera=camera,
        num_bytes=num_bytes,
        num_rows=sum(length for _start, _episode, length in there),
        episodes=tuple(episode for _start, episode, _length in there) if is_shared else (),
        spans=tuple((start, length) for start, _, length in there) if is_shared else (),
    )
