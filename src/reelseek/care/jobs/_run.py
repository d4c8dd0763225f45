"""Running a job: what its journal has, then the rest."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from reelseek.care.jobs._executor import Executor
from reelseek.care.jobs._job import Job, Outcome, Summary
from reelseek.care.jobs._journal import RESULTS, Entry, JournalReader
from reelseek.care.jobs._work import Work
from reelseek.errors import ReelseekError

LOCK = "lock"


def run_job(
    job: Job, executor: Executor, *, tell: Callable[[int, int], None] | None = None
) -> JobRun:
    """Do what is left of a job.

    Interrupted or killed at any point, the next call goes on from the journal. Results stay in it
    until ``discard_job``, and are taken from it while the items' stamps are the same; failures
    aren't: they are tried again.

    Args:
        job: The job.
        executor: Where to work.
        tell: Is told (items done, items in all).

    Returns:
        Each item's outcome exactly once, those of the journal first. Use up the iterator, or
        close it, which ends the workers.

    Raises:
        ReelseekError: Another run of this very job is at work, or the folder can't be written.
            Raised at the first step.
    """
    return JobRun(job, executor, tell or _tell_nobody)


def discard_job(job: Job) -> None:
    """Forget a job's results: the journal is deleted. Does nothing where there is none."""
    shutil.rmtree(job.folder / job.identity, ignore_errors=True)
    for folder in (job.folder, job.folder.parent):
        try:
            folder.rmdir()
        except OSError:
            return


class JobRun(Iterator[Outcome]):
    """The outcomes of a run, and its summary."""

    def __init__(self, job: Job, executor: Executor, tell: Callable[[int, int], None]) -> None:
        self._job = job
        self._executor = executor
        self._tell = tell
        self._started = time.monotonic()
        self._outcomes: list[int] = []
        self._counts = {"journal": 0, "retried": 0, "failed": 0, "bytes": 0}
        self._logs = ""
        self._steps = self._run()

    def __next__(self) -> Outcome:
        return next(self._steps)

    def close(self) -> None:
        """End what was started."""
        self._steps.close()

    def summary(self) -> Summary:
        """What was done so far."""
        counts = self._counts
        return Summary(
            num_items=len(self._job.items),
            num_from_journal=counts["journal"],
            num_retried=counts["retried"],
            num_failed=counts["failed"],
            num_bytes=counts["bytes"],
            seconds=time.monotonic() - self._started,
            logs=self._logs,
        )

    def _run(self) -> Generator[Outcome, None, None]:
        folder = self._job.folder / self._job.identity
        with _held(folder):
            reader = JournalReader(folder / RESULTS)
            known = _results(reader, self._job)
            total = len(self._job.items)
            self._tell(len(known), total)
            for item in self._job.items:
                if item.key in known:
                    self._counts["journal"] += 1
                    yield Outcome(item.key, known[item.key].value, "", 0)
            todo = sorted(
                (item for item in self._job.items if item.key not in known),
                key=lambda item: -item.num_bytes,
            )
            if not todo:
                return
            work = Work(self._job, tuple(todo), secrets.token_hex(4), folder, reader)
            self._logs = self._executor.logs(work)
            sizes = {item.key: item.num_bytes for item in todo}
            for count, entry in enumerate(self._executor.entries(work), len(known) + 1):
                self._count(entry, sizes[entry.key])
                self._tell(count, total)
                yield Outcome(entry.key, entry.value, entry.error, entry.attempts)

    def _count(self, entry: Entry, num_bytes: int) -> None:
        self._counts["retried"] += entry.attempts > 1
        self._counts["failed"] += bool(entry.error)
        self._counts["bytes"] += num_bytes


def _results(reader: JournalReader, job: Job) -> dict[str, Entry]:
    """What the journal has of the job's items, made from the input as it is now."""
    stamps = {item.key: item.stamp for item in job.items}
    return {
        entry.key: entry
        for entry in reader.new_entries()
        if not entry.error and stamps.get(entry.key) == entry.stamp
    }


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """The job's folder, made, and locked against another driver."""
    from filelock import FileLock, Timeout

    try:
        (folder / RESULTS).mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        lock.acquire(blocking=False)
    except Timeout as exc:
        raise ReelseekError(
            "another run of this job is at work",
            remedy="Wait for it, or stop it; what it did is kept",
            path=folder,
        ) from exc
    except OSError as exc:
        raise ReelseekError(
            "the job's journal can't be written",
            remedy="Free some space, or name a folder that can be written by REELSEEK_CACHE",
            path=exc.filename or os.fspath(folder),
            detail=exc.strerror or str(exc),
        ) from exc
    try:
        yield
    finally:
        lock.release()


def _tell_nobody(_done: int, _total: int) -> None:
    pass
