"""Reads videos as GR00T's dataset does: with functions that it imported by name."""

from __future__ import annotations

from typing import Any

from gr00t.utils.video import get_frames_by_timestamps


class LeRobotSingleDataset:
    """Two frames of one video for each sample."""

    def __init__(self, video_path: str, step_seconds: float, video_backend: str) -> None:
        self.video_path = video_path
        self.step_seconds = step_seconds
        self.video_backend = video_backend

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        times = [index * self.step_seconds, (index + 16) * self.step_seconds]
        return get_frames_by_timestamps(self.video_path, times, self.video_backend)
