"""What a dataset is: counts, cameras, tasks, size on disk, and how long its episodes are."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from reelseek.care.report._records import CameraFacts, Lengths, Overview, TaskFacts
from reelseek.care.report._source import Source
from reelseek.datasets._records import Feature

MAX_TASKS = 25
"""Tasks that are listed, the most frequent first."""
MAX_WALK_SECONDS = 10.0
"""A slow disk with a million files is not counted to the end."""
EXTREMES = 5
"""Shortest and longest episodes that are named."""


def overview_of(source: Source) -> Overview:
    """Look a dataset over; no video and no parquet file is opened."""
    episodes, raw = source.layout.episodes, source.info.raw
    num_files, num_bytes, has_more = _files(source.root)
    tasks = _tasks(source)
    modality = (source.root / "meta" / "modality.json").is_file()
    return Overview(
        format=f"LeRobot {source.info.version}" + ", GR00T" * modality,
        robot=str(raw.get("robot_type") or ""),
        num_episodes=len(episodes),
        num_frames=int(episodes.starts[-1]),
        fps=source.info.fps,
        num_files=num_files,
        num_bytes=num_bytes,
        has_more_files=has_more,
        cameras=tuple(_cameras(source)),
        tasks=tuple(tasks[:MAX_TASKS]),
        num_tasks=len(tasks),
    )


def lengths_of(source: Source) -> Lengths:
    """How long the episodes are, as ``meta`` says."""
    episodes = source.layout.episodes
    order = np.argsort(episodes.lengths, kind="stable")
    named = [(int(episodes.indices[place]), int(episodes.lengths[place])) for place in order]
    return Lengths(
        frames=episodes.lengths,
        shortest=tuple(named[:EXTREMES]),
        longest=tuple(named[: -EXTREMES - 1 : -1]),
    )


def _cameras(source: Source) -> Iterator[CameraFacts]:
    for feature in source.info.features.values():
        if feature.is_camera:
            yield _camera(feature, source.cameras.get(feature.name), source)


def _camera(feature: Feature, is_video: bool | None, source: Source) -> CameraFacts:
    kind = {True: "video", False: "images in parquet", None: "no files"}[is_video]
    if feature.name in source.hidden_cameras:
        kind = feature.dtype
    height, width = feature.shape[:2] if len(feature.shape) == 3 else (0, 0)
    codec = feature.info.get("video.codec")
    return CameraFacts(feature.name, kind, width, height, codec if isinstance(codec, str) else "")


def _tasks(source: Source) -> list[TaskFacts]:
    """All tasks, the most frequent first; an episode with two tasks counts for both."""
    episodes = source.layout.episodes
    num_episodes: Counter[str] = Counter()
    num_frames: Counter[str] = Counter()
    for episode in episodes:
        for text in set(episode.tasks):
            num_episodes[text] += 1
            num_frames[text] += episode.length
    known = {text: index for index, text in reversed(source.layout.tasks.items())}
    texts = [*known, *(text for text in num_episodes if text not in known)]
    found = [TaskFacts(known.get(t), t, num_episodes[t], num_frames[t]) for t in texts]
    last = len(source.layout.tasks) + 1
    return sorted(
        found,
        key=lambda task: (-task.num_episodes, last if task.index is None else task.index),
    )


def _files(root: Path) -> tuple[int, int, bool]:
    """Number and bytes of the files in a folder, and whether there are more of them."""
    end = time.monotonic() + MAX_WALK_SECONDS
    count = size = 0
    for folder, _folders, names in os.walk(root):
        for name in names:
            count += 1
            size += _size(os.path.join(folder, name))
            if count % 256 == 0 and time.monotonic() > end:
                return count, size, True
    return count, size, False


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
