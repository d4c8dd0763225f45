"""Looking into many files, here or wherever an executor works."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reelseek.care.jobs import Executor, Item, Job, discard_job, job_folder, run_job
from reelseek.care.verify._check_file import check_file

NAME = "verify"
FUNCTION = f"{check_file.__module__}:{check_file.__name__}"

Tell = Callable[[int, int], None]
"""(files done, files in all)."""


@dataclass(slots=True)
class Looked:
    """What came of it."""

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Each file's facts by its path, in the order of paths."""
    failures: dict[str, str] = field(default_factory=dict)
    """Files that couldn't be looked into, and why."""
    num_kept: int = 0
    """Files whose facts an earlier run had found."""


def look_into(
    root: Path,
    paths: Sequence[str],
    level: str,
    fps: float | None,
    *,
    executor: Executor | None,
    is_fresh: bool,
    tell: Tell,
) -> Looked:
    """The facts of some files of a dataset.

    Args:
        root: The dataset's folder.
        paths: The files, relative to it.
        level: ``quick`` or ``decode``.
        fps: Frames a second of the dataset's rows; None where it isn't known.
        executor: Where to work; None for here, without a journal.
        is_fresh: Forget what a journal has.
        tell: Is told how many files are done.

    Raises:
        ReelseekError: Another run is at work on the same, or the journal can't be written.
    """
    looked = Looked()
    if executor is None:
        for count, path in enumerate(paths, 1):
            try:
                looked.facts[path] = check_file(path, root=str(root), level=level, fps=fps)
            except Exception as exc:  # noqa: BLE001 - one file's fault, whatever it is, hides no other
                looked.failures[path] = f"{type(exc).__name__}: {exc}"
            tell(count, len(paths))
        return looked
    arguments = {"root": str(root), "level": level, "fps": fps}
    folder = job_folder(root, f"{NAME}-{level}")
    job = Job(NAME, FUNCTION, arguments, _items(root, paths), folder, needs=(str(root),))
    if is_fresh:
        discard_job(job)
    # Looking again quickly takes no longer than asking whether anything changed.
    run = run_job(job, executor, tell=tell, keep=level != "quick")
    outcomes = {outcome.key: outcome for outcome in run}
    for path in paths:
        outcome = outcomes[path]
        looked.num_kept += outcome.attempts == 0
        if outcome.value is None:
            looked.failures[path] = outcome.error
        else:
            looked.facts[path] = outcome.value
    if level == "quick":
        with contextlib.suppress(OSError):  # an index may be there
            job.folder.parent.parent.rmdir()
    return looked


def _items(root: Path, paths: Sequence[str]) -> tuple[Item, ...]:
    return tuple(Item.of_file(path, root / path) for path in paths)
