"""Where sidecars are: beside the data, or in the user's cache where the data is read-only."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from reelseek.errors import IndexFileError

SUFFIX = ".reelseek"
"""Of a single video's index, after the video's own name."""
IN_DATASET = ("meta", "reelseek", "index.bin")
"""Where a dataset's index is in its folder."""
IN_CACHE = "index"
CACHE = "REELSEEK_CACHE"
"""Environment variable that names the cache folder."""


def index_beside(owner: str) -> str:
    """Where the index of a dataset's folder, or of a single video, is beside the data."""
    return os.path.join(owner, *IN_DATASET) if Path(owner).is_dir() else owner + SUFFIX


def index_paths(owner: str) -> Iterator[str]:
    """Where the index of a dataset or of a single video may be: beside it, then in the cache."""
    yield index_beside(owner)
    try:
        has_cache = (cache_folder() / IN_CACHE).is_dir()
    except IndexFileError:
        return
    if has_cache:  # a real path takes a look at every folder
        yield str(index_in_cache(owner))


def writable_path(owner: str) -> Path:
    """Where the index of a dataset or of a single video can be written, with its folder made.

    A folder that nobody has the right to write into isn't written into by root either.
    """
    beside = Path(index_beside(owner))
    root = owner if Path(owner).is_dir() else str(Path(owner).parent)
    if _is_writable(root) and _is_writable(_nearest(beside.parent)):
        try:
            beside.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            pass  # a file system that says it can be written and can't
        else:
            return beside
    cached = index_in_cache(owner)
    cached.parent.mkdir(parents=True, exist_ok=True)
    return cached


def cache_folder() -> Path:
    """REELSEEK_CACHE, else XDG_CACHE_HOME/reelseek, else ~/.cache/reelseek.

    Raises:
        IndexFileError: The user has no home, as in a container that doesn't know him.
    """
    if named := os.environ.get(CACHE):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if base.startswith("~"):
        raise IndexFileError(
            "this user has no home folder, and so no cache",
            remedy=f"Set {CACHE} to a folder that can be written to",
        )
    return Path(base) / "reelseek"


def index_in_cache(owner: str) -> Path:
    """Keyed by the real path, so that links to one dataset share its index."""
    real = os.path.realpath(owner)
    key = hashlib.blake2b(os.fsencode(real), digest_size=16).hexdigest()
    return cache_folder() / IN_CACHE / f"{key}.bin"


def _nearest(folder: Path) -> str:
    """The folder, or the nearest one above it that exists."""
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return str(folder)


def _is_writable(folder: str) -> bool:
    try:
        has_a_write_bit = os.stat(folder).st_mode & 0o222 != 0
    except OSError:
        return False
    return has_a_write_bit and os.access(folder, os.W_OK)
