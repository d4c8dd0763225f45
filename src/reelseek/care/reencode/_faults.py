"""Faults of a disk or a folder, told from those of videos and encoders."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reelseek.errors import OutputError, ReelseekError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""The disk takes no more of it, however often it is tried."""
PASSING = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOMEM, errno.EMFILE,
                     errno.ENFILE})  # fmt: skip
"""Those that another attempt may not meet: a network's file system, another task's memory."""
PLACE = FULL | PASSING | {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR,
                          errno.ELOOP, errno.ENAMETOOLONG, errno.EEXIST,
                          errno.ENOTEMPTY}  # fmt: skip


def raise_if_of_disk(exc: Exception, path: str) -> None:
    """Raise what isn't the fault of a video or an encoder as what it is.

    Args:
        exc: What FFmpeg raised.
        path: The file that was written or read.

    Raises:
        OutputError: The disk is full, or takes no file so large.
        OSError: What may pass, so that a job tries it again.
    """
    number = exc.errno if isinstance(exc, OSError) else None
    if number in FULL:
        raise _no_room(path, str(exc)) from exc
    if number in PASSING:
        raise OSError(number, str(exc)) from exc


@contextmanager
def told_of_place(path: Path) -> Iterator[None]:
    """OutputError, which says where, in place of OSErrors about files and folders."""
    try:
        yield
    except ReelseekError:
        raise
    except OSError as exc:
        if exc.errno in FULL:
            raise _no_room(exc.filename or path, exc.strerror or "") from exc
        if exc.errno not in PLACE:
            raise
        raise OutputError(
            "it can't be read or written",
            remedy="Check its permissions and those of the folders above it, or name another "
            "folder",
            path=exc.filename or path,
            detail=exc.strerror or "",
        ) from exc


def _no_room(path: str | Path, detail: str) -> OutputError:
    return OutputError(
        "the disk takes no more",
        remedy="Free some space or raise the quota, and run the same command again: what is done "
        "is kept",
        path=path,
        detail=detail,
    )
