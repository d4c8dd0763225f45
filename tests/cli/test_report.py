"""``reelseek report`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.conftest import REPOSITORY, needs
from tests.datasets import makers

SAMPLE = REPOSITORY / "sample" / "aloha3cam"


def needs_all() -> None:
    for module in ("jinja2", "matplotlib", "PIL"):
        needs(module)


def test_a_sound_dataset_is_exit_status_0(tmp_path: Path, reelseek_command: Run) -> None:
    needs_all()
    root = makers.make_v21(tmp_path / "sound", makers.Spec(lengths=(6,), cameras=(makers.TOP,)))
    out = tmp_path / "new" / "page.html"
    done = reelseek_command("report", root, "-o", out)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{out}: ")
    assert second.startswith("0 errors, ")
    assert "verifying" in done.stderr


def test_a_broken_dataset_is_exit_status_1_with_a_page(
    tmp_path: Path, reelseek_command: Run
) -> None:
    needs_all()
    root = makers.make_v21(tmp_path / "broken", makers.Spec(lengths=(6, 6), cameras=(makers.TOP,)))
    makers.v2_video(root, makers.TOP, 1).unlink()
    out = tmp_path / "page.html"
    done = reelseek_command("report", root, "-o", out, "--json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "reelseek.report/1"
    assert document["page"] == str(out)
    assert document["findings"]["error"] >= 1
    assert not document["is_sound"]
    assert document["faults"] == {}
    assert out.stat().st_size == document["num_bytes"]


def test_no_dataset_is_one_line(tmp_path: Path, reelseek_command: Run) -> None:
    needs_all()
    done = reelseek_command("report", tmp_path / "nothing", "-o", tmp_path / "page.html")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()


def test_a_folder_is_no_page(tmp_path: Path, reelseek_command: Run) -> None:
    done = reelseek_command("report", SAMPLE, "-o", tmp_path)
    assert done.returncode == 2


def test_a_place_that_cannot_be_written_is_said_at_once(
    tmp_path: Path, reelseek_command: Run
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = reelseek_command("report", SAMPLE, "-o", file / "page.html")
    assert done.returncode == 2
    assert "verifying" not in done.stderr
