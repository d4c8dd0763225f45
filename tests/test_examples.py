"""The examples as a user runs them: stopped by a signal, started again, each sample read once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reelseek
from reelseek.sample import sample_dataset
from tests.conftest import REPOSITORY, needs
from tests.patience import PATIENCE

EXAMPLE = REPOSITORY / "examples" / "train_idm.py"
SAMPLES = 381
BATCH = 16


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _needs() -> None:
    needs("torch")
    needs("transformers")


class Training:
    """Runs of the example that share a checkpoint and a record."""

    def __init__(self, folder: Path, processes: int) -> None:
        self.folder = folder
        self.processes = processes
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}

    def start(self, steps: int, *options: object) -> subprocess.Popen[str]:
        """Start it, on so many processes."""
        launch = [sys.executable]
        if self.processes > 1:
            launch += ["-m", "torch.distributed.run", "--standalone"]
            launch += ["--nproc-per-node", str(self.processes)]
        command = [
            *launch, EXAMPLE, sample_dataset(), "--checkpoint", self.folder / "checkpoint",
            "--record", self.folder / "record", "--steps", steps, "--batch-size", BATCH,
            "--cameras", "*.top", "--save-every", 1000, *options,
        ]  # fmt: skip
        return subprocess.Popen(
            list(map(str, command)), env=self.environment, cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self, steps: int, *options: object) -> str:
        """Run it to its end; what it said."""
        said, _none = self.start(steps, *options).communicate(timeout=PATIENCE)
        assert "done after step" in said, said
        return said

    def stop_after(self, steps: int, *options: object) -> str:
        """Start it, and tell it to stop as soon as it has done so many steps; what it said."""
        running = self.start(10_000, *options)
        deadline = time.monotonic() + PATIENCE
        while len(self.steps(0)) < steps and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGTERM)
        said, _none = running.communicate(timeout=PATIENCE)
        assert "stopped after step" in said, said
        return said

    def steps(self, rank: int) -> list[dict[str, Any]]:
        """What a process noted of each step."""
        record = Path(f"{self.folder / 'record'}.{rank}")
        if not record.exists():
            return []
        return [json.loads(line) for line in record.read_text().splitlines() if line.endswith("}")]

    def epoch(self, steps: int) -> Counter[int]:
        """How often each sample was seen in the first steps."""
        return Counter(
            sample
            for rank in range(self.processes)
            for step in self.steps(rank)[:steps]
            for sample in step["samples"]
        )


def test_stopped_and_started_again_it_sees_every_sample_once(
    tmp_path: Path, figure: Callable[[str], None]
) -> None:
    per_epoch = -(-SAMPLES // BATCH)
    training = Training(tmp_path, 1)
    training.stop_after(3, "--workers", 1, "--no-augment")
    stopped = len(training.steps(0))
    assert 3 <= stopped < per_epoch  # in the middle of an epoch
    training.run(per_epoch + 2, "--workers", 0, "--no-augment")
    steps = training.steps(0)
    assert [step["step"] for step in steps] == list(range(1, per_epoch + 3))
    assert training.epoch(per_epoch) == Counter(range(SAMPLES))
    first, last = (sum(s["loss"] for s in part) / 4 for part in (steps[:4], steps[-4:]))
    figure(
        f"train_idm: stopped after {stopped} of {per_epoch} steps, resumed, {SAMPLES} samples once "
        f"each; loss {first:.2f} to {last:.2f}"
    )
    assert last < 0.8 * first


def test_a_resumed_run_is_the_run_that_was_not_stopped(tmp_path: Path) -> None:
    whole, parts = (Training(tmp_path / name, 1) for name in ("whole", "parts"))
    for training, ends in ((whole, [4]), (parts, [2, 4])):
        training.folder.mkdir()
        for end in ends:
            training.run(end, "--workers", 0, "--batch-size", 2)
    assert whole.steps(0) == parts.steps(0)


def test_two_processes_stop_together_and_share_an_epoch(
    tmp_path: Path, figure: Callable[[str], None]
) -> None:
    training = Training(tmp_path, 2)
    per_epoch = -(-(SAMPLES // 2) // BATCH)
    training.stop_after(3, "--workers", 1, "--no-augment")
    stopped = [len(training.steps(rank)) for rank in (0, 1)]
    assert stopped[0] == stopped[1] < per_epoch
    training.run(per_epoch, "--workers", 1, "--no-augment")
    seen = training.epoch(per_epoch)
    assert set(seen.values()) == {1}  # no sample twice
    assert len(seen) == SAMPLES - SAMPLES % 2  # what doesn't divide by two is left out
    figure(
        f"train_idm on 2 processes: stopped after {stopped[0]} of {per_epoch} steps, resumed, "
        f"{len(seen)} samples once each"
    )


def test_the_sample_dataset_has_as_many_samples() -> None:
    assert len(reelseek.open_dataset(sample_dataset(), output="numpy")) == SAMPLES
