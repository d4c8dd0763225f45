"""Worker processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reelseek.care.jobs._attempts import Attempts
from reelseek.care.jobs._journal import Entry, append, journal_faults
from reelseek.care.jobs._work import Work
from reelseek.workers import num_cpus


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Worker processes of this machine."""

    jobs: int = 0
    """Processes; 0 takes one for each CPU that this process may use."""

    def entries(self, work: Work) -> Iterator[Entry]:
        """Each item's entry, as they come; the journal has it by then."""
        journal = work.results("local")
        attempts = Attempts(work.job.function, dict(work.job.arguments), work.run)
        for entry in attempts.entries(work.todo, self.jobs or num_cpus()):
            with journal_faults(journal):
                append(journal, entry)
            yield entry

    def logs(self, _work: Work) -> str:
        """None: the workers write to this process's stderr."""
        return ""
