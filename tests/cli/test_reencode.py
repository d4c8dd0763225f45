"""``reelseek reencode`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reelseek.care.reencode import MIN_PSNR_DB
from reelseek.cli import _reencode
from tests.cli.conftest import Run
from tests.datasets import makers


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return makers.make_gr00t(tmp_path / "data")


def test_summary_says_sizes_quality_and_where(
    reelseek_command: Run, root: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = reelseek_command("reencode", root, out, "--codec", "h264", "--jobs", 1)
    assert done.returncode == 0, done.stderr
    header, before, after, proof, job, written = done.stdout.splitlines()
    assert header.split()[:2] == ["videos", "bytes"] and before.startswith("before")
    assert "1.9 frames" in after or "1.8 frames" in after
    assert proof.startswith("4 videos, 25 frames: each one checked")
    assert job.startswith("4 items done in ") and "0 were done before" in job
    assert written == f"written: {out}"
    assert done.stderr.splitlines()[-1] == "encoding: 4 of 4"


def test_json_is_one_document_on_stdout(reelseek_command: Run, root: Path, tmp_path: Path) -> None:
    done = reelseek_command("reencode", root, tmp_path / "out", "--copy", "--json", "--jobs", 1)
    document = json.loads(done.stdout)
    assert (document["schema"], document["encoding"]) == ("reelseek.reencode/1", None)
    assert (document["num_frames"], document["failures"]) == (25, [])


def test_failed_video_is_exit_status_1_and_a_line(
    reelseek_command: Run, root: Path, tmp_path: Path
) -> None:
    makers.as_lfs_pointer(makers.v2_video(root, makers.TOP, 1))
    done = reelseek_command("reencode", root, tmp_path / "out", "--codec", "h264", "--jobs", 1)
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert "episode_000001.mp4" in line and "git lfs pull" in line
    assert "unfinished: 1 of 4 videos failed" in done.stdout


def test_plan_ends_with_the_command_to_run(
    reelseek_command: Run, root: Path, tmp_path: Path
) -> None:
    chart = tmp_path / "plan.png"
    done = reelseek_command("reencode", root, "--plan", "--frames", 9, "--reads", 2,
                            "--chart", chart)  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[2].startswith("as it is") and len(lines) == 15
    assert lines[-1].startswith(f"reelseek reencode {root} {root}_fast --codec ")
    assert chart.is_file() or "no chart: " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "give the new dataset's folder"),
        (("out", "--crf", "99"), "av1 takes 0 to 63"),
        (("out", "--size", "big"), "give WIDTHxHEIGHT"),
        (("out", "--copy", "--size", "64x64"), "--size changes nothing with --copy"),
        (("out", "--copy", "--crf", "20"), "--crf changes nothing with --copy"),
        (("out", "--reads", "5"), "--reads is for --plan"),
        (("--plan", "--codec", "h264"), "--codec is for the command that --plan ends with"),
        (("--plan", "--copy"), "--copy is for the command that --plan ends with"),
        (("--plan", "--executor", "slurm"), "--executor is for the command that --plan ends with"),
        (("--plan", "--size", "63x63"), "takes even sizes only"),
        (("--plan", "--chart", "/dev/null/a.png"), "/dev/null can't be made"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(
    reelseek_command: Run, root: Path, arguments: tuple[str, ...], text: str
) -> None:
    done = reelseek_command("reencode", root, *arguments)
    assert done.returncode == 2
    assert text in " ".join(done.stderr.replace("│", " ").split())


def test_names_do_not_command_the_terminal(
    reelseek_command: Run, root: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out\x1b[31m"
    done = reelseek_command("reencode", root, out, "--copy", "--jobs", 1)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"written: {tmp_path}/out\\x1b[31m"
    again = reelseek_command("reencode", root, out, "--copy")
    assert again.returncode == 1
    assert again.stderr.startswith(f"error: {tmp_path}/out\\x1b[31m: it exists already")


def test_floor_is_that_of_the_library() -> None:
    assert _reencode.MIN_PSNR == MIN_PSNR_DB
