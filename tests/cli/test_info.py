"""What ``reelseek info`` says of a dataset's index."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import reelseek
from reelseek.cli._info import rendered
from reelseek.datasets import summarise
from reelseek.index import build_index
from reelseek.sample import sample_dataset


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REELSEEK_CACHE", str(tmp_path / "cache"))
    shutil.copytree(sample_dataset(), tmp_path / "my data")
    return tmp_path / "my data"


def index_line(root: Path) -> str:
    """The line about the index."""
    lines = map(str, rendered(summarise(reelseek.open_dataset(root, output="numpy"))))
    (line,) = [line for line in lines if line.startswith("Index: ")]
    return line


def test_dataset_without_an_index_gets_the_command_that_makes_it(root: Path) -> None:
    line = index_line(root)
    assert line.startswith("Index: none, so that each video is indexed at its first read.")
    assert line.endswith(f"reelseek index '{root}'")


def test_index_is_named_with_the_videos_that_it_has(root: Path) -> None:
    report = build_index(root, jobs=1)
    line = index_line(root)
    assert line.startswith("Index: 6 of 6 videos, ") and line.endswith(report.path)


def test_changed_videos_are_not_counted(root: Path) -> None:
    build_index(root, jobs=1)
    changed = next(root.rglob("*.mp4"))
    os.utime(changed, ns=(0, changed.stat().st_mtime_ns + 1))
    line = index_line(root)
    assert "Index: 5 of 6 videos, " in line and "new or changed" in line
    assert line.endswith(f"reelseek index '{root}'")


def test_index_that_cannot_be_used_says_why(root: Path) -> None:
    Path(build_index(root, jobs=1).path).write_bytes(b"no index")
    line = index_line(root)
    assert line.startswith("Index: not used: ") and "Build it anew with `reelseek index`" in line
