"""``reelseek probe`` as a user runs it."""

from __future__ import annotations

import json

import pytest

import reelseek
from tests.cli.conftest import Run
from tests.corpus import clip_path

pytestmark = pytest.mark.slow


def test_av1_is_readable_and_every_backend_has_a_row(reelseek_command: Run) -> None:
    done = reelseek_command("probe", clip_path("av1_g20.mp4"))
    assert done.returncode == 0, done.stderr
    for name in reelseek.backend_names():
        assert f"\n{name}" in done.stdout
    assert "same frames" in done.stdout


def test_piped_output_is_not_cut(reelseek_command: Run) -> None:
    path = clip_path("trimmed.mp4")
    lines = reelseek_command("probe", "--backends", "pyav,decord", path).stdout.splitlines()
    assert lines[0] == str(path)
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) > 60  # COLUMNS says 60, and no line is folded to it
    assert not any(line.endswith(" ") for line in lines)


def test_json_is_one_document_on_stdout(reelseek_command: Run) -> None:
    done = reelseek_command("probe", "--json", "--backends", "pyav", clip_path("b_frames.mp4"))
    written = json.loads(done.stdout)
    assert written["schema"] == "reelseek.probe/1"
    (file,) = written["files"]
    assert [backend["name"] for backend in file["backends"]] == ["pyav"]


def test_no_video_is_one_error_line_and_exit_status_1(reelseek_command: Run) -> None:
    path = clip_path("lfs_pointer.mp4")
    done = reelseek_command("probe", path)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "git lfs pull" in line and str(path) in line


def test_one_bad_file_among_good_ones_is_exit_status_1(reelseek_command: Run) -> None:
    done = reelseek_command(
        "probe", "--backends", "pyav", clip_path("one_frame.mp4"), clip_path("empty.mp4")
    )
    assert done.returncode == 1
    assert "same frames" in done.stdout
    assert "an empty file" in done.stderr
