"""What a node is looked at for, and the one line that it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from reelseek.launch import _preflight
from reelseek.launch._preflight import preflight
from reelseek.sample import sample_dataset
from tests.cli.conftest import Run
from tests.conftest import needs


@pytest.fixture(autouse=True)
def _is_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "node17")


def test_node_that_can_read_the_dataset_is_well() -> None:
    is_well, line = preflight(str(sample_dataset()), torchcodec=False)
    assert is_well
    assert line.startswith("reelseek preflight: node17: ok, ")


def test_dataset_that_the_node_does_not_see_is_named(tmp_path: Path) -> None:
    is_well, line = preflight(str(tmp_path / "a\nb"), torchcodec=False)
    assert not is_well
    assert line.startswith(f"reelseek preflight: node17: FAILED: {tmp_path}/a\\nb: ")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("print(0, None)", "torch was built without CUDA, and 8 GPUs were asked for"),
        ("print(7, 12.6)", "torch sees 7 of 8 GPUs (CUDA_VISIBLE_DEVICES: 0,1). Run there: "),
        ("raise SystemExit('no driver')", "torch can't be asked for GPUs: no driver"),
        ("print(8, 12.6)", ""),
    ],
)
def test_gpus_that_torch_does_not_see_are_counted(
    answer: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_preflight, "COUNT_GPUS", answer)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    is_well, line = preflight(gpus=8, torchcodec=False)
    assert is_well is not bool(said)
    assert said in line


def test_torch_is_asked_in_a_process_of_its_own() -> None:
    needs("torch")
    import torch

    is_well, line = preflight(gpus=1000, torchcodec=False)
    assert not is_well
    assert ("torch sees" if torch.version.cuda else "built without CUDA") in line


def test_export_that_was_lost_on_the_way_is_the_cause(reelseek_command: Run) -> None:
    needs("torchcodec")
    is_well_as_it_is = reelseek_command("doctor", "--no-prove").returncode == 0
    done = reelseek_command("slurm", "preflight", SLURM_JOB_ID="3", SLURM_EXPORT_ENV="NONE")
    (line,) = done.stdout.splitlines()
    if is_well_as_it_is:  # a machine with an FFmpeg of its own
        assert line.startswith("reelseek preflight: node17: ok, ")
        return
    assert done.returncode == 1
    assert line.startswith("reelseek preflight: node17: FAILED: the export did not reach it: ")
    assert "submitted with --export=NONE" in line
    assert "Run: srun --export=ALL " in line
