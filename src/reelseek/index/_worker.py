"""Indexing files, whatever is wrong with one of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from reelseek.errors import ReelseekError
from reelseek.index._build import index_tables
from reelseek.index._mp4_tables import SampleTables, read_many_sample_tables
from reelseek.index._stamp import Stamp, stamp_of
from reelseek.index._video_record import VideoRecord, write_record

INDEX_FILES = f"{__name__}:index_files"
"""``index_files``, for a worker process."""


def index_files(folder: str, relatives: Sequence[bytes]) -> list[VideoRecord | str]:
    """Each file's record, or what is wrong with it. Takes less time than one after the other."""
    paths = [os.path.join(folder, os.fsdecode(relative)) for relative in relatives]
    before = [stamp_of(path) for path in paths]
    known = _known(paths)
    return [
        _record(path, relative, stamp, of_file)
        for path, relative, stamp, of_file in zip(paths, relatives, before, known, strict=True)
    ]


def _known(paths: Sequence[str]) -> Sequence[SampleTables | None]:
    try:
        return read_many_sample_tables(paths)
    except Exception:  # noqa: BLE001 - looked at alone, the file whose fault it is says so
        return [None] * len(paths)


def index_file(folder: str, relative: bytes) -> VideoRecord | str:
    """A file's record, or what is wrong with it."""
    path = os.path.join(folder, os.fsdecode(relative))
    return _record(path, relative, stamp_of(path), None)


def _record(
    path: str, relative: bytes, before: Stamp | None, known: SampleTables | None
) -> VideoRecord | str:
    try:
        tables = index_tables(path, known)
        after = stamp_of(path)
        if before is None or before != after:
            return f"{path}: it was changed while it was being indexed. Try again later"
        return write_record(relative, *before, tables)
    except ReelseekError as exc:
        return str(exc)
    except Exception as exc:  # noqa: BLE001 - one file's fault, whatever it is, stops no other
        return f"{path}: it can't be indexed ({type(exc).__name__}: {exc}). Please report it"
