"""A dataset's index, made by a cluster: its tasks look into the videos, one process writes."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from typing import Any

from reelseek.care.jobs import (
    Executor,
    Item,
    Job,
    JobRun,
    Summary,
    job_folder,
    run_job,
)
from reelseek.errors import ReelseekError
from reelseek.index import IndexReport, build_index
from reelseek.index._video_record import VideoRecord
from reelseek.index._worker import index_file

Found = Iterator[tuple[bytes, VideoRecord | str]]


def index_dataset(
    root: str | os.PathLike[str],
    executor: Executor,
    *,
    tell: Callable[[int, int], None] | None = None,
    tell_waiting: Callable[[], None] | None = None,
) -> tuple[IndexReport, Summary | None]:
    """Index a dataset's videos where the executor says.

    The index has the same records as ``build_index`` gives, in the order in which they came.

    Args:
        root: The dataset's folder, which the tasks find under the same path.
        executor: Where the videos are looked into.
        tell: As for ``build_index``, as is the next one.
        tell_waiting: As for ``build_index``.

    Returns:
        The report of ``build_index``, and the job's summary; None where nothing was to do.

    Raises:
        ReelseekError: What ``build_index`` and ``run_job`` raise.
    """
    runs: list[JobRun] = []

    def index_files(folder: str, files: list[bytes]) -> Found:
        if files:
            run = run_job(_job_of(folder, files), executor, keep=False)
            runs.append(run)
            yield from _found(folder, run)

    report = build_index(root, tell=tell, tell_waiting=tell_waiting, index_files=index_files)
    return report, runs[-1].summary() if runs else None


def index_video_file(key: str, *, folder: str) -> dict[str, Any]:
    """One video's record for the journal: ``facts`` and ``body`` in base64.

    Raises:
        ReelseekError: It can't be indexed.
    """
    found = index_file(folder, os.fsencode(key))
    if isinstance(found, str):
        raise ReelseekError(found)
    return {
        "facts": base64.b64encode(found.facts).decode(),
        "body": base64.b64encode(found.body).decode(),
    }


def _job_of(folder: str, files: list[bytes]) -> Job:
    keys = [os.fsdecode(file) for file in files]
    return Job(
        name="index",
        function=f"{__name__}:{index_video_file.__name__}",
        arguments={"folder": folder},
        items=tuple(Item.of_file(key, os.path.join(folder, key)) for key in keys),
        folder=job_folder(folder, "index"),
        needs=(folder,),
    )


def _found(folder: str, run: JobRun) -> Found:
    for outcome in run:
        value = outcome.value
        if value is None:
            yield os.fsencode(outcome.key), outcome.error.removeprefix(f"{outcome.key}: ")
        else:
            record = VideoRecord(base64.b64decode(value["facts"]), base64.b64decode(value["body"]))
            yield os.fsencode(outcome.key), record
