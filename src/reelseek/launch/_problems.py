"""What can be wrong in a batch script: the codes, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Severity(Enum):
    """How bad it is."""

    ERROR = "error"
    """The job fails, or doesn't do what the script says."""
    WARNING = "warning"
    """It may, on some machines or some of the time."""
    NOTE = "note"
    """Worth knowing; the script is not called wrong for it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and what mends it."""

    code: str
    """One of ``CODES``."""
    line: int
    """Its number in the script; 0 where a line is missing."""
    what: str
    """One sentence with the values."""
    mend: str
    """The corrected line, or what to do with which one."""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return CODES[self.code][0]


_ERRORS = {
    "no-shebang": "sbatch takes no script without #! in its first line",
    "dos-line-breaks": "sbatch takes no script with Windows' line breaks",
    "sbatch-after-command": "sbatch stops reading #SBATCH lines at the first command",
    "export-after-start": "LD_LIBRARY_PATH is exported after Python was started",
    "set-inside-python": "LD_LIBRARY_PATH is set inside Python, which is too late",
    "not-exported": "LD_LIBRARY_PATH is set, and not exported",
    "export-in-subshell": "LD_LIBRARY_PATH is exported in a shell that ends before Python starts",
    "python-version-in-path": "a path names another Python than the environment's",
    "unset-variable": "LD_LIBRARY_PATH is used under set -u, where it may be unset",
    "order": "the system's folders or the old value come before the environment's",
    "srun-export": "srun keeps back what the script exports",
    "set-outside": "a variable is set outside, and --export keeps it back",
    "conda-hook": "conda activate without conda's hook fails in a batch script",
    "no-rendezvous": "torchrun runs on several nodes that aren't told where to meet",
    "torchrun-not-in-srun": "torchrun runs on the first node alone",
    "torchrun-too-often": "srun starts torchrun several times on a node",
    "nnodes-differs": "torchrun waits for another number of nodes than the job has",
    "nproc-differs": "torchrun starts another number of processes than a node has GPUs",
}
_WARNINGS = {
    "folder-missing": "a folder on LD_LIBRARY_PATH is not on this machine",
    "conda-missing": "CONDA_PREFIX comes from the shell that submits the job",
    "module-after-export": "module may put folders before those that were exported",
}
_NOTES = {
    "python-version-written-in": "a path names a Python version, and can't be looked at from here",
    "no-requeue": "it isn't said whether the job may be started again",
    "no-signal": "the program isn't told before its time is up",
    "not-understood": "a line that isn't understood, and was not checked",
}
CODES: MappingProxyType[str, tuple[Severity, str]] = MappingProxyType({
    code: (severity, text)
    for severity, texts in (
        (Severity.ERROR, _ERRORS), (Severity.WARNING, _WARNINGS), (Severity.NOTE, _NOTES),
    )
    for code, text in texts.items()
})  # fmt: skip
"""Of each code, how bad it is and what it means."""
