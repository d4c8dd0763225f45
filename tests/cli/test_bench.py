"""``reelseek bench`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

from reelseek.sample import sample_dataset
from tests.cli.conftest import Run

QUICK = ("--frames", "2", "--backends", "pyav,pyav (typical)")


def test_it_writes_json_and_a_chart_and_prints_an_uncut_table(
    reelseek_command: Run, tmp_path: Path
) -> None:
    done = reelseek_command("bench", "seek", sample_dataset(), "--out", tmp_path, *QUICK)
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "bench_seek.json").read_text())
    assert written["schema"] == "reelseek.bench.seek/2"
    assert (tmp_path / "bench_seek.png").stat().st_size > 10_000
    assert "pyav (typical)" in done.stdout and "1.0x" in done.stdout
    assert "…" not in done.stdout
    assert str(tmp_path) in done.stderr


def test_json_is_the_document_that_it_writes(reelseek_command: Run, tmp_path: Path) -> None:
    arguments = (sample_dataset(), "--json", "--out", tmp_path, "--offsets", "0,4,8", *QUICK)
    done = reelseek_command("bench", "seek", *arguments)
    assert json.loads(done.stdout) == json.loads((tmp_path / "bench_seek.json").read_text())
    assert json.loads(done.stdout)["settings"]["offsets"] == [0, 4, 8]


def test_offsets_that_are_no_numbers_are_a_usage_error(reelseek_command: Run) -> None:
    done = reelseek_command("bench", "seek", sample_dataset(), "--offsets", "near,far")
    assert done.returncode == 2


def test_index_writes_a_document_and_leaves_the_dataset_alone(
    reelseek_command: Run, tmp_path: Path
) -> None:
    before = sorted(Path(sample_dataset()).rglob("*"))
    done = reelseek_command("bench", "index", sample_dataset(), "--files", 3, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "bench_index.json").read_text())
    assert written["schema"] == "reelseek.bench.index/2"
    assert written["num_files"] == 3 and written["codecs"] == ["av1"]
    assert [builder["name"] for builder in written["builders"]] == ["reelseek", "torchcodec"]
    assert "files/s" in done.stdout and "bytes a frame" in done.stdout
    assert sorted(Path(sample_dataset()).rglob("*")) == before


def test_index_of_a_folder_that_is_no_dataset_is_exit_status_1(
    reelseek_command: Run, tmp_path: Path
) -> None:
    done = reelseek_command("bench", "index", tmp_path, "--out", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
