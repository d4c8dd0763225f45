"""SLURM arrays by their names: which tasks are alive, and ending them, now or in a later run.

While an array may be at work there is a note in its run's folder: an empty file, as the folder's
name and the job's make the array's. A driver that is killed leaves it, and the next one ends the
array. It stays until scancel has worked.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from reelseek.care.jobs._journal import RUNS

NOTE = "at-slurm"
"""In a run's folder while its array may be at work."""
COMMAND_SECONDS = 60
"""A SLURM command that takes longer has failed."""


@dataclass(frozen=True, slots=True)
class NamedArray:
    """The array of one run. Job numbers can repeat; its name is the run's own."""

    job: str
    """The job's name."""
    run_folder: Path
    """The run's folder, named as the run."""

    @property
    def name(self) -> str:
        """What SLURM knows it by."""
        return f"reelseek-{self.job}-{self.run_folder.name}"

    @property
    def is_noted(self) -> bool:
        """Whether it may be at work."""
        return self._note.exists()

    @property
    def _note(self) -> Path:
        return self.run_folder / NOTE

    def note(self) -> None:
        """Note that it may be at work from now on."""
        self._note.touch()

    def is_over(self) -> None:
        """Note that it isn't at work any more."""
        self._note.unlink(missing_ok=True)

    def tasks(self) -> dict[str, tuple[str, str]] | None:
        """State and reason of its tasks, by their numbers; None where squeue doesn't say."""
        said = _ran("squeue", "--noheader", "--array", f"--name={self.name}", "--format=%i|%T|%r")
        if said is None:
            return None
        lines = (line.strip().split("|", 2) for line in said.splitlines() if line.count("|") >= 2)
        return {task: (state, reason) for task, state, reason in lines}

    def cancel(self) -> bool:
        """End it; whether scancel worked."""
        if _ran("scancel", "--quiet", f"--name={self.name}") is None:
            return False
        self.is_over()
        return True


def end_former_arrays(job: str, folder: Path) -> None:
    """End what drivers that were killed have left at work.

    Args:
        job: The job's name.
        folder: Where its journal and runs are.
    """
    for note in (folder / RUNS).glob(f"*/{NOTE}"):
        NamedArray(job, note.parent).cancel()


def node_of(task: str) -> str:
    """The node on which a task is or was; empty where SLURM doesn't say."""
    said = _ran("scontrol", "--oneliner", "show", "job", task) or ""
    found = re.search(r"\bNodeList=([\w.-]+)", said)
    return found[1] if found else ""


def _ran(*command: str) -> str | None:
    """What a SLURM command prints; None where it fails, as while slurmctld is started anew."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
