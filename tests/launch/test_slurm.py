"""What ``--slurm-check`` says of a job, by the variables that a process of it was started with."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reelseek.launch import check_slurm
from reelseek.native._facts import Facts, collect_facts
from reelseek.native._remedy import Remedy, RemedyKind
from tests.cli.conftest import Run
from tests.native import chains
from tests.native.chains import Environment

JOB = {"SLURM_JOB_ID": "17", "SLURMD_NODENAME": "node17"}
NOTHING = Remedy(RemedyKind.NOTHING_NEEDED)
MISSING = Remedy(RemedyKind.SEARCH_PATH, "export LD_LIBRARY_PATH=/npp", folders=("/npp",))


@pytest.fixture(scope="module")
def facts() -> Facts:
    return replace(collect_facts(), ld_library_path=())


def test_process_outside_a_job_is_named(facts: Facts) -> None:
    check = check_slurm(facts, NOTHING, {})
    assert not check.is_well
    assert "no SLURM job" in check.verdict
    assert check.command.startswith("srun --export=ALL ")


def test_job_that_has_what_it_needs_is_well(facts: Facts) -> None:
    check = check_slurm(facts, NOTHING, {**JOB, "LD_LIBRARY_PATH": "/npp"})
    assert check.is_well
    assert check.verdict.startswith("job 17 on node17: ")


@pytest.mark.parametrize("export", ["NONE", "NIL", "PATH,HOME"])
def test_export_that_a_list_without_all_kept_back_is_named_with_its_mend(
    facts: Facts, export: str
) -> None:
    check = check_slurm(facts, MISSING, {**JOB, "SLURM_EXPORT_ENV": export})
    assert not check.is_well
    assert f"--export={export}" in check.verdict
    assert "/npp is not on LD_LIBRARY_PATH" in check.verdict
    assert check.command.startswith("srun --export=ALL")


def test_export_that_the_script_lacks_is_named_with_the_line(facts: Facts) -> None:
    for variables in (JOB, {**JOB, "SLURM_EXPORT_ENV": "ALL,FOO=1"}):
        check = check_slurm(facts, MISSING, variables)
        assert not check.is_well
        assert "did not reach it" in check.verdict
        assert check.command == "export LD_LIBRARY_PATH=/npp"


def test_folder_that_arrived_behind_others_is_not_called_lost(facts: Facts) -> None:
    behind = replace(facts, ld_library_path=("/old", "/npp"))
    for export in ("", "NONE"):
        check = check_slurm(behind, MISSING, {**JOB, "SLURM_EXPORT_ENV": export})
        assert not check.is_well
        assert check.verdict == (
            "job 17 on node17: /npp is on LD_LIBRARY_PATH, and has to stand first on it"
        )
        assert check.command == "export LD_LIBRARY_PATH=/npp"


def test_only_the_folders_that_are_missing_are_called_lost(facts: Facts) -> None:
    some = replace(facts, ld_library_path=("/lib",))
    both = replace(MISSING, folders=("/lib", "/npp"))
    verdict = check_slurm(some, both, JOB).verdict
    assert verdict.endswith("the export did not reach it: /npp is not on LD_LIBRARY_PATH")


@pytest.mark.parametrize(
    "remedy", [Remedy(RemedyKind.INSTALL, "pip install av"), Remedy(RemedyKind.UNKNOWN)]
)
def test_job_that_no_export_mends_is_not_well(facts: Facts, remedy: Remedy) -> None:
    check = check_slurm(facts, remedy, JOB)
    assert not check.is_well
    assert "no export mends this environment" in check.verdict
    assert check.command == remedy.command


def test_doctor_names_the_environments_fault_before_the_jobs(
    libraries: Path, tmp_path: Path, reelseek_command: Run
) -> None:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(libraries, tmp_path / "env", python, torch_is_c=True)
    done = reelseek_command("doctor", "--python", made.python, "--slurm-check", **JOB)
    assert done.returncode == 1
    verdict, command, job = done.stdout.splitlines()[:3]
    assert verdict.startswith("NVIDIA's libnppicc.so.12 is not found")
    assert command.endswith("pip install nvidia-npp-cu12")
    assert "no export mends" in job


def test_doctor_reports_the_job(environment: Environment, reelseek_command: Run) -> None:
    arguments = ("doctor", "--python", environment.python, "--no-prove", "--slurm-check")
    lost = reelseek_command(*arguments, SLURM_EXPORT_ENV="NONE", **JOB)
    assert lost.returncode == 1
    verdict, command = lost.stdout.splitlines()[:2]
    assert verdict.startswith("job 17 on node17: the export did not reach it: ")
    assert command.startswith("run: srun --export=ALL")
    arrived = reelseek_command(*arguments, LD_LIBRARY_PATH=str(environment.npp), **JOB)
    assert arrived.returncode == 0
    assert "job 17 on node17: nothing more has to be exported" in arrived.stdout
