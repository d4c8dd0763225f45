"""The script of ``reelseek slurm train``: its text, and what it does under stand-ins for SLURM."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reelseek.errors import LaunchError
from reelseek.launch._batch_script import batch_script
from reelseek.launch._train import submit, train_script, write_script
from reelseek.launch._train_job import TrainJob, default_name
from reelseek.launch._words import quoted
from tests.cli.conftest import Run
from tests.conftest import skip_without
from tests.launch.conftest import HARD_NAME
from tests.launch.jobs import fake_slurm, many_jobs, run_script
from tests.native.chains import Environment

GOLDEN = Path(__file__).parent / "golden"
NOTHING = "# nothing to set: torchcodec loads\n"
ONE_GPU = TrainJob(("python", "train.py", "--batch-size", "4"), "", gpus=1, cpus=16, time="1-0")
EIGHT_GPUS = TrainJob(("torchrun", "train_idm.py", "/data/my set"), "", name="idm", gpus=8)


def in_environment(job: TrainJob, environment: Environment, **changes: object) -> TrainJob:
    return replace(job, prefix=str(environment.prefix), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("job", "name"), [(ONE_GPU, "one_gpu"), (EIGHT_GPUS, "eight_gpus")])
def test_the_reports_two_patterns(job: TrainJob, name: str, environment: Environment) -> None:
    text = train_script(in_environment(job, environment))
    assert "{}.{}".format(*sys.version_info[:2]) not in text  # found when it runs
    shown = text.replace(quoted(str(environment.prefix)), "@ENV@")
    assert shown == (GOLDEN / f"{name}.sh").read_text()


@pytest.mark.parametrize("job", [ONE_GPU, EIGHT_GPUS], ids=["one", "eight"])
def test_programs_start_under_the_environments_lib_its_nvidia_folders_and_the_old_value(
    job: TrainJob, environment: Environment, tmp_path: Path
) -> None:
    says = in_environment(job, environment, command=("printenv", "LD_LIBRARY_PATH", "PATH"))
    variables = fake_slurm(tmp_path)
    done = run_script(
        train_script(in_environment(says, environment, preflight_seconds=0)),
        tmp_path, {**variables, "LD_LIBRARY_PATH": "/old"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    libraries, path = done.stdout.splitlines()
    assert libraries == f"{environment.prefix}/lib:{environment.npp}:/old"
    assert path == f"{environment.prefix}/bin:{variables['PATH']}"


def test_what_no_search_path_mends_makes_no_script(tmp_path: Path, reelseek_command: Run) -> None:
    done = reelseek_command("slurm", "train", "--env", tmp_path, "--", "python", "train.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no bin/python in this folder" in done.stderr


def test_words_arrive_as_they_are(tmp_path: Path) -> None:
    words = (
        "it's",
        "$HOME",
        "`x`",
        'a "b"',
        "~/c",
        "a=b,c",
        "*",
        "\\",
        "",
        "line\nbreak",
        HARD_NAME,
    )
    job = TrainJob(
        ("printf", "%s|", *words), f"/{HARD_NAME}", gpus=0, preflight_seconds=0,
        logs="a 'b' $c", dataset="/$d",
    )  # fmt: skip
    done = run_script(batch_script(job, NOTHING), tmp_path, fake_slurm(tmp_path))
    assert (done.returncode, done.stdout) == (0, "|".join(words) + "|"), done.stderr
    assert (tmp_path / "a 'b' $c").is_dir()


def test_exit_status_of_the_command_is_the_jobs(tmp_path: Path) -> None:
    job = TrainJob(("sh", "-c", "exit 42"), "/env", gpus=0, preflight_seconds=0)
    done = run_script(batch_script(job, NOTHING), tmp_path, fake_slurm(tmp_path))
    assert done.returncode == 42
    assert "srun ended with status 42" in done.stderr
    assert "./train-20017-*.log" in done.stderr


def test_srun_always_exports_all(tmp_path: Path) -> None:
    job = TrainJob(("true",), "/env", gpus=0, cpus=8)
    variables = fake_slurm(tmp_path)
    run_script(batch_script(job, NOTHING), tmp_path, variables)
    calls = Path(variables["FAKE_LOG"]).read_text().split("srun ")[1:]
    assert calls
    assert all(call.startswith("--export=ALL ") for call in calls)


def test_nodes_meet_at_the_first_ones_port_of_the_job(tmp_path: Path) -> None:
    job = TrainJob(("torchrun", "train.py"), "/env", gpus=8, nodes=2, preflight_seconds=0)
    variables = {**fake_slurm(tmp_path, "node1 node2"), "SLURM_RESTART_COUNT": "2"}
    torchrun = tmp_path / "fakes" / "torchrun"
    torchrun.write_text('#!/bin/sh\necho "$@" $MASTER_ADDR $MASTER_PORT\n')
    torchrun.chmod(0o755)
    done = run_script(batch_script(job, NOTHING), tmp_path, variables)
    assert done.stdout.splitlines()[0] == (
        "--nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=node1:10017 "
        "--rdzv-id=20017-2 train.py node1 10017"
    ), done.stderr


def test_a_task_for_each_gpu_knows_its_rank(tmp_path: Path) -> None:
    say = 'echo "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT $0"'
    job = TrainJob(
        ("sh", "-c", say, "a b"), "/env", gpus=4, tasks="gpu", cpus=32, preflight_seconds=0
    )
    text = batch_script(job, NOTHING)
    assert (
        "#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4\n#SBATCH --cpus-per-task=8" in text
    )
    done = run_script(text, tmp_path, fake_slurm(tmp_path))
    assert done.stdout == "3 1 4 node1 10017 a b\n", done.stderr


def test_job_that_was_started_again_too_often_is_given_up(tmp_path: Path) -> None:
    job = TrainJob(("true",), "/env", gpus=0, requeues=2, preflight_seconds=0)
    variables = fake_slurm(tmp_path)
    text = batch_script(job, NOTHING)
    assert run_script(text, tmp_path, {**variables, "SLURM_RESTART_COUNT": "2"}).returncode == 0
    done = run_script(text, tmp_path, {**variables, "SLURM_RESTART_COUNT": "3"})
    assert done.returncode == 1
    assert "was started again 3 times, 2 are allowed" in done.stderr


def test_environment_without_reelseek_is_named_in_one_line(
    environment: Environment, tmp_path: Path
) -> None:
    job = in_environment(TrainJob(("true",), "", gpus=0), environment)
    done = run_script(train_script(job), tmp_path, fake_slurm(tmp_path, "node1 node2"))
    assert done.returncode == 1
    assert done.stderr == (
        "reelseek preflight: node1: FAILED: no reelseek with a preflight is installed. Run: "
        f"{environment.python} -m pip install -U reelseek\n"
    )


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("exit 3", "node2: FAILED: @ -m reelseek ends with status 3: "),
        ("echo a; echo 'its last word'; exit 1", "ends with status 1: its last word"),
        ("echo 'reelseek preflight: node2: FAILED: bad'; exit 1", "node2: FAILED: bad"),
        ("sleep 20", "reelseek preflight: node2: FAILED: no answer within 1 s"),
    ],
)
def test_node_that_fails_is_named_with_the_cause(tmp_path: Path, python: str, said: str) -> None:
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/bash\n[ "$SLURMD_NODENAME" != node1 ] || { echo "reelseek preflight: node1: ok"; '
        f"exit; }}\n{python}\n"
    )
    program.chmod(0o755)
    seconds = 1 if "sleep" in python else 30
    job = TrainJob(("touch", "started"), str(tmp_path), gpus=0, preflight_seconds=seconds)
    variables = fake_slurm(tmp_path, "node1 node2")
    done = run_script(batch_script(job, NOTHING), tmp_path, variables)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert said.replace("@", str(program)) in line
    assert not (tmp_path / "started").exists()


def test_all_scripts_pass_shellcheck(tmp_path: Path, figure: Callable[[str], None]) -> None:
    if shutil.which("shellcheck") is None:
        skip_without("shellcheck", "shellcheck isn't installed")
    exports = f"reelseek_env='/it'\"'\"'s $x'\nexport LD_LIBRARY_PATH=\"$reelseek_env\"{'/lib'}\n"
    paths = []
    for number, job in enumerate(many_jobs("/envs/it's a $b", 48)):
        paths.append(tmp_path / f"{number}.sh")
        paths[-1].write_text(batch_script(job, exports if number % 2 else NOTHING))
    done = subprocess.run(["shellcheck", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    figure(f"slurm train: {len(paths)} scripts of different jobs pass shellcheck")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"nodes": 0}, "nodes is 0, and has to be 1 or more"),
        ({"name": "a b"}, "a job can't be called"),
        ({"time": "1:00\n#SBATCH --x"}, "time can't be"),
        ({"logs": "a\\b"}, "logs can't go to"),
        ({"more": ("qos",)}, "is no option of sbatch"),
        ({"tasks": "gpu", "gpus": 8, "cpus": 12}, "12 CPUs can't be shared evenly by 8 tasks"),
        ({"tasks": "gpu", "gpus": 0}, "no GPU to start a task for"),
        ({"command": ()}, "there is no command"),
    ],
)
def test_what_sbatch_would_misread_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(LaunchError, match=said):
        TrainJob(**{"command": ("true",), "prefix": "/env", **options})  # type: ignore[arg-type]


def test_torchrun_is_not_started_for_each_gpu() -> None:
    job = TrainJob(("torchrun", "train.py"), "/env", gpus=8, tasks="gpu")
    with pytest.raises(LaunchError, match="torchrun starts a process for each GPU itself"):
        batch_script(job, NOTHING)


@pytest.mark.parametrize(
    ("command", "name"),
    [("torchrun a/train_idm.py --x", "train_idm"), ("./run me", "run"), ("$%", "train")],
)
def test_job_is_named_after_its_script(command: str, name: str) -> None:
    assert default_name(tuple(command.split())) == name


def test_submitting_makes_the_folder_for_logs_and_gives_the_jobs_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = fake_slurm(tmp_path)
    for name in ("PATH", "FAKE_LOG"):
        monkeypatch.setenv(name, variables[name])
    assert submit("#!/bin/bash\n", str(tmp_path / "a" / "logs")) == "17"
    assert (tmp_path / "a" / "logs").is_dir()
    assert (tmp_path / "log").read_text() == "sbatch --parsable\n#!/bin/bash\n"


def test_job_around_the_submission_is_not_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = {
        "SLURM_JOB_ID": "1",
        "SLURM_NNODES": "3",
        "SLURM_CONF": "/etc/x",
        "SBATCH_QOS": "high",
    }
    for name, value in around.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    sbatch = tmp_path / "sbatch"
    sbatch.write_text('#!/bin/sh\necho "$SLURM_JOB_ID,$SLURM_NNODES,$SLURM_CONF,$SBATCH_QOS"\n')
    sbatch.chmod(0o755)
    assert submit("", str(tmp_path)) == ",,/etc/x,high"
    assert around.items() <= os.environ.items()


def test_refusal_by_sbatch_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="submit it where SLURM is"):
        submit("", str(tmp_path))
    sbatch = tmp_path / "sbatch"
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    with pytest.raises(LaunchError, match=r"refuses the job .*invalid partition"):
        submit("", str(tmp_path))


def test_command_line_writes_the_script(
    environment: Environment, tmp_path: Path, reelseek_command: Run
) -> None:
    done = reelseek_command(
        "slurm", "train", "--env", environment.prefix, "--gpus", 8, "--nodes", 2,
        "--logs", tmp_path / "logs", "--sbatch=--qos=high", "-o", tmp_path / "job.sh",
        "--", "torchrun", "train.py", "--help",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    text = os.fsdecode((tmp_path / "job.sh").read_bytes())
    assert "#SBATCH --nodes=2\n" in text
    assert "#SBATCH --qos=high\n" in text
    assert "    train.py\n    --help\n)" in text
    assert (tmp_path / "logs").is_dir()


def test_script_or_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LaunchError, match="the folder for logs can't be made"):
        write_script("", str(tmp_path / "file" / "logs"), str(tmp_path / "job.sh"))
    with pytest.raises(LaunchError, match="the script can't be written"):
        write_script("", str(tmp_path), str(tmp_path / "no" / "job.sh"))
