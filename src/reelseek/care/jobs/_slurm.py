"""SLURM: each run is an array of tasks, submitted by submitit.

Which tasks are alive is asked of squeue, which every SLURM answers; submitit's own way needs
accounting, and without it a task that died without a result never ends. The array's name is the
run's own, as job ids can repeat.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reelseek.care.jobs._arrays import NamedArray, node_of
from reelseek.care.jobs._journal import Entry, journal_faults
from reelseek.care.jobs._processes import end_of_log, own_paths, reelseek_variables
from reelseek.care.jobs._task import run_part_on_slurm
from reelseek.care.jobs._watch import DEFAULT_TASKS, Watch
from reelseek.care.jobs._work import Work
from reelseek.errors import DependencyError, ReelseekError

SIGNAL_SECONDS = 90
"""So long before its time is up a task is told to stop."""


@dataclass(frozen=True, slots=True)
class SlurmExecutor:
    """An array of SLURM tasks."""

    partition: str = ""
    """Where; empty takes SLURM's default, as with ``time`` and ``account``."""
    time: str = ""
    """Each task's time limit, as sbatch reads it. A task that it stops goes on where it was."""
    cpus: int = 1
    """Worker processes of each task, and its CPUs."""
    account: str = ""
    """Whose time it is."""
    tasks: int = 0
    """Tasks at most; 0 takes DEFAULT_TASKS."""
    parameters: Mapping[str, str | bool] = field(default_factory=dict)
    """More of sbatch's long options: ``{"mem": "8G", "exclusive": True}``."""
    setup: Sequence[str] | Callable[[], Sequence[str]] = ()
    """Lines of shell for the batch script, as `reelseek env --format slurm` prints them; a
    function that finds them is called where something is submitted."""
    say: Callable[[str], None] = field(default=lambda _text: None)
    """Is told what a person should know: job numbers, dead tasks."""
    poll_seconds: float = 1.0
    """Between two looks into the journal."""
    ask_seconds: float = 10.0
    """Between two calls of squeue."""
    grace_seconds: float = 3.0
    """After a task has ended, its last results may take so long to be seen here."""

    def entries(self, work: Work) -> Iterator[Entry]:
        """Each item's entry, as they come. Stopped early, it cancels the array."""
        array = _Array(self, work, NamedArray(work.job.name, work.run_folder))
        yield from Watch(
            work, array, self.tasks or DEFAULT_TASKS, self.cpus, self.say,
            self.poll_seconds, self.ask_seconds, self.grace_seconds,
        ).entries()  # fmt: skip
        array.named.is_over()

    def logs(self, work: Work) -> str:
        """The folder with the tasks' logs."""
        return str(work.run_folder / "logs")


