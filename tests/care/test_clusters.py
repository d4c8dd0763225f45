"""Index, verify and reencode give on a real SLURM and a real Ray what they give here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import needs_submitit
from tests.datasets import makers
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


def done(root: Path, executor: str, address: str = "") -> dict[str, Any]:
    """What the commands' functions made of the dataset, in a process of their own."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.care.drive", executor, address, str(root)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with something to find: frames that the data doesn't know."""
    root = makers.make_gr00t(tmp_path_factory.mktemp("some data") / "a dataset")
    video = makers.v2_video(root, makers.TOP, 1)
    video.write_bytes(makers.v2_video(root, makers.TOP, 0).read_bytes())
    return root


@pytest.fixture(scope="module")
def here(root: Path) -> dict[str, Any]:
    """What this machine makes of it."""
    return done(root, "local")


@pytest.mark.parametrize("export", ["ALL", "NONE"])
def test_slurm_gives_what_this_machine_gives(
    root: Path, here: dict[str, Any], slurm: Path, export: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_submitit()
    monkeypatch.setenv("SBATCH_EXPORT", export)
    assert done(root, "slurm") == here
    assert here["indexed"] == [4, 0] and here["findings"] and len(here["files"]) > 4


def test_ray_gives_what_this_machine_gives(
    root: Path, here: dict[str, Any], ray_address: str
) -> None:
    assert done(root, "ray", ray_address) == here
