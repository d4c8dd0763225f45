"""``reelseek index`` as a user runs it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from reelseek.index import VideoTables, index_tables
from reelseek.index._sidecar_writer import SidecarWriter
from reelseek.index._units import UnitTable
from reelseek.index._video_record import write_record
from tests.cli.conftest import Run
from tests.corpus import clip_path
from tests.index.tables import make_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_folder(tmp_path / "data", "hevc.mp4", "av1_g20.mp4")
    return tmp_path / "data"


def test_summary_says_where_how_many_and_how_large(reelseek_command: Run, root: Path) -> None:
    done = reelseek_command("index", root, "--jobs", 1)
    assert done.returncode == 0, done.stderr
    where, size, what = done.stdout.splitlines()
    assert where == str(root / "meta" / "reelseek" / "index.bin")
    assert size.startswith("2 files, 240 frames, ") and size.endswith(" bytes a frame")
    assert what.startswith("2 files indexed in ") and "0 were up to date" in what
    assert done.stderr.splitlines()[-1] == "indexing: 2 of 2"
    again = reelseek_command("index", root)
    assert "0 files indexed" in again.stdout and "2 were up to date" in again.stdout


def test_json_is_one_document_on_stdout(reelseek_command: Run, root: Path) -> None:
    written = json.loads(reelseek_command("index", root, "--json", "--verify").stdout)
    assert written["schema"] == "reelseek.index/1"
    assert (written["num_files"], written["num_frames"], written["failures"]) == (2, 240, [])
    assert [verdict["differing"] for verdict in written["verified"]] == [[], []]


def test_verified_frames_are_equal(reelseek_command: Run, root: Path) -> None:
    done = reelseek_command("index", root, "--verify")
    assert done.returncode == 0, done.stderr
    assert "240 frames of 2 files" in done.stdout and "all are equal" in done.stdout


def test_wrong_index_is_found_by_verify(reelseek_command: Run, tmp_path: Path) -> None:
    video = tmp_path / "a.mp4"
    video.write_bytes(clip_path("av1_g20.mp4").read_bytes())
    tables, status = index_tables(str(video)), video.stat()
    assert isinstance(tables.units, UnitTable)
    of_frame = tables.units.of_frame.copy()
    of_frame[[30, 31]] = of_frame[[31, 30]]
    wrong = VideoTables(tables.frames, dataclasses.replace(tables.units, of_frame=of_frame))
    path = tmp_path / "a.mp4.reelseek"
    writer = SidecarWriter(path, tmp_path / "partial")
    writer.add(write_record(b"a.mp4", status.st_size, status.st_mtime_ns, wrong), b"a.mp4")
    writer.finish()
    done = reelseek_command("index", video, "--verify")
    assert done.returncode == 1
    assert f"DIFFERS {video}: frames 30, 31" in done.stdout


def test_file_that_cannot_be_indexed_is_exit_status_1(
    reelseek_command: Run, tmp_path: Path
) -> None:
    make_folder(tmp_path / "data", "hevc.mp4", "lfs_pointer.mp4")
    done = reelseek_command("index", tmp_path / "data")
    assert done.returncode == 1
    assert "1 files, 120 frames" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert "git lfs pull" in line


def test_missing_path_is_one_error_line(reelseek_command: Run, tmp_path: Path) -> None:
    done = reelseek_command("index", tmp_path / "nothing")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
