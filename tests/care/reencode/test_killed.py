"""A run that is killed with SIGKILL, and begun again, comes to the same dataset."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reelseek.care.reencode import reencode_dataset
from tests.care.reencode.conftest import AV1, INDEX, Inline, contents
from tests.care.reencode.killed import POINTS
from tests.patience import PATIENCE


@pytest.mark.parametrize("point", POINTS)
def test_resumed_dataset_is_the_same(
    point: str, sources: dict[str, Path], encoded: dict[str, Path], tmp_path: Path, inline: Inline
) -> None:
    root, out = sources["v3.0"], tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-m", "tests.care.reencode.killed", point, str(root), str(out)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert out.exists() == (point.startswith(("after", "deleting")))
    report = reencode_dataset(root, out, AV1, executor=inline)
    assert contents(out) == contents(encoded["v3.0"])
    assert (out / INDEX).is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert len(report.files) == 4
    left = {"encoding": 3, "between files": 2}  # of 4 videos
    assert len(inline.keys) == left.get(point, 0)


def test_killed_command_and_its_workers_go_on(
    sources: dict[str, Path], encoded: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "reelseek", "reencode", str(sources["v3.0"]), str(out),
               "--codec", "av1", "--gop", "2", "--preset", "11", "--jobs", "1"]  # fmt: skip
    run = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    videos = tmp_path / "out.partial/dataset/videos"
    deadline = time.monotonic() + PATIENCE
    while not list(videos.rglob("*.mp4")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert not out.exists()
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert contents(out) == contents(encoded["v3.0"])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
