"""Checking a batch script that somebody has written; it is read and never run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reelseek.errors import LaunchError
from reelseek.launch._check_exports import export_problems
from reelseek.launch._check_job import job_problems
from reelseek.launch._problems import Problem, Severity
from reelseek.launch._shell_script import read_script

MAX_BYTES = 4 << 20
"""sbatch's own limit, unless the cluster sets another."""


@dataclass(frozen=True, slots=True)
class ScriptCheck:
    """What is wrong in one script."""

    path: str
    problems: tuple[Problem, ...]
    """By line."""

    @property
    def is_well(self) -> bool:
        """Whether there is nothing but notes."""
        return all(problem.severity is Severity.NOTE for problem in self.problems)


def check_script(path: str | os.PathLike[str]) -> ScriptCheck:
    """Say what is wrong in a batch script.

    Raises:
        LaunchError: It can't be read.
        DependencyError: tree-sitter or its bash grammar isn't installed.
    """
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise LaunchError("this is too large for a batch script", path=path)
        data = Path(path).read_bytes()
    except OSError as exc:
        raise LaunchError("the script can't be read", path=path, detail=str(exc)) from exc
    return ScriptCheck(os.fspath(path), check_text(data.decode("utf-8", "surrogateescape")))


def check_text(text: str) -> tuple[Problem, ...]:
    """What is wrong in a batch script's text, by line."""
    script = read_script(text)
    found = {*export_problems(script), *job_problems(script)}
    return tuple(sorted(found, key=lambda problem: (problem.line, problem.code, problem.what)))
