"""Making a training job's script for an environment, and handing it to the cluster."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from reelseek.errors import LaunchError
from reelseek.launch._batch_script import batch_script
from reelseek.launch._exports import proven_export
from reelseek.launch._surroundings import outside_of_any_job
from reelseek.launch._train_job import TrainJob

LEFT_OUT = "# torchcodec is left out, as asked.\n"


def train_script(job: TrainJob) -> str:
    """The sbatch script, with exports that were proven in the job's environment.

    Raises:
        LaunchError: The job can't be made as asked, or there is no such environment.
        BackendUnavailableError: torchcodec doesn't load there, and no search path mends it.
    """
    python = os.path.join(job.prefix, "bin", "python")
    if not os.access(python, os.X_OK):
        raise LaunchError(
            "there is no bin/python in this folder",
            remedy="Give --env the folder of a conda environment or a venv",
            path=job.prefix,
        )
    exports = proven_export("slurm", python).text if job.is_with_torchcodec else LEFT_OUT
    return batch_script(job, exports)


def write_script(script: str, logs: str, path: str) -> None:
    """Write a script, and make the folder for its logs.

    Raises:
        LaunchError: Either can't be written.
    """
    _make_folder(logs)
    try:
        Path(path).write_bytes(os.fsencode(script))
    except OSError as exc:
        raise LaunchError("the script can't be written", path=path, detail=str(exc)) from exc


def _make_folder(logs: str) -> None:
    try:
        Path(logs).mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise LaunchError(
            "the folder for logs can't be made", remedy="Give another one with --logs", path=logs,
            detail=str(exc),
        ) from exc  # fmt: skip


def submit(script: str, logs: str, path: str = "") -> str:
    """Hand a script to sbatch, and return the job's id.

    Args:
        script: Its text.
        logs: The folder for logs, which is made: without it the job fails unheard.
        path: Where the script lies; empty hands over the text.

    Raises:
        LaunchError: There is no sbatch, or it refuses the script; with its words.
    """
    _make_folder(logs)
    command = ["sbatch", "--parsable", *([path] if path else [])]
    try:
        with outside_of_any_job():
            done = subprocess.run(
                command, input=b"" if path else os.fsencode(script), capture_output=True,
                check=False,
            )  # fmt: skip
    except OSError as exc:
        raise LaunchError(
            "sbatch can't be started",
            remedy="Write the script with -o FILE, and submit it where SLURM is",
            detail=str(exc),
        ) from exc
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise LaunchError("sbatch refuses the job", detail=said)
    # "17", or "17;cluster" where there are several.
    return done.stdout.decode("utf-8", "replace").strip().partition(";")[0]
