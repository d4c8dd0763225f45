"""Worker processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reelseek.care.jobs._attempts import entries_of
from reelseek.care.jobs._journal import Entry, append
from reelseek.care.jobs._work import Work
from reelseek.workers import num_cpus


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Worker processes of this machine."""

    jobs: int = 0
    """Processes; 0 takes one for each CPU that this process may use."""

    def entries(self, work: Work) -> Iterator[Entry]:
        """Each item's entry, as they come; the journal has it by then."""
        job = work.job
        journal = work.results("local")
        jobs = self.jobs or num_cpus()
        for entry in entries_of(job.function, job.arguments, work.todo, work.run, jobs):
            append(journal, entry)
            yield entry

    def logs(self, work: Work) -> str:
        """None: workers write to this process's stderr."""
        return ""
