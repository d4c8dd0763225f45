"""Whether what a batch script exports reached this process.

``sbatch --export=NONE``, or a list without ALL, sets SLURM_EXPORT_ENV in the job; every ``srun``
in it then starts its tasks without the variables that the script exports (sbatch(1), srun(1),
``--export``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reelseek.native._facts import Facts, started_with
from reelseek.native._remedy import Remedy, RemedyKind


@dataclass(frozen=True, slots=True)
class SlurmCheck:
    """What became of an export on its way into a job's task."""

    is_well: bool
    verdict: str
    """One sentence."""
    job_id: str = ""
    export_env: str = ""
    """SLURM_EXPORT_ENV as this process got it."""
    command: str = ""
    """What mends it."""

    def to_json(self) -> dict[str, Any]:
        """The part of ``reelseek doctor --json`` that is about the job."""
        return {
            "is_well": self.is_well,
            "verdict": self.verdict,
            "job_id": self.job_id,
            "export_env": self.export_env,
            "command": self.command,
        }


def check_slurm(
    facts: Facts, remedy: Remedy, started: Mapping[str, str] | None = None
) -> SlurmCheck:
    """Compare what this process was started with to what the environment needs.

    Args:
        facts: The environment's facts.
        remedy: What it still needs.
        started: The variables that the process was started with; this one's where not given.
    """
    started = started_with() if started is None else started
    job = started.get("SLURM_JOB_ID", "")
    if not job:
        return SlurmCheck(
            False,
            "this is no SLURM job: SLURM_JOB_ID is not set",
            command="srun --export=ALL reelseek doctor --slurm-check",
        )
    export = started.get("SLURM_EXPORT_ENV", "")
    name = f"job {job} on {started.get('SLURMD_NODENAME', 'this node')}"
    if remedy.kind is RemedyKind.NOTHING_NEEDED:
        path = started.get("LD_LIBRARY_PATH", "")
        arrived = f"LD_LIBRARY_PATH={path}" if path else "LD_LIBRARY_PATH is not set"
        return SlurmCheck(True, f"{name}: nothing more has to be exported ({arrived})", job, export)
    if remedy.kind is not RemedyKind.SEARCH_PATH:
        verdict = f"{name}: no export mends this environment, whatever reached the job"
        return SlurmCheck(False, verdict, job, export, remedy.command)
    what, is_kept_back = _lost(facts, remedy, export)
    command = "srun --export=ALL python your_script.py" if is_kept_back else remedy.command
    return SlurmCheck(False, f"{name}: {what}", job, export, command)


def _lost(facts: Facts, remedy: Remedy, export: str) -> tuple[str, bool]:
    """What became of the folders, and whether ``--export`` kept them back."""
    missing = ", ".join(folder for folder in remedy.folders if folder not in facts.ld_library_path)
    if not missing:
        there = ", ".join(remedy.folders)
        return f"{there} is on LD_LIBRARY_PATH, and has to stand first on it", False
    what = f"the export did not reach it: {missing} is not on LD_LIBRARY_PATH"
    if not export or "ALL" in export.split(","):
        return what, False
    why = f"the job was submitted with --export={export}, which holds for each srun in it too"
    return f"{what}, as {why}", True
