"""Videos by path, for functions that are given a path in each call."""

from __future__ import annotations

import os
from pathlib import Path

from reelseek.datasets._video_cache import VideoCache, max_open_videos
from reelseek.index import DatasetIndex
from reelseek.video import Video
from reelseek.video._open import open_with_tables

Stamp = tuple[int, int, int]
"""A file's inode, size and time of change."""
MOST_FOLDERS_UP = 8
"""How far above a video its dataset's folder is looked for; LeRobot's layouts need four."""
INFO = "meta/info.json"
"""What makes a folder a dataset."""


class VideoFiles:
    """Open videos by path, up to a bound; a file that was changed since is opened anew.

    The index of the dataset that a video belongs to is used where there is one.

    Threads: safe. Fork: a child opens its own decoders. Pickling: by its options.
    """

    def __init__(self, backend: str = "auto", max_open: int | None = None) -> None:
        self.backend = backend
        self.max_open = max_open
        self._cache = VideoCache(self._open, max_open_videos(max_open))
        self._stamps: dict[str, Stamp] = {}
        self._roots: dict[str, str | None] = {}
        self._indices: dict[str, DatasetIndex] = {}

    def get(self, path: str | os.PathLike[str]) -> Video:
        """The video at a path.

        Raises:
            VideoError: It isn't there, or can't be read; see ``open_video``.
            BackendError: The backend isn't there.
        """
        name = os.path.abspath(os.fspath(path))
        stamp = _stamp(name)
        if self._stamps.get(name, stamp) != stamp:
            self.close()
        video = self._cache.get(name)
        if len(self._stamps) > 4 * max_open_videos(self.max_open):
            self._stamps.clear()
        if stamp is not None:
            self._stamps[name] = stamp
        return video

    def close(self) -> None:
        """Close all of them; the next ``get`` opens them again."""
        self._cache.close()
        self._stamps.clear()
        self._roots.clear()
        self._indices.clear()

    def __reduce__(self) -> tuple[type[VideoFiles], tuple[str, int | None]]:
        return VideoFiles, (self.backend, self.max_open)

    def _open(self, path: str) -> Video:
        index = self._index_above(str(Path(path).parent))
        tables = None if index is None else index.lookup(path)
        return open_with_tables(path, tables, backend=self.backend)

    def _index_above(self, folder: str) -> DatasetIndex | None:
        if folder not in self._roots:
            self._roots[folder] = dataset_folder(folder)
        root = self._roots[folder]
        return None if root is None else self._indices.setdefault(root, DatasetIndex(root))


def dataset_folder(folder: str) -> str | None:
    """The dataset that a folder is part of; None where it is part of none."""
    for above in [Path(folder), *Path(folder).parents][:MOST_FOLDERS_UP]:
        if (above / INFO).is_file():
            return str(above)
    return None


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None  # opening it says why
    return status.st_ino, status.st_size, status.st_mtime_ns
