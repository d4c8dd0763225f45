"""The script that starts a SLURM for the tests refuses what it can't do well."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.clusters import PROGRAMS, SCRIPT
from tests.conftest import skip_without
from tests.patience import PATIENCE


def up(folder: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT), "up", folder], env={**os.environ, "PATH": path},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def test_relative_folder_is_refused() -> None:
    done = up("a_folder", os.environ["PATH"])
    assert (done.returncode, done.stdout) == (2, "")
    assert "give FOLDER as an absolute path" in done.stderr


def test_nothing_is_started_without_free_ports(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        skip_without("slurm", "slurmd has to be started by root")
    for name in ("shuf", *PROGRAMS):  # the first names the ports to try
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    done = up(str(tmp_path / "cluster"), f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "no free ports" in done.stderr
    assert not (tmp_path / "cluster" / "slurm.conf").exists()
    assert str(tmp_path) not in Path("/etc/hosts").read_text()
