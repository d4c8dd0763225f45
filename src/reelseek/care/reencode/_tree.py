"""The other files of a dataset: found, and copied as they are."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from reelseek.errors import DatasetFormatError, UnsafePathError

LEFT_OUT = (".git", ".cache")
"""Folders of tools that brought the dataset here; they aren't part of it."""
INDEX_FOLDER = os.path.join("meta", "reelseek")
"""What reelseek knows of the videos as they were."""


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A file that is no video of the dataset."""

    key: str
    """Its path, relative to the dataset's folder."""
    num_bytes: int
    """Its size."""
    mtime_ns: int
    """When it was changed."""


def other_files(root: Path, videos: Collection[str], *, follow_links: bool) -> list[OtherFile]:
    """The files to copy, sorted by path.

    Args:
        root: The dataset's folder.
        videos: Paths, relative to it, that are left out.
        follow_links: True where links may lead out of the root, as those into a hub's cache.

    Raises:
        UnsafePathError: A link leads out of the root.
        DatasetFormatError: A device or pipe, or a link to nothing, stands where a file is meant.
    """
    walk = _Walk(root, os.path.realpath(root), follow_links)
    left_out = frozenset(videos)
    found = [file for file in walk.files("") if file.key not in left_out]
    return sorted(found, key=lambda file: file.key)


def copy_other(file: OtherFile, root: Path, target: Path, work: Path) -> None:
    """Copy a file with its times, unless that was done before.

    Args:
        file: The file.
        root: The dataset's folder.
        target: The new dataset's folder.
        work: A folder on the same file system, for what isn't finished.
    """
    copied = target / file.key
    try:
        status = copied.stat()
    except OSError:
        pass
    else:
        if (status.st_size, status.st_mtime_ns) == (file.num_bytes, file.mtime_ns):
            return
    copied.parent.mkdir(parents=True, exist_ok=True)
    unfinished = work / secrets.token_hex(8)
    shutil.copy2(root / file.key, unfinished)
    unfinished.replace(copied)


def drop_others(target: Path, kept: Collection[str]) -> None:
    """Delete what a former, unfinished run left in the new dataset and is in it no more."""
    known = frozenset(kept)
    for folder, _folders, names in os.walk(target):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, target) not in known:
                Path(path).unlink()


@dataclass(slots=True)
class _Walk:
    root: Path
    real_root: str
    follow_links: bool

    def files(self, below: str, above: tuple[str, ...] = ()) -> Iterator[OtherFile]:
        """All files of a folder and the folders in it.

        Args:
            below: The folder, relative to the root.
            above: The real paths of the folders that led to it: a link to one would go on for ever.
        """
        folder = os.path.join(self.root, below)
        above = (*above, os.path.realpath(folder))
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                key = os.path.join(below, entry.name)
                if entry.name in LEFT_OUT or key == INDEX_FOLDER:
                    continue
                if entry.is_symlink():
                    self._check_link(entry.path)
                status = self._status(entry)
                if stat.S_ISREG(status.st_mode):
                    yield OtherFile(key, status.st_size, status.st_mtime_ns)
                elif stat.S_ISDIR(status.st_mode):
                    if os.path.realpath(entry.path) not in above:
                        yield from self.files(key, above)
                else:
                    raise _no_file(entry.path, "a device or pipe")

    def _check_link(self, path: str) -> None:
        real = os.path.realpath(path)
        if not self.follow_links and os.path.commonpath([real, self.real_root]) != self.real_root:
            raise UnsafePathError(
                f"a link leads out of the dataset, to {real}",
                remedy="Pass --follow-links if what it leads to is the dataset's, as in a "
                "hub's cache",
                path=path,
            )

    def _status(self, entry: os.DirEntry[str]) -> os.stat_result:
        try:
            return entry.stat()
        except OSError as exc:
            raise _no_file(entry.path, "a link to nothing") from exc


def _no_file(path: str, what: str) -> DatasetFormatError:
    return DatasetFormatError(
        f"{what} stands where a file is meant",
        remedy="Delete it, or copy the dataset again from its source",
        path=path,
    )
