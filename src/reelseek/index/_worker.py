"""Indexing one file, whatever is wrong with it."""

from __future__ import annotations

import os

from reelseek.errors import ReelseekError
from reelseek.index._build import index_tables
from reelseek.index._video_record import VideoRecord, write_record

INDEX_FILE = f"{__name__}:index_file"
"""``index_file``, for a worker process."""


def index_file(folder: str, relative: bytes) -> VideoRecord | str:
    """A file's record, or what is wrong with it."""
    path = os.path.join(folder, os.fsdecode(relative))
    try:
        before = os.stat(path)
        tables = index_tables(path)
        after = os.stat(path)
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            return f"{path}: it was changed while it was being indexed. Try again later"
        return write_record(relative, after.st_size, after.st_mtime_ns, tables)
    except ReelseekError as exc:
        return str(exc)
    except Exception as exc:  # noqa: BLE001 - one file's fault, whatever it is, stops no other
        return f"{path}: it can't be indexed ({type(exc).__name__}: {exc}). Please report it"
