"""What an executor is handed: the items of one run that are still to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from reelseek.care.jobs._job import Item, Job
from reelseek.care.jobs._journal import RESULTS, RUNS, JournalReader


@dataclass(frozen=True, slots=True)
class Work:
    """One run of a job."""

    job: Job
    """The job."""
    todo: tuple[Item, ...]
    """The items without a result, the largest first."""
    run: str
    """The run's own name."""
    folder: Path
    """Where this job's files are; exists."""
    reader: JournalReader = field(compare=False)
    """The journal; what was there before is read already."""

    def results(self, part: str) -> Path:
        """The journal file of a part of this run."""
        return self.folder / RESULTS / f"{self.run}-{part}.jsonl"

    @property
    def run_folder(self) -> Path:
        """What a cluster's tasks are asked, and their logs; may not exist."""
        return self.folder / RUNS / self.run
