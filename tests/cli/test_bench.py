"""``reelseek bench seek`` as a user runs it."""

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
    assert written["schema"] == "reelseek.bench.seek/1"
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
