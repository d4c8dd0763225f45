"""Ray: each part of a run is a task of a running cluster, or of one that is started here.

Ray is talked to by a process of its own (``_ray_driver``): it prints to stdout, changes its
process's environment and handles signals, which is not for a library to do to its caller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reelseek.care.jobs._journal import Entry, journal_faults
from reelseek.care.jobs._processes import end_of_log, own_paths, reelseek_variables
from reelseek.care.jobs._watch import DEFAULT_TASKS, Watch
from reelseek.care.jobs._work import Work
from reelseek.errors import DependencyError, ReelseekError
from reelseek.workers import Worker

DRIVER = "reelseek.care.jobs._ray_driver"


@dataclass(frozen=True, slots=True)
class RayExecutor:
    """Tasks of a Ray cluster."""

    address: str = ""
    """A running cluster, as "host:6379" or "auto"; empty takes RAY_ADDRESS, and starts one on
    this machine where that isn't set."""
    cpus: int = 1
    """Worker processes of each task, and the CPUs that Ray counts for it."""
    tasks: int = 0
    """Tasks at most; 0 takes DEFAULT_TASKS."""
    say: Callable[[str], None] = field(default=lambda _text: None)
    """Is told what a person should know."""
    poll_seconds: float = 1.0
    """Between two looks into the journal."""
    grace_seconds: float = 3.0
    """After a task has ended, its last results may take so long to be seen here."""

    def entries(self, work: Work) -> Iterator[Entry]:
        """Each item's entry, as they come. Stopped early, it cancels the tasks."""
        with _connected(self, work) as worker:
            tasks = _Tasks(worker, self, work)
            yield from Watch(
                work, tasks, self.tasks or DEFAULT_TASKS, self.cpus, self.say,
                self.poll_seconds, self.poll_seconds, self.grace_seconds,
            ).entries()  # fmt: skip

    def logs(self, work: Work) -> str:
        """The folder with the tasks' logs."""
        return str(work.run_folder / "logs")


@dataclass(slots=True)
class _Tasks:
    """The tasks of one run; each is named as its part."""

    worker: Worker
    options: RayExecutor
    work: Work
    _names: list[str] = field(default_factory=list)

    def submit(self, parts: Sequence[Path]) -> list[str]:
        """Start a task for each part."""
        paths = [str(part) for part in parts]
        self.worker.call(f"{DRIVER}:submit", self.work.job.name, self.options.cpus, paths)
        names = [part.stem for part in parts]
        self._names += names
        self.options.say(f"Ray: {len(names)} tasks, logs in {self.options.logs(self.work)}")
        return names

    def alive(self, tasks: Collection[str]) -> set[str]:
        """Those that Ray hasn't ended."""
        found: set[str] = self.worker.call(f"{DRIVER}:alive", list(tasks))
        return found

    def last_words(self, task: str) -> str:
        """What Ray says of a dead task, and how its log ends."""
        what = self.worker.call(f"{DRIVER}:error_of", task) or "it ended by itself"
        log = Path(self.options.logs(self.work)) / f"{task}.log"
        return f"Ray says: {what}. {log} ends with: {end_of_log(log) or '(nothing)'}"

    def avoid(self, _task: str) -> None:
        """Left to Ray."""

    def cancel(self) -> None:
        """End the tasks, with their processes."""
        if self._names:
            try:
                self.worker.call(f"{DRIVER}:cancel")
            except EOFError:  # they end with the process that talks to Ray
                return
            self.options.say(f"cancelled {len(self._names)} Ray tasks; what they did is kept")


@contextmanager
def _connected(options: RayExecutor, work: Work) -> Iterator[Worker]:
    """A process that is connected to Ray; what it started ends with it."""
    log = work.run_folder / "ray.log"
    with journal_faults(log):
        log.parent.mkdir(parents=True, exist_ok=True)
    address = options.address or os.environ.get("RAY_ADDRESS") or "local"
    worker = Worker(log)
    try:
        try:
            _raise(worker.call(f"{DRIVER}:connect", address, _task_variables()), address)
            _check_cpus(options.cpus, worker.call(f"{DRIVER}:most_cpus"))
            yield worker
            worker.call(f"{DRIVER}:disconnect")
        except EOFError as exc:
            raise ReelseekError(
                "the process that talks to Ray ended",
                remedy="Run the command again: what was done is kept",
                path=log,
                detail=end_of_log(log, 1),
            ) from exc
    finally:
        worker.end()


def _raise(problem: str, address: str) -> None:
    if problem == "missing":
        raise DependencyError("ray isn't installed", remedy="Run `pip install 'reelseek[ray]'`")
    if problem and address == "local":
        raise ReelseekError(
            "Ray can't be started here",
            remedy="Give --ray-address HOST:6379 of a running cluster, or --executor local",
            detail=problem,
        )
    if problem:
        raise ReelseekError(
            f"no Ray cluster answers at {address}",
            remedy="Check the address; one that asks for a token needs RAY_AUTH_MODE=token and "
            "RAY_AUTH_TOKEN here too",
            detail=problem,
        )


def _check_cpus(wanted: int, most: float) -> None:
    """Ray would let tasks that fit on no node wait for ever."""
    if 0 < most < wanted:
        raise ReelseekError(
            f"tasks of {wanted} CPUs fit on no node of the Ray cluster: the largest has {most:g}",
            remedy=f"Give --cpus {int(most)} or less",
        )


def _task_variables() -> dict[str, Any]:
    """What lets a task find the modules that this process finds, and its settings."""
    return {**reelseek_variables(), "PYTHONPATH": os.pathsep.join(own_paths())}
