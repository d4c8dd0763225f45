"""Jobs on a real SLURM of two nodes and a real Ray: equal to the local run, whatever is killed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reelseek.care.jobs import LocalExecutor, run_job
from tests.care.jobs.drive import job_of
from tests.clusters import needs_submitit
from tests.patience import PATIENCE
from tests.workers.test_pool import wait_until

pytestmark = pytest.mark.slow

GOOD = [f"good_{number}" for number in range(6)]
Drive = Callable[..., "subprocess.Popen[str]"]
clusters_only = pytest.mark.parametrize("drive", ["slurm", "ray"], indirect=True)
ray_only = pytest.mark.parametrize("drive", ["ray"], indirect=True)
slurm_only = pytest.mark.parametrize("drive", ["slurm"], indirect=True)


@pytest.fixture(params=["local", "slurm", "ray"])
def drive(request: pytest.FixtureRequest, tmp_path: Path) -> Drive:
    """Starts a driver in a process of its own: ``drive(*keys, **arguments of the toy)``."""
    name = request.param
    address = ""
    if name == "slurm":
        needs_submitit()
        request.getfixturevalue("slurm")
    if name == "ray":
        address = request.getfixturevalue("ray_address")
    folder = tmp_path / "a folder"
    folder.mkdir()

    def start(*keys: str, **arguments: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.care.jobs.drive", name, address, str(folder)]
        return subprocess.Popen(
            [*command, json.dumps(arguments), *keys],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


def finished(driver: subprocess.Popen[str]) -> tuple[dict[str, dict[str, Any]], str]:
    """The outcomes by key, each of them once, and what went to stderr."""
    output, errors = driver.communicate(timeout=PATIENCE)
    outcomes = [json.loads(line) for line in output.splitlines()]
    assert driver.returncode == 0, errors
    assert len({outcome["key"] for outcome in outcomes}) == len(outcomes)
    return {outcome["key"]: outcome for outcome in outcomes}, errors


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "a folder" / "log").read_text().split()


def test_results_are_the_local_runs(drive: Drive, tmp_path: Path) -> None:
    outcomes, _errors = finished(drive(*GOOD, "refuses_1", "diesonce_1"))
    assert {key: outcomes[key]["value"] for key in GOOD} == {key: {"tried": 1} for key in GOOD}
    assert outcomes["diesonce_1"]["value"] == {"tried": 2}
    assert outcomes["diesonce_1"]["attempts"] == 2
    assert outcomes["refuses_1"]["error"] == "refuses_1: it is cut short. Copy it again"
    assert sorted(calls(tmp_path)) == sorted([*GOOD, "refuses_1", "diesonce_1", "diesonce_1"])


@slurm_only
def test_slurm_tasks_find_their_modules_where_nothing_is_exported(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_EXPORT", "NONE")
    outcomes, _errors = finished(drive(*GOOD))
    assert {key: outcomes[key]["value"] for key in GOOD} == {key: {"tried": 1} for key in GOOD}


def test_killed_driver_loses_nothing_and_the_next_goes_on(drive: Drive, tmp_path: Path) -> None:
    driver = drive(*GOOD, seconds=0.4)
    assert driver.stdout is not None
    done = [json.loads(driver.stdout.readline())["key"] for _ in range(2)]
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    outcomes, _errors = finished(drive(*GOOD, seconds=0.4))
    assert sorted(outcomes) == GOOD
    assert all(outcomes[key]["attempts"] == 0 for key in done)
    assert all(calls(tmp_path).count(key) == 1 for key in done)


@clusters_only
def test_interrupted_driver_ends_its_tasks(drive: Drive) -> None:
    driver = drive(*GOOD, seconds=0.5)
    assert driver.stdout is not None
    driver.stdout.readline()
    driver.send_signal(signal.SIGINT)
    _output, errors = driver.communicate(timeout=PATIENCE)
    assert driver.returncode != 0
    assert "what it did is kept" in errors or "what they did is kept" in errors
    outcomes, _errors = finished(drive(*GOOD, seconds=0.0))
    assert sorted(outcomes) == GOOD


@slurm_only
def test_tasks_of_a_killed_driver_are_ended_by_a_run_that_works_elsewhere(
    drive: Drive, tmp_path: Path
) -> None:
    driver = drive(*GOOD, seconds=3.0)
    wait_until((tmp_path / "a folder" / "log").exists)
    driver.kill()
    driver.communicate()
    folder = tmp_path / "a folder"
    job = job_of(folder, *GOOD, seconds=3.0)
    assert any(folder.rglob("at-slurm"))
    run = run_job(job, LocalExecutor(2))
    next(run)
    run.close()
    names = ["squeue", "--noheader", "--states=PENDING,RUNNING", "--format=%j"]
    listed = subprocess.run(names, capture_output=True, text=True, check=True).stdout
    assert "reelseek-toy-" not in listed
    assert not any(folder.rglob("at-slurm"))


@slurm_only
def test_node_on_which_tasks_end_at_once_gets_no_more_of_them(drive: Drive, tmp_path: Path) -> None:
    first = shlex.quote(str(tmp_path / "the node that came first"))
    spoilt = (
        f'ln -s "$SLURMD_NODENAME" {first} 2>/dev/null || true; '
        f'if [ "$(readlink {first})" = "$SLURMD_NODENAME" ]; then '
        "echo no such mount >&2; exit 3; fi"
    )
    outcomes, errors = finished(drive(*GOOD, setup=[spoilt]))
    assert {outcome["error"] for outcome in outcomes.values()} == {""}
    assert "no such mount" in errors


@clusters_only
def test_machines_without_the_dataset_are_one_error_and_no_items_failures(
    drive: Drive, tmp_path: Path
) -> None:
    driver = drive(*GOOD, needs=[str(tmp_path / "not mounted")])
    output, errors = driver.communicate(timeout=PATIENCE)
    assert output == ""
    last = errors.splitlines()[-1]
    assert "the tasks end before they have begun with anything" in last
    assert "not mounted: there is nothing of this folder on" in last


@ray_only
def test_death_of_the_process_that_talks_to_ray_is_told(drive: Drive) -> None:
    driver = drive(*GOOD, seconds=2.0)
    children = Path(f"/proc/{driver.pid}/task/{driver.pid}/children")
    assert driver.stdout is not None
    driver.stdout.readline()
    (child,) = map(int, children.read_text().split())
    os.kill(child, signal.SIGKILL)
    _output, errors = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 1
    assert "the process that talks to Ray ended" in errors.splitlines()[-1]


@ray_only
def test_ray_task_that_fits_on_no_node_is_refused(drive: Drive) -> None:
    _output, errors = drive(*GOOD, cpus=9).communicate(timeout=PATIENCE)
    assert "tasks of 9 CPUs fit on no node" in errors and "Give --cpus 4 or less" in errors


@clusters_only
def test_item_at_which_a_task_is_killed_is_done_by_another(drive: Drive) -> None:
    outcomes, _errors = finished(drive("killsonce_1", *GOOD))
    assert outcomes["killsonce_1"]["value"] == {"tried": 2}
    assert {key: outcomes[key]["value"] for key in GOOD} == {key: {"tried": 1} for key in GOOD}


@clusters_only
def test_item_that_kills_each_task_is_given_up_and_takes_nothing_else_along(drive: Drive) -> None:
    outcomes, errors = finished(drive("kills_1", *GOOD))
    assert "tasks died at it" in outcomes["kills_1"]["error"]
    assert {key: outcomes[key]["error"] for key in GOOD} == dict.fromkeys(GOOD, "")
    assert "ended before its work was done" in errors


@slurm_only
def test_slurm_task_whose_time_is_up_goes_on_from_its_journal(drive: Drive, tmp_path: Path) -> None:
    driver = drive(*GOOD, seconds=0.5, tasks=1)
    assert driver.stdout is not None
    driver.stdout.readline()
    # As SLURM does before a task's time is up.
    subprocess.run(["scancel", "--signal=USR2", "--user=root"], check=True)
    outcomes, errors = finished(driver)
    assert len(outcomes) == len(GOOD) - 1
    assert "given to other tasks" not in errors
    assert len(calls(tmp_path)) <= len(GOOD) + 2
    logs = (tmp_path / "a folder").rglob("*_log.out")
    assert any("stopped by SIGUSR2 after" in log.read_text() for log in logs)


@slurm_only
def test_slurm_job_that_is_refused_says_what_sbatch_says(drive: Drive) -> None:
    driver = drive(*GOOD, partition="nowhere")
    _output, errors = driver.communicate(timeout=PATIENCE)
    assert "SLURM doesn't take the job" in errors and "invalid partition" in errors


@slurm_only
@pytest.mark.parametrize("cpus", [1, 4])  # on one node, or on all of them
def test_slurm_tasks_that_cannot_start_are_one_error_with_the_end_of_their_log(
    drive: Drive, cpus: int
) -> None:
    driver = drive(*GOOD, setup=["echo no such module >&2", "exit 3"], cpus=cpus)
    _output, errors = driver.communicate(timeout=PATIENCE)
    last = errors.splitlines()[-1]
    assert "the tasks end before they have begun with anything" in last
    assert "no such module" in last
