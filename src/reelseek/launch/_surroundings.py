"""The SLURM job that this process may run in, as an interactive one on a node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def outside_of_any_job() -> Iterator[None]:
    """Without the variables of a job that this process runs in: sbatch would take them over.

    They are this process's own, so that no other thread should start a program meanwhile.
    """
    if "SLURM_JOB_ID" not in os.environ:
        yield
        return
    kept = {
        name: os.environ.pop(name)
        for name in list(os.environ)
        if name.startswith(("SLURM_", "SLURMD_", "SRUN_")) and name != "SLURM_CONF"
    }
    try:
        yield
    finally:
        os.environ.update(kept)
