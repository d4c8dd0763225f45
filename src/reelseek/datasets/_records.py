"""What a dataset is, whatever its version: features, episodes, and where their frames are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Feature:
    """One column or camera, as ``meta/info.json`` describes it."""

    name: str
    """Its key in a sample."""
    dtype: str
    """``video``, ``image``, ``string``, or a number type such as ``float32``."""
    shape: tuple[int, ...]
    """Its shape for one frame; for cameras (height, width, channels)."""
    names: Any = None
    """Names of its dimensions or elements, as the file gives them."""
    info: dict[str, Any] = field(default_factory=dict)
    """What the file says of the camera's video (``video.codec``, ``video.fps``, ...)."""

    @property
    def is_camera(self) -> bool:
        """True for pictures, kept as video or as images."""
        return self.dtype in ("video", "image")


@dataclass(frozen=True, slots=True)
class Episode:
    """One recording."""

    index: int
    """Its number in the dataset."""
    length: int
    """Its number of frames."""
    start: int
    """The dataset's number of its first frame, over all episodes."""
    tasks: tuple[str, ...]
    """What was to be done, in words."""


@dataclass(frozen=True, slots=True)
class RowSpan:
    """Where an episode's rows are."""

    path: Path
    """A parquet file."""
    first: int
    """The episode's first row in the file."""
    length: int
    """The number of rows."""
    is_whole_file: bool
    """True where the file holds this episode and nothing else."""


@dataclass(frozen=True, slots=True)
class VideoSpan:
    """Where an episode's frames from one camera are."""

    path: Path
    """A video file."""
    from_seconds: float
    """When the episode starts on the file's clock, in seconds."""
    to_seconds: float | None
    """When it ends there; None for the end of the file."""
    is_whole_file: bool
    """True where the file holds this episode and nothing else."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where some frames of one camera are."""

    path: str
    """The video file."""
    frames: tuple[int, ...]
    """The number of each frame in the file."""
    seconds: tuple[float, ...]
    """The time of each frame on the file's clock, in seconds."""


class Episodes:
    """All episodes, kept as columns: a dataset may have a hundred thousand."""

    def __init__(
        self,
        indices: NDArray[np.int64],
        lengths: NDArray[np.int64],
        tasks: Sequence[tuple[str, ...]],
    ) -> None:
        self.indices = indices
        """(E,) the number of each episode."""
        self.lengths = lengths
        """(E,) the number of frames of each episode."""
        self.starts: NDArray[np.int64] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        """(E + 1,) the number of each episode's first frame; the last is the number of frames."""
        self._tasks = tasks
        self._position = {int(number): position for position, number in enumerate(indices)}

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, position: int) -> Episode:
        position = range(len(self))[position]
        return Episode(
            index=int(self.indices[position]),
            length=int(self.lengths[position]),
            start=int(self.starts[position]),
            tasks=self._tasks[position],
        )

    def __iter__(self) -> Iterator[Episode]:
        return (self[position] for position in range(len(self)))

    def position_of(self, index: int) -> int | None:
        """The place of the episode of this number; None where there is none."""
        return self._position.get(index)

    def __repr__(self) -> str:
        return f"Episodes({len(self)} episodes, {int(self.starts[-1])} frames)"


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """What ``meta/info.json`` says."""

    version: str
    """``v2.0``, ``v2.1`` or ``v3.0``."""
    fps: float
    """Frames a second."""
    features: dict[str, Feature]
    """Columns and cameras by name."""
    data_path: str
    """Template of the parquet files' paths."""
    video_path: str | None
    """Template of the video files' paths; None for a dataset without videos."""
    chunks_size: int
    """Episodes (v2) or files (v3) per chunk folder."""
    raw: dict[str, Any]
    """The file as it is."""


class Layout(Protocol):
    """How one version of the format lays out its files."""

    episodes: Episodes
    """All episodes of the dataset."""
    tasks: dict[int, str]
    """Task texts by task_index."""

    def rows_of(self, position: int) -> RowSpan:
        """Where the rows of the episode at this place are."""
        ...

    def video_of(self, position: int, camera: str) -> VideoSpan:
        """Where one camera's frames of the episode at this place are."""
        ...
