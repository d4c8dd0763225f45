"""By what a file is told from what it was before."""

from __future__ import annotations

import os

Stamp = tuple[int, int]
"""A file's size in bytes, and when it was last changed, in ns."""


def stamp_of(path: str | os.PathLike[str]) -> Stamp | None:
    """The stamp of a file; None where there is none that can be looked at."""
    try:
        return stamp_in(os.stat(path))
    except OSError:
        return None


def stamp_in(status: os.stat_result) -> Stamp:
    """The stamp of a file whose status is known."""
    return status.st_size, status.st_mtime_ns
