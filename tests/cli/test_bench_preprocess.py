"""``reelseek bench preprocess`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

from reelseek.bench._preprocess_ways import FAST, OURS, OURS_UINT8, SLOW, SLOW_PIL
from reelseek.sample import sample_dataset
from tests.cli.conftest import Run
from tests.conftest import needs

NAMES = {SLOW_PIL, SLOW, FAST, OURS, OURS_UINT8}


def test_the_command_prints_a_table_and_writes_the_document(
    reelseek_command: Run, tmp_path: Path
) -> None:
    needs("torch")
    quick = ("--frames", 2, "--rounds", 1, "--out", tmp_path)
    done = reelseek_command("bench", "preprocess", sample_dataset(), *quick)
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "bench_preprocess.json").read_text())
    assert written["schema"] == "reelseek.bench.preprocess/1"
    assert {way["name"] for way in written["ways"]} | {
        a["name"] for a in written["absent"]
    } == NAMES
    assert "frames/s" in done.stdout and OURS in done.stdout
