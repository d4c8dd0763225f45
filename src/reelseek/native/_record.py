"""What an installed distribution's RECORD lists (PyPA, "Recording installed projects")."""

from __future__ import annotations

import csv
import os
import re
import stat
from collections.abc import Iterator, Sequence

MAX_RECORD_BYTES = 8 << 20
"""torch's takes 2 MB."""


def recorded_files(dist_info: str) -> Iterator[str]:
    """The paths that a ``.dist-info`` folder's RECORD lists, as absolute ones; none without it.

    It is read up to ``MAX_RECORD_BYTES``, and a line that isn't as specified lists nothing.
    """
    path = os.path.join(dist_info, "RECORD")
    folder = os.path.dirname(dist_info)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return
        with open(path, "rb") as file:
            lines = os.fsdecode(file.read(MAX_RECORD_BYTES)).splitlines()
    except OSError:
        return
    for line in lines:
        try:
            row = next(csv.reader([line]), [])
        except csv.Error:
            continue
        if row and row[0] and "\0" not in row[0]:
            yield os.path.normpath(os.path.join(folder, row[0]))


def dist_info_of(project: str, folders: Sequence[str]) -> Iterator[str]:
    """The project's ``.dist-info`` folders in these folders, in order."""
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info") and normalized(name.partition("-")[0]) == project:
                yield os.path.join(folder, name)


def normalized(project: str) -> str:
    """A project's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", project).lower()
