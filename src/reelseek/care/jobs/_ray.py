"""Ray: each part of a run is a task of a running cluster, or of one that is started here."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reelseek.care.jobs._journal import Entry
from reelseek.care.jobs._processes import end_of_log, own_paths, reelseek_variables
from reelseek.care.jobs._task import run_part_on_ray
from reelseek.care.jobs._watch import Watch
from reelseek.care.jobs._work import Work
from reelseek.errors import DependencyError, ReelseekError

DEFAULT_TASKS = 32
RETRIES = 2
"""How often Ray starts a task again whose process or node died; it goes on from its journal."""
LOG_LINES = 5
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
}
"""While Ray starts: it reports its use to nobody, and doesn't warn of what is to come."""


@dataclass(frozen=True, slots=True)
class RayExecutor:
    """Tasks of a Ray cluster."""

    address: str = ""
    """A running cluster, as "host:6379", "ray://host:10001" or "auto"; empty takes RAY_ADDRESS,
    and starts one on this machine where that isn't set."""
    cpus: int = 1
    """Worker processes of each task, and the CPUs that Ray counts for it."""
    tasks: int = 0
    """Tasks at most; 0 takes DEFAULT_TASKS."""
    say: Callable[[str], None] = field(default=lambda _text: None)
    """Is told what a person should know."""
    poll_seconds: float = 1.0
    """Between two looks into the journal."""

    def entries(self, work: Work) -> Iterator[Entry]:
        """Each item's entry, as they come. Stopped early, it cancels the tasks."""
        with _connected(self) as ray:
            tasks = _Tasks(ray, self, work)
            yield from Watch(
                work, tasks, self.tasks or DEFAULT_TASKS, self.cpus, self.say,
                self.poll_seconds, self.poll_seconds,
            ).entries()  # fmt: skip

    def logs(self, work: Work) -> str:
        """The folder with the tasks' logs."""
        return str(work.run_folder / "logs")


@dataclass(slots=True)
class _Tasks:
    """The tasks of one run."""

    ray: Any
    options: RayExecutor
    work: Work
    _refs: dict[str, Any] = field(default_factory=dict)
    _paths: dict[str, Path] = field(default_factory=dict)

    def submit(self, parts: Sequence[Path]) -> list[str]:
        """Start a task for each part."""
        function = self.ray.remote(
            num_cpus=self.options.cpus, max_retries=RETRIES, retry_exceptions=False
        )(run_part_on_ray)
        names = []
        for part in parts:
            name = f"{self.work.job.name}-{part.stem}"
            self._refs[name] = function.options(name=name).remote(str(part))
            self._paths[name] = self.work.run_folder / "logs" / f"{part.stem}.log"
            names.append(name)
        self.options.say(f"Ray: {len(names)} tasks, logs in {self.options.logs(self.work)}")
        return names

    def alive(self, tasks: Collection[str]) -> set[str]:
        """Those that Ray hasn't ended."""
        refs = {self._refs[task]: task for task in tasks}
        _ended, waiting = self.ray.wait(list(refs), num_returns=len(refs), timeout=0)
        return {refs[ref] for ref in waiting}

    def last_words(self, task: str) -> str:
        """What Ray says of a dead task, and how its log ends."""
        try:
            self.ray.get(self._refs[task])
            what = "It ended by itself"
        except self.ray.exceptions.RayError as exc:
            what = str(exc).strip().splitlines()[0]
        end = end_of_log(self._paths[task], LOG_LINES)
        return f"{what}. {self._paths[task]} ends with: {end or '(nothing)'}"

    def cancel(self) -> None:
        """End the tasks, with their processes."""
        for ref in self._refs.values():
            self.ray.cancel(ref, force=True)
        if self._refs:
            self.options.say(f"cancelled {len(self._refs)} tasks; what they did is kept")


@contextmanager
def _connected(options: RayExecutor) -> Iterator[Any]:
    """Ray, connected; what was connected or started here is ended."""
    try:
        import ray
    except ImportError as exc:
        raise DependencyError(
            "ray isn't installed", remedy="Run `pip install 'reelseek[ray]'`"
        ) from exc
    if ray.is_initialized():  # by the caller, who ends it
        yield ray
        return
    address = options.address or os.environ.get("RAY_ADDRESS") or "local"
    try:
        with _variables(QUIET):
            ray.init(
                address,
                logging_level=logging.ERROR,
                log_to_driver=False,
                runtime_env={"env_vars": _task_variables()},
                **({"include_dashboard": False} if address == "local" else {}),
            )
    except (ConnectionError, RuntimeError, ValueError) as exc:
        raise ReelseekError(
            f"there is no Ray cluster at {address}",
            remedy="Give --ray-address HOST:6379 of a running one, or leave it out",
            detail=str(exc).strip().splitlines()[0],
        ) from exc
    try:
        yield ray
    finally:
        ray.shutdown()


def _task_variables() -> dict[str, str]:
    """What lets a task find the modules that this process finds, and its settings."""
    return {**reelseek_variables(), "PYTHONPATH": os.pathsep.join(own_paths())}


@contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for a while, where they aren't set."""
    news = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(news)
    try:
        yield
    finally:
        for name in news:
            os.environ.pop(name, None)
