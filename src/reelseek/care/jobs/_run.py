"""Running a job: what its journal has, then the rest."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from reelseek.care.jobs._arrays import end_former_arrays
from reelseek.care.jobs._executor import Executor
from reelseek.care.jobs._held import held
from reelseek.care.jobs._job import Job, Outcome, Summary
from reelseek.care.jobs._journal import RESULTS, Entry, JournalReader, journal_faults
from reelseek.care.jobs._work import Work


def run_job(
    job: Job,
    executor: Executor,
    *,
    tell: Callable[[int, int], None] | None = None,
    keep: bool = True,
) -> JobRun:
    """Do what is left of a job.

    Interrupted or killed at any point, the next call goes on from the journal. Results stay in it
    until ``discard_job``, and are taken from it while the items' stamps are the same; failures
    aren't: they are tried again.

    Args:
        job: The job.
        executor: Where to work.
        tell: Is told (items done, items in all).
        keep: False deletes the journal and the logs at the end, where no item failed.

    Returns:
        Each item's outcome exactly once, those of the journal first. Use up the iterator, or
        close it, which ends the workers.

    Raises:
        ReelseekError: Another run of this very job is at work, or the folder can't be written.
            Raised at the first step.
    """
    return JobRun(job, executor, tell or (lambda _done, _total: None), keep=keep)


def discard_job(job: Job) -> None:
    """Forget a job's results: the journal is deleted. Does nothing where there is none.

    Raises:
        ReelseekError: A run of it is at work.
    """
    if (job.folder / job.identity).exists():
        with held(job) as folder, journal_faults(folder.path):
            folder.forget()


class JobRun(Iterator[Outcome]):
    """The outcomes of a run, and its summary."""

    def __init__(
        self, job: Job, executor: Executor, tell: Callable[[int, int], None], *, keep: bool
    ) -> None:
        self._job = job
        self._executor = executor
        self._tell = tell
        self._keep = keep
        self._started = time.monotonic()
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
        with held(self._job) as folder:
            end_former_arrays(self._job.name, folder.path)
            yield from self._outcomes_in(folder.path)
            if not self._keep and not self._counts["failed"]:
                with journal_faults(folder.path):
                    folder.forget()
                self._logs = ""

    def _outcomes_in(self, folder: Path) -> Generator[Outcome, None, None]:
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
