"""A dataset's index made on a cluster has the records of the one made here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reelseek.care._index import index_dataset
from reelseek.care.jobs import LocalExecutor
from reelseek.index import Sidecar, build_index
from tests.cli.conftest import Run, reelseek_command
from tests.conftest import needs
from tests.index.tables import make_folder

__all__ = ["reelseek_command"]  # a fixture


def records(root: Path) -> dict[bytes, tuple[bytes, bytes]]:
    sidecar = Sidecar(str(root / "meta" / "reelseek" / "index.bin"), str(root))
    return {head.path: (record.facts, record.body) for head, record in sidecar.records()}


def pair_of_datasets(tmp_path: Path) -> tuple[Path, Path]:
    """Two datasets with the same videos, of the same times."""
    roots = tmp_path / "here", tmp_path / "on a cluster"
    for root in roots:
        for video in make_folder(root, "hevc.mp4", "av1_g20.mp4", copies=2):
            os.utime(video, ns=(1, 1))
    return roots


@pytest.mark.parametrize("executor", ["slurm", "ray"])
def test_cluster_finds_the_records_that_this_machine_finds(
    reelseek_command: Run, request: pytest.FixtureRequest, tmp_path: Path, executor: str
) -> None:
    if executor == "slurm":
        needs("submitit")
        request.getfixturevalue("slurm")
    needs(executor) if executor == "ray" else None
    here, there = pair_of_datasets(tmp_path)
    build_index(here)
    done = reelseek_command("index", there, "--executor", executor, "--tasks", 2, "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    assert (written["num_files"], written["failures"]) == (4, [])
    assert (written["job"]["num_items"], written["job"]["num_failed"]) == (4, 0)
    assert records(there) == records(here)
    left = {path.name for path in (there / "meta" / "reelseek").iterdir()}
    assert left <= {"index.bin", "index.bin.lock"}


def test_job_is_taken_up_where_it_was_left_and_its_journal_goes_when_the_index_is_there(
    tmp_path: Path,
) -> None:
    make_folder(tmp_path, "hevc.mp4", "text.mp4")
    for _ in range(2):
        report, summary = index_dataset(tmp_path, LocalExecutor(1))
        assert [Path(failure.path).name for failure in report.failures] == ["00000_text.mp4"]
        assert "a text file" in report.failures[0].message
        assert summary is not None
    (tmp_path / "videos" / "00000_text.mp4").unlink()
    report, summary = index_dataset(tmp_path, LocalExecutor(1))
    assert (report.num_files, report.num_dropped, summary) == (1, 0, None)
