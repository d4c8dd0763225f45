"""What an installed distribution's RECORD lists (PyPA, "Recording installed projects")."""

from __future__ import annotations

import csv
import os
import re
import stat
from collections.abc import Iterator, Sequence

NEEDED = {
    "torch": re.compile(
        r"torch/((__init__|version)\.py|_C\.[^/]*so|lib/lib(torch|torch_\w+|c10|c10_\w+)\.so)"
    ),
    "torchcodec": re.compile(r"torchcodec/(?!share/).*\.(py|so)"),
}
"""Of what a RECORD lists, the files without which torchcodec does not load."""
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


def missing_files(project: str, folders: Sequence[str], package: str) -> tuple[str, ...]:
    """The files that the project needs and its RECORD lists, and which aren't there.

    Args:
        project: A key of ``NEEDED``.
        folders: Where packages are imported from.
        package: The folder that it is imported from; empty where there is none.
    """
    found = list(dist_info_of(project, folders))
    beside = [
        info for info in found if not package or os.path.dirname(info) == os.path.dirname(package)
    ]
    if len(beside) != 1:  # none, or what an upgrade that was broken off has left
        return ()
    folder = os.path.dirname(beside[0])
    listed = [
        path
        for path in recorded_files(beside[0])
        if NEEDED[project].fullmatch(os.path.relpath(path, folder))
    ]
    start = os.path.join(folder, project, "__init__.py")
    if package and start not in listed:  # a RECORD that is lost, or not whole itself
        listed.insert(0, start)
    return tuple(path for path in listed if not os.path.lexists(path))


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
