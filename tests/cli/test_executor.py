"""The options of where to work, which several subcommands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from reelseek.care.jobs import LocalExecutor, RayExecutor, SlurmExecutor
from reelseek.cli._executor import Name, Where
from tests.cli.conftest import Run
from tests.index.tables import make_folder


def test_options_become_the_executor() -> None:
    assert Where(jobs=3).make() == LocalExecutor(3)
    slurm = Where(
        Name.SLURM, partition="gpu", time="1:00", cpus=4, tasks=7,
        sbatch=["mem=8G", "--qos=low", "--exclusive", "no-requeue="],
    ).make()  # fmt: skip
    assert isinstance(slurm, SlurmExecutor)
    assert (slurm.partition, slurm.time, slurm.cpus, slurm.tasks) == ("gpu", "1:00", 4, 7)
    assert slurm.parameters == {
        "mem": "8G", "qos": "low", "exclusive": True, "no-requeue": True,
    }  # fmt: skip
    ray = Where(Name.RAY, ray_address="head:6379").make()
    assert isinstance(ray, RayExecutor) and ray.address == "head:6379"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--executor", "pbs"), "'pbs' is not one of 'local', 'slurm', 'ray'"),
        (("--executor", "slurm", "--sbatch", "=8G"), "give NAME=VALUE such as mem=8G"),
        (("--executor", "slurm", "--sbatch", "job-name=x"), "reelseek sets job-name itself"),
    ],
)
def test_wrong_option_is_a_usage_error(
    reelseek_command: Run, tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    make_folder(tmp_path / "data", "hevc.mp4", "vp9.mp4")
    done = reelseek_command("index", tmp_path / "data", *arguments, COLUMNS="200")
    assert done.returncode == 2
    assert text in done.stderr


def test_machine_without_slurm_says_so(reelseek_command: Run, tmp_path: Path) -> None:
    make_folder(tmp_path / "data", "hevc.mp4", "vp9.mp4")
    done = reelseek_command("index", tmp_path / "data", "--executor", "slurm", PATH="/nowhere")
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "there is no sbatch on this machine" in line or "pip install 'reelseek[slurm]'" in line
