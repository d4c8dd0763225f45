"""A job's folder while a driver holds it, and deleting it."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from reelseek.care.jobs._arrays import NOTE, end_former_arrays
from reelseek.care.jobs._job import Job
from reelseek.care.jobs._journal import RESULTS, RUNS, journal_faults
from reelseek.errors import ReelseekError

if TYPE_CHECKING:
    from filelock import FileLock

LOCK = "lock"
GONE = ".gone-"
"""In the name of a folder that is being deleted."""


class HeldFolder:
    """A job's folder, locked against another driver."""

    def __init__(self, job: Job) -> None:
        self.path = job.folder / job.identity
        """The folder."""
        self._job = job
        self._is_forgotten = False

    def forget(self) -> None:
        """Take the folder away, so that whoever comes next begins anew.

        Where an array of a former run can't be cancelled now, the note of it stays.
        """
        gone = self.path.with_name(f"{self.path.name}{GONE}{secrets.token_hex(4)}")
        end_former_arrays(self._job.name, self.path)
        if any((self.path / RUNS).glob(f"*/{NOTE}")):
            gone.mkdir()
            (self.path / RESULTS).rename(gone / RESULTS)
        else:
            self.path.rename(gone)
        self._is_forgotten = True

    def delete_forgotten(self) -> None:
        """Delete what was taken away, once the lock isn't held: NFS keeps what is open."""
        if not self._is_forgotten:
            return
        for gone in self.path.parent.glob(f"{self.path.name}{GONE}*"):
            shutil.rmtree(gone, ignore_errors=True)
        with suppress(OSError):  # something else is there
            self._job.folder.rmdir()
            self._job.folder.parent.rmdir()


@contextmanager
def held(job: Job) -> Iterator[HeldFolder]:
    """The job's folder, made, and locked against another driver.

    Raises:
        ReelseekError: Another one holds it, or it can't be written.
    """
    folder = HeldFolder(job)
    with journal_faults(folder.path):
        lock = _locked(folder.path)
    try:
        yield folder
    finally:
        lock.release()
        folder.delete_forgotten()


def _locked(folder: Path) -> FileLock:
    """The lock, in the folder that is there now: another driver may have taken one away."""
    from filelock import FileLock, Timeout

    while True:
        (folder / RESULTS).mkdir(parents=True, exist_ok=True)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            lock = FileLock(folder / LOCK)
            lock.acquire(blocking=False)
            if _is_at(opened, folder):
                return lock
            lock.release()
        except Timeout as exc:
            raise ReelseekError(
                "another run of this job is at work",
                remedy="Wait for it, or stop it; what it did is kept",
                path=folder,
            ) from exc
        except FileNotFoundError:
            if _is_at(opened, folder):
                raise
        finally:
            os.close(opened)


def _is_at(opened: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), folder.stat())
    except FileNotFoundError:
        return False
