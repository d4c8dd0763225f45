"""A dataset for a report: opened as far as it goes, and looked at in samples.

``open_dataset`` refuses a dataset that lacks what samples need. A report is wanted most of all for
such a dataset, so it goes by the parts: ``info.json``, the episodes, and each file when it is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from reelseek.care.report._records import Section
from reelseek.datasets._info import read_info
from reelseek.datasets._layout_v2 import LayoutV2
from reelseek.datasets._layout_v3 import LayoutV3
from reelseek.datasets._open import cameras_with_files
from reelseek.datasets._records import DatasetInfo, Feature, Layout
from reelseek.errors import DatasetError, DatasetFormatError, ReelseekError
from reelseek.index import DatasetIndex, VideoTables, index_tables
from reelseek.video import Video
from reelseek.video._open import open_with_tables

T = TypeVar("T")

READ_ERRORS = (ReelseekError, OSError)
"""What reading a dataset's files raises where they are at fault."""
MAX_CAMERAS = 24
"""Cameras that are shown; a page with more says which are left out."""


def section(root: Path, make: Callable[[], T]) -> Section[T]:
    """What the function makes, or why it can't."""
    try:
        return Section(make())
    except READ_ERRORS as exc:
        return Section(None, fault_text(root, exc))


def fault_text(root: Path, exc: Exception) -> str:
    """An error's text with paths as seen from the dataset's folder."""
    return str(exc).replace(f"{root}{os.sep}", "")


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset whose description and list of episodes can be read."""

    root: Path
    info: DatasetInfo
    layout: Layout
    cameras: dict[str, bool]
    """Those that have pictures and are shown: True for video, False for images in parquet."""
    hidden_cameras: tuple[str, ...]
    """Those that aren't shown, because there are more than MAX_CAMERAS."""
    index: DatasetIndex

    @property
    def videos(self) -> tuple[str, ...]:
        """The cameras kept as video."""
        return tuple(key for key, is_video in self.cameras.items() if is_video)

    @property
    def number_columns(self) -> tuple[Feature, ...]:
        """The features that hold floating-point numbers, without the clock."""
        return tuple(
            feature
            for feature in self.info.features.values()
            if feature.dtype.startswith("float") and feature.name != "timestamp"
        )

    def some_episodes(self, most: int) -> list[int]:
        """The places of up to so many episodes that hold frames, evenly spread."""
        filled = np.flatnonzero(self.layout.episodes.lengths > 0)
        return spread(filled.tolist(), most)

    def video_path(self, position: int, camera: str) -> str:
        """The video of a camera that holds the episode at this place."""
        return str(self.layout.video_of(position, camera).path)

    def tables(self, path: str) -> VideoTables:
        """What is known of a video: from the dataset's index, else from the file itself."""
        return self.index.lookup(path) or index_tables(path)

    @contextmanager
    def video(self, path: str) -> Iterator[Video]:
        """A video, open."""
        with open_with_tables(path, self.tables(path)) as video:
            yield video

    def frames(self, video: Video, position: int, camera: str, rows: list[int]) -> list[int]:
        """The numbers of the frames of an episode's rows in its video.

        Raises:
            DatasetFormatError: The video is too short for them.
        """
        span = self.layout.video_of(position, camera)
        last = int(self.layout.episodes.lengths[position]) - 1
        rows = [min(row, last) for row in rows]
        if span.is_whole_file:
            found = rows
        else:
            times = [span.from_seconds + row / self.info.fps for row in rows]
            late = max(times) > video.table.end_seconds()
            found = [len(video)] if late else video.indices_nearest(times).tolist()
        if max(found) >= len(video):
            raise DatasetFormatError(
                f"the video has {len(video)} frames, too few for episode "
                f"{int(self.layout.episodes.indices[position])}",
                path=video.path,
            )
        return found


def open_source(root: str | os.PathLike[str]) -> Source:
    """Open a dataset for a report.

    Raises:
        DatasetError: Its description or its list of episodes can't be read.
    """
    folder = Path(os.path.abspath(os.fspath(root)))
    info = read_info(folder)
    try:
        layout: Layout
        layout = LayoutV3(folder, info) if info.version == "v3.0" else LayoutV2(folder, info)
        cameras = cameras_with_files(info, layout, np.arange(len(layout.episodes)))
    except DatasetError as exc:
        exc.path = exc.path or str(folder)
        raise
    shown = dict(list(cameras.items())[:MAX_CAMERAS])
    return Source(
        root=folder,
        info=info,
        layout=layout,
        cameras=shown,
        hidden_cameras=tuple(cameras)[MAX_CAMERAS:],
        index=DatasetIndex(str(folder)),
    )


def spread(values: Sequence[T], most: int) -> list[T]:
    """Up to so many of the values, evenly spread, with the first and the last."""
    places = np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int)
    return [values[place] for place in dict.fromkeys(places.tolist())]