@dataclass(slots=True)
class _Array:
    """The tasks of one run."""

    options: SlurmExecutor
    work: Work
    named: NamedArray
    _jobs: list[str] = field(default_factory=list)
    """Job numbers, one for each submission."""
    _reasons: set[str] = field(default_factory=set)
    """Why tasks wait, as far as that was said."""
    _avoided: set[str] = field(default_factory=set)
    """Nodes on which tasks ended that had done nothing."""

    @property
    def _logs(self) -> Path:
        return Path(self.options.logs(self.work))

    def submit(self, parts: Sequence[Path]) -> list[str]:
        """Submit an array."""
        submitit = _imported()
        if "%" in str(self._logs):
            raise ReelseekError(
                "SLURM would read the % in this path as a pattern",
                remedy="Give the dataset a path without it (a link will do)",
                path=self._logs,
            )
        with journal_faults(self._logs):
            self._logs.mkdir(parents=True, exist_ok=True)
            self.named.note()
        refusals = (
            submitit.core.utils.FailedJobError,
            submitit.core.utils.FailedSubmissionError,
            OSError,
        )
        try:
            jobs = self._submitted(submitit, parts)
        except refusals as exc:
            raise ReelseekError(
                "SLURM doesn't take the job",
                remedy="Check --partition, --account, --time, --cpus and --sbatch",
                detail=" ".join(str(exc).split()),
            ) from exc
        number = jobs[0].job_id.partition("_")[0]
        self._jobs.append(number)
        self.options.say(f"SLURM job {number}: {len(jobs)} tasks, logs in {self._logs}")
        return [job.job_id for job in jobs]

    def _submitted(self, submitit: Any, parts: Sequence[Path]) -> list[Any]:
        from reelseek.launch import outside_of_any_job

        executor = submitit.SlurmExecutor(self._logs)
        executor.update_parameters(**self._parameters())
        try:
            with outside_of_any_job():
                jobs: list[Any] = executor.map_array(run_part_on_slurm, list(map(str, parts)))
        except submitit.core.utils.FailedJobError:
            if not self._avoided:
                raise
            self._avoided.clear()  # no other node does
            return self._submitted(submitit, parts)
        return jobs

    def _more_of_sbatch(self) -> dict[str, str | bool]:
        given = {name.replace("_", "-"): value for name, value in self.options.parameters.items()}
        ours: dict[str, str | bool] = {} if "no-requeue" in given else {"requeue": True}
        if self.options.time:
            ours["time"] = self.options.time
        more = {**ours, **given}
        if self._avoided:
            nodes = [str(given.get("exclude", "")), *sorted(self._avoided)]
            more["exclude"] = ",".join(filter(None, nodes))
        return more

    def _parameters(self) -> dict[str, Any]:
        options = self.options
        setup = options.setup() if callable(options.setup) else options.setup
        return {
            "job_name": self.named.name,
            "partition": options.partition or None,
            "account": options.account or None,
            "cpus_per_task": options.cpus,
            "time": None,  # submitit's default is 5 minutes
            "signal_delay_s": SIGNAL_SECONDS,
            "additional_parameters": self._more_of_sbatch(),
            "setup": [*_variables(), *setup],
            # What the script exports reaches the tasks in spite of `sbatch --export=NONE`; and
            # since SLURM 22.05 srun doesn't take over the number of CPUs.
            "srun_args": ["--export=ALL", f"--cpus-per-task={options.cpus}"],
            "stderr_to_stdout": True,
        }

    def alive(self, tasks: Collection[str]) -> set[str] | None:
        """Those that squeue lists."""
        listed = self.named.tasks()
        if listed is None:
            return None
        self._say_why_they_wait({reason for state, reason in listed.values() if state == "PENDING"})
        return {task for task in tasks if task in listed}

    def _say_why_they_wait(self, reasons: set[str]) -> None:
        news = sorted(reasons - self._reasons - {"None", "Priority", "Resources"})
        self._reasons.update(news)
        for reason in news:
            self.options.say(f"SLURM job {', '.join(self._jobs)}: tasks wait ({reason})")

    def last_words(self, task: str) -> str:
        """Where a dead task's log is, and how it ends."""
        path = self._logs / f"{task}_0_log.out"
        end = end_of_log(path)
        return f"{path} ends with: {end}" if end else f"It left no log ({path})"

    def avoid(self, task: str) -> None:
        """Submit nothing more to the node on which a task ended."""
        node = node_of(task)
        if node:
            self._avoided.add(node)

    def cancel(self) -> None:
        """Cancel the array, even one whose number isn't known: it is submitted just now."""
        if not self.named.is_noted:
            return
        what = f"SLURM job {', '.join(self._jobs) or self.named.name}"
        if self.named.cancel():
            self.options.say(f"cancelled {what}; what it did is kept")
        else:
            self.options.say(
                f"{what} can't be cancelled now: run `scancel --name={self.named.name}`; "
                "the next run of this command tries it too"
            )


def _imported() -> Any:
    try:
        import submitit
    except ImportError as exc:
        raise DependencyError(
            "submitit, which submits SLURM jobs, isn't installed",
            remedy="Run `pip install 'reelseek[slurm]'`",
        ) from exc
    if shutil.which("sbatch") is None:
        raise ReelseekError(
            "there is no sbatch on this machine",
            remedy="Run this on a login node of the cluster",
        )
    return submitit


def _variables() -> list[str]:
    """Lines that let a task find the modules that this process finds, and its settings."""
    variables = {**reelseek_variables(), "PYTHONPATH": os.pathsep.join(own_paths())}
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items() if value]
