"""What becomes of an array whose submission goes wrong: it is cancelled by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clusters import needs_submitit
from tests.patience import PATIENCE

COMMAND = [sys.executable, "-m", "tests.care.jobs.drive", "slurm", ""]


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("sbatch", "scancel_status", "words"),
    [
        ("kill -INT $PPID; sleep 1", 0, "cancelled SLURM job reelseek-toy-"),
        ("kill -INT $PPID; sleep 1", 1, "can't be cancelled now: run `scancel --name=reelseek-toy"),
        ("echo welcome", 0, "SLURM doesn't take the job (Could not make sense of sbatch output"),
    ],
)
def test_array_that_may_have_been_submitted_is_cancelled(
    tmp_path: Path, sbatch: str, scancel_status: int, words: str
) -> None:
    needs_submitit()
    program(tmp_path, "sbatch", sbatch)
    program(tmp_path, "scancel", f'echo "$@" >> "{tmp_path}/asked"; exit {scancel_status}')
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        [*COMMAND, str(tmp_path), "{}", "good_1"], env={**os.environ, "PATH": path},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert words in done.stderr
    assert "--quiet --name=reelseek-toy-" in (tmp_path / "asked").read_text()
    assert any(tmp_path.rglob("at-slurm")) == bool(scancel_status)
