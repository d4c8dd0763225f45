"""Where a job's journal is: beside the dataset's index, or in the cache."""

from __future__ import annotations

import os
from pathlib import Path


def job_folder(owner: str | os.PathLike[str], name: str) -> Path:
    """The folder for the journal of a job over a dataset; it may not exist yet.

    ``<dataset>/meta/reelseek/jobs/NAME``, or in the user's cache folder (REELSEEK_CACHE) where
    the dataset is read-only.
    """
    from reelseek.index._location import writable_path

    index = writable_path(os.path.abspath(os.fspath(owner)))
    if index.parent.name == "reelseek":
        return index.parent / "jobs" / name
    return index.with_suffix(".jobs") / name
