"""Where items are worked on: one small interface, and its choice by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from reelseek.care.jobs._journal import Entry
from reelseek.care.jobs._local import LocalExecutor
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


def executor_from_options(name: str = "local", *, jobs: int = 0) -> Executor:
    """The executor of that name.

    Args:
        name: One of ``EXECUTORS``.
        jobs: Processes (local).

    Raises:
        ValueError: There is no executor of that name.
    """
    if name == "local":
        return LocalExecutor(jobs)
    raise ValueError(f"no executor {name!r}; choose from: {', '.join(EXECUTORS)}")
