"""Ready tables: those that a sidecar has, found without looking into the video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reelseek.errors import IndexFileError
from reelseek.index._location import index_paths
from reelseek.index._sidecar import Sidecar
from reelseek.index._video_tables import VideoTables


class DatasetIndex:
    """The index of a dataset, opened at the first look-up; a dataset without one has no tables.

    Threads: safe. Fork: opened or not, it works in the children. Pickling: by the folder.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.note = ""
        """What is wrong with an index that is there and isn't used; empty where nothing is."""
        self._sidecar: Sidecar | None = None
        self._is_opened = False

    @property
    def sidecar(self) -> Sidecar | None:
        """The index file; None where there is none that can be used."""
        if not self._is_opened:
            self._sidecar, self.note = _first_usable(self.root, self.root)
            self._is_opened = True
        return self._sidecar

    def lookup(self, path: str) -> VideoTables | None:
        """The tables of a video of the dataset; None where they have to be made anew."""
        sidecar = self.sidecar
        return None if sidecar is None else sidecar.lookup(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return DatasetIndex, (self.root,)


def ready_tables(path: str) -> VideoTables | None:
    """The tables that a single video's own index holds; None without one that is fresh."""
    sidecar, _note = _first_usable(path, str(Path(path).parent))
    return None if sidecar is None else sidecar.lookup(path)


def _first_usable(owner: str, folder: str) -> tuple[Sidecar | None, str]:
    """The first index that can be opened, and what is wrong with those before it."""
    note = ""
    for path in index_paths(owner):
        try:
            return Sidecar(path, folder), note
        except IndexFileError as exc:
            if Path(path).exists():
                note = str(exc)
    return None, note
