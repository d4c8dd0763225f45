"""Generated scripts in a real SLURM of two nodes: training, a node that fails, a requeue."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reelseek.sample import sample_dataset
from tests.conftest import REPOSITORY, needs
from tests.patience import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("slurm")]
LOGS = "my 'logs' \"x\" 100%x"
"""sbatch, srun and the shell each read this name in their own way."""
PYTHON = """#!/bin/sh
if [ "${{SLURMD_NODENAME:-}}" = node2 ] && [ -e '{folder}/node2_is_bad' ]; then
    echo "{python}: No module named reelseek" >&2
    exit 1
fi
export PYTHONPATH='{source}' PYTHONWARNINGS=ignore OMP_NUM_THREADS=1
exec '{python}' "$@"
"""
TORCHRUN = ("python", "-m", "torch.distributed.run", "--nproc-per-node", "1")
TRAIN = (
    *TORCHRUN, REPOSITORY / "examples" / "train_idm.py", sample_dataset(), "--cameras", "*.top",
    "--batch-size", "1", "--workers", "0", "--log-every", "1", "--checkpoint", "checkpoint",
)  # fmt: skip
COUNT = """
import signal, time
from pathlib import Path
import torch
import torch.distributed as dist

is_told = []
signal.signal(signal.SIGTERM, lambda *_: is_told.append(True))
dist.init_process_group("gloo")
saved = Path("saved")
step = int(saved.read_text()) if saved.exists() else 0
stops = torch.zeros(1)
while not stops:
    step += 1
    time.sleep(0.1)
    if dist.get_rank() == 0:
        print(f"step {step}: counted", flush=True)
    stops += len(is_told)
    dist.all_reduce(stops)
if dist.get_rank() == 0:
    saved.write_text(str(step))
    print(f"stopped after step {step}", flush=True)
dist.destroy_process_group()
"""
"""What a training program does here, without what takes seconds to import: it counts steps until it
is told to save, and goes on from there. That the example does so, other tests show."""


class Jobs:
    """Jobs whose environment, logs and checkpoints are in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        python = folder / "env" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(
            PYTHON.format(folder=folder, python=sys.executable, source=REPOSITORY / "src")
        )
        python.chmod(0o755)

    def submit(self, *arguments: object) -> str:
        """Make a script for two nodes without GPUs, and submit it; the job's id."""
        command = [
            sys.executable, "-m", "reelseek", "slurm", "train", "--submit", "--gpus", "0",
            "--nodes", "2", "--env", self.folder / "env", "--logs", LOGS, "--name", "job",
            *arguments,
        ]  # fmt: skip
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def log(self, job: str, which: str) -> str:
        path = self.folder / LOGS / f"job-{job}{which}"
        return path.read_text() if path.exists() else ""

    def said(self, job: str) -> str:
        """What the tasks have said; which of them is rank 0 is torchrun's choice."""
        return self.log(job, "-0.log") + self.log(job, "-1.log")

    def logs(self, job: str) -> str:
        """All that the job has said, for a failed test's message."""
        return "".join(self.log(job, which) for which in (".out", ".err", "-0.log", "-1.log"))

    def wait_until(self, job: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline, self.logs(job)
            time.sleep(0.1)

    def wait_for_end(self, job: str) -> str:
        """Its state and exit status, such as ``FAILED 1:0``."""
        ended = re.compile(r"JobState=(COMPLETED|FAILED|CANCELLED).*ExitCode=(\S+)", re.DOTALL)
        self.wait_until(job, lambda: ended.search(shown(job)) is not None)
        found = ended.search(shown(job))
        assert found is not None
        return f"{found[1]} {found[2]}"


def shown(job: str) -> str:
    command = ["scontrol", "show", "job", job]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def steps(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^step (\d+):", text, re.MULTILINE)]


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path)


def test_node_that_can_not_train_ends_the_job_at_once_with_one_line(
    jobs: Jobs, figure: Callable[[str], None]
) -> None:
    (jobs.folder / "node2_is_bad").touch()
    begin = time.monotonic()
    job = jobs.submit("--no-torchcodec", "--", "touch", "started")
    assert jobs.wait_for_end(job) == "FAILED 1:0"
    figure(f"slurm train: a bad node ended the job after {time.monotonic() - begin:.1f} s")
    python = jobs.folder / "env" / "bin" / "python"
    said = [line for line in jobs.log(job, ".err").splitlines() if not line.startswith("slurm")]
    assert said == [
        "reelseek preflight: node2: FAILED: no reelseek with a preflight is installed. Run: "
        f"{python} -m pip install -U reelseek"
    ], jobs.logs(job)
    assert not (jobs.folder / "started").exists()


def test_each_task_writes_its_log_and_the_jobs_exit_status_is_the_commands(jobs: Jobs) -> None:
    say = 'echo "$RANK of $WORLD_SIZE on $SLURMD_NODENAME"; exit 7'
    job = jobs.submit("--gpus", "0", "--preflight", "0", "--no-torchcodec", "--", "sh", "-c", say)
    assert jobs.wait_for_end(job) == "FAILED 7:0"
    assert " on node1\n" in jobs.log(job, "-0.log")
    assert " on node2\n" in jobs.log(job, "-1.log")
    assert f"What each task said: {LOGS}/job-{job}-*.log" in jobs.log(job, ".err")


def test_training_on_two_nodes_under_export_none_is_checked_and_runs_to_its_end(
    jobs: Jobs,
) -> None:
    needs("torchcodec")
    needs("transformers")
    job = jobs.submit(
        "--dataset", sample_dataset(), "--sbatch=--export=NONE", "--", *TRAIN, "--steps", 2
    )
    assert jobs.wait_for_end(job) == "COMPLETED 0:0", jobs.logs(job)
    assert "2 of 2 nodes can train" in jobs.log(job, ".out")
    assert steps(jobs.said(job)) == [1, 2]
    assert "done after step 2" in jobs.said(job)
    assert (jobs.folder / "checkpoint" / "last.pt").exists()


def test_program_under_export_all_is_told_to_save_queued_again_and_goes_on(
    jobs: Jobs, figure: Callable[[str], None]
) -> None:
    needs("torch")
    (jobs.folder / "count.py").write_text(COUNT)
    job = jobs.submit(
        "--preflight", "0", "--no-torchcodec", "--requeues", "1", "--sbatch=--export=ALL",
        "--", *TORCHRUN, "count.py",
    )  # fmt: skip
    jobs.wait_until(job, lambda: len(steps(jobs.said(job))) >= 2)
    subprocess.run(["scancel", "--batch", "--signal=USR1", job], check=True)
    jobs.wait_until(job, lambda: "Restarts=1" in shown(job))
    stopped = re.search(r"stopped after step (\d+)", jobs.said(job))
    assert stopped is not None, jobs.logs(job)
    before = len(steps(jobs.said(job)))
    assert before == int(stopped[1])
    jobs.wait_until(job, lambda: len(steps(jobs.said(job))) > before)
    assert sorted(steps(jobs.said(job)))[before] == before + 1
    subprocess.run(["scancel", job], check=True)
    jobs.wait_for_end(job)
    figure(
        f"slurm train: two nodes, told by USR1, saved after step {before}, queued again, went on "
        f"with step {before + 1}"
    )
