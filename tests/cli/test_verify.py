"""``reelseek verify`` as a user runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from reelseek.care.verify import CODES
from reelseek.sample import sample_dataset
from tests.cli.conftest import Run
from tests.conftest import REPOSITORY

TOP = "observation.images.top"
HOSTILE = "cup\x1b[2J\x1b]0;owned\x07\nerror: all is lost \u202e"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the sample."""
    shutil.copytree(sample_dataset(), tmp_path / "data")
    return tmp_path / "data"


def video(root: Path, camera: str = TOP, episode: int = 0) -> Path:
    return root / f"videos/chunk-000/{camera}/episode_{episode:06d}.mp4"


def change_info(root: Path, **values: Any) -> None:
    path = root / "meta/info.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_sound_dataset_is_exit_status_0(reelseek_command: Run, root: Path) -> None:
    done = reelseek_command("verify", root, "--level", "decode", "--jobs", 1)
    assert done.returncode == 0, done.stderr
    where, what, verdict = done.stdout.splitlines()
    assert where == str(root)
    assert what.startswith("2 episodes, 8 files, 1143 frames decoded, in ")
    assert verdict == "The dataset is sound: 0 errors, 0 warnings, 0 notes."
    assert done.stderr.splitlines()[-1] == "verifying: 8 of 8"


def test_many_findings_of_a_kind_are_one_row(reelseek_command: Run, root: Path) -> None:
    for camera in (TOP, "observation.images.left_wrist", "observation.images.right_wrist"):
        video(root, camera).unlink()
    video(root, TOP, 1).write_bytes(b"")
    done = reelseek_command("verify", root, "--jobs", 1)
    assert done.returncode == 1
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("error ")]
    assert [(row[1], row[2]) for row in rows] == [("video-empty", "1"), ("video-missing", "3")]
    assert "video-missing: Copy or download the dataset's videos folder again." in done.stdout
    every = reelseek_command("verify", root, "--jobs", 1, "--all").stdout
    assert len([line for line in every.splitlines() if line.startswith("error ")]) == 4


def test_warnings_count_only_where_strict(reelseek_command: Run, root: Path) -> None:
    change_info(root, total_tasks=9)
    assert reelseek_command("verify", root, "--jobs", 1).returncode == 0
    assert reelseek_command("verify", root, "--jobs", 1, "--strict").returncode == 1
    ignored = reelseek_command("verify", root, "--strict", "--ignore", "info-total-tasks")
    assert ignored.returncode == 0 and "0 warnings" in ignored.stdout


def test_json_is_one_document_on_stdout(reelseek_command: Run, root: Path) -> None:
    video(root).unlink()
    done = reelseek_command("verify", root, "--json", "--jobs", 1)
    document = json.loads(done.stdout)
    assert done.returncode == 1 and document["schema"] == "reelseek.verify/1"
    assert [finding["code"] for finding in document["findings"]] == ["video-missing"]


def test_hostile_names_stay_harmless(reelseek_command: Run, root: Path) -> None:
    tasks = root / "meta/tasks.jsonl"
    lines = [json.loads(line) for line in tasks.read_text().splitlines()]
    tasks.write_text("".join(json.dumps({**line, "task": HOSTILE}) + "\n" for line in lines))
    shutil.copy(video(root), video(root).with_name("a\x1b[31m\n.mp4"))
    change_info(root, splits={HOSTILE: "0:99"})
    done = reelseek_command("verify", root, "--jobs", 1, "--all")
    assert {"\x1b", "\x07", "\u202e"}.isdisjoint(done.stdout + done.stderr)
    assert not any(line.startswith(("error: ", ".mp4")) for line in done.stdout.splitlines())
    assert "task-duplicate" in done.stdout and "\\x1b" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--level", "deep"), "'deep'"), (("--ignore", "typo"), "'typo'")],
)
def test_unknown_choice_is_a_usage_error(
    reelseek_command: Run, root: Path, options: tuple[str, str], said: str
) -> None:
    done = reelseek_command("verify", root, *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_document_shows_the_table_of_findings() -> None:
    text = (REPOSITORY / "docs" / "verify.md").read_text()
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    shown = [(row[0].strip("| `"), row[1], row[2], row[3].removesuffix(" |")) for row in rows]
    assert shown == [
        (code.name, code.severity.value, code.meaning, code.remedy) for code in CODES.values()
    ]
