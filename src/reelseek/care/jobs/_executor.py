"""Where items are worked on: one small interface, and its choice by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from reelseek.care.jobs._journal import Entry
from reelseek.care.jobs._local import LocalExecutor
from reelseek.care.jobs._ray import RayExecutor
from reelseek.care.jobs._slurm import SlurmExecutor
from reelseek.care.jobs._work import Work

EXECUTORS = ("local", "slurm", "ray")


class Executor(Protocol):
    """Has items worked on.

    Threads: one call of ``entries`` at a time. Whoever stops early closes the iterator, which ends
    what was started.
    """

    def entries(self, work: Work) -> Iterator[Entry]:
        """Each item of ``work.todo`` exactly once, as they come, tried again where that helps."""

    def logs(self, work: Work) -> str:
        """The folder with the workers' logs; empty where they write to this process's stderr."""


def executor_from_options(
    name: str = "local",
    *,
    jobs: int = 0,
    cpus: int = 1,
    tasks: int = 0,
    partition: str = "",
    time: str = "",
    account: str = "",
    parameters: Mapping[str, str | bool] | None = None,
    setup: Sequence[str] | Callable[[], Sequence[str]] = (),
    ray_address: str = "",
    say: Callable[[str], None] | None = None,
) -> Executor:
    """The executor of that name; what is meant for another one is left alone.

    Args:
        name: One of ``EXECUTORS``.
        jobs: local: processes; 0 takes one for each CPU.
        cpus: slurm, ray: processes and CPUs of each task.
        tasks: slurm, ray: tasks at most; 0 takes 32.
        partition: slurm.
        time: slurm: each task's limit, as sbatch reads it.
        account: slurm.
        parameters: slurm: more of sbatch's long options; True for one without a value.
        setup: slurm: lines of shell for the batch script, or a function that finds them.
        ray_address: ray: a running cluster; empty takes RAY_ADDRESS or starts one here.
        say: slurm, ray: is told what a person should know, a line at a time.

    Raises:
        ValueError: There is no executor of that name.
    """
    say = say or (lambda _text: None)
    if name == "local":
        return LocalExecutor(jobs)
    if name == "slurm":
        return SlurmExecutor(
            partition, time, cpus, account, tasks, dict(parameters or {}), setup, say
        )
    if name == "ray":
        return RayExecutor(ray_address, cpus, tasks, say)
    raise ValueError(f"no executor {name!r}; choose from: {', '.join(EXECUTORS)}")
