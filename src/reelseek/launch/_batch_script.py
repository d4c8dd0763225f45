"""The sbatch script of a training job: what to ask for, exports, preflight, start, requeue."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from reelseek.errors import LaunchError
from reelseek.launch._script_parts import (
    CHECK,
    END_OF_JOB,
    GIVE_UP,
    MEETING_PLACE,
    PREFLIGHT,
    RANKS,
    START,
)
from reelseek.launch._torchrun import Torchrun, options_to_fill_in, read_torchrun
from reelseek.launch._train_job import TrainJob
from reelseek.launch._words import array, quoted

LOOKS_EXPANDED = re.compile(r"'[^']*[$`~\\][^']*'")
WRITTEN = "# Written by `reelseek slurm train`."


def batch_script(job: TrainJob, exports: str) -> str:
    """The script, for bash.

    Args:
        job: What to start.
        exports: Lines that let torchcodec load, or a comment, as ``proven_export`` gives them.

    Raises:
        LaunchError: The command and the job contradict each other.
    """
    torchrun = read_torchrun(job.command)
    if torchrun and job.tasks == "gpu":
        raise LaunchError(
            "torchrun starts a process for each GPU itself", remedy="Leave out --tasks gpu"
        )
    body = "\n".join([*_parts(job, torchrun, exports), ""])
    head = ["#!/bin/bash", *(f"#SBATCH {option}" for option in _sbatch_options(job))]
    head += [WRITTEN, _shellcheck_line(job, exports), "set -euo pipefail"]
    return "\n".join(filter(None, head)) + "\n\n" + body


def _sbatch_options(job: TrainJob) -> Iterator[str]:
    yield f"--job-name={job.name}"
    yield f"--nodes={job.nodes}"
    yield f"--ntasks-per-node={job.tasks_per_node}"
    if job.gpus:
        kind = f"{job.gpu_type}:" if job.gpu_type else ""
        option = "--gres=gpu:" if job.uses_gres else "--gpus-per-node="
        yield f"{option}{kind}{job.gpus}"
    if job.cpus:
        yield f"--cpus-per-task={job.cpus // job.tasks_per_node}"
    values = {
        "--mem": job.memory, "--time": job.time, "--partition": job.partition,
        "--account": job.account,
    }  # fmt: skip
    yield from (f"{option}={value}" for option, value in values.items() if value)
    yield f"--output={_in_sbatch(_log(job, '%x-%j.out'))}"
    yield f"--error={_in_sbatch(_log(job, '%x-%j.err'))}"
    yield "--open-mode=append"
    yield "--requeue" if job.requeues else "--no-requeue"
    yield f"--signal=B:USR1@{job.signal_seconds}"
    yield from job.more


def _log(job: TrainJob, pattern: str) -> str:
    """A log's name as SLURM reads it: ``%`` in the folder's own name is doubled."""
    folder = "" if job.logs == "." else job.logs.replace("%", "%%")
    return posixpath.join(folder, pattern)


def _in_sbatch(path: str) -> str:
    if quoted(path) == path:
        return path
    return '"' + path.replace('"', '\\"') + '"'


def _shellcheck_line(job: TrainJob, exports: str) -> str:
    """Words of the user's that look like variables are meant as they are."""
    lines = [*map(quoted, (*job.command, job.prefix, job.dataset, job.logs)), *exports.split("\n")]
    is_odd = any(LOOKS_EXPANDED.search(line) for line in lines)
    return "# shellcheck disable=SC2016,SC2088,SC1003" if is_odd else ""


def _parts(job: TrainJob, torchrun: Torchrun | None, exports: str) -> Iterator[str]:
    yield GIVE_UP.replace("@REQUEUES@", str(job.requeues))
    yield _environment(job, exports)
    if job.preflight_seconds:
        yield _preflight(job)
    if _needs_meeting_place(job, torchrun):
        yield MEETING_PLACE
    yield "\n".join(array("reelseek_command", _command(job, torchrun))) + "\n"
    yield _start(job)


def _environment(job: TrainJob, exports: str) -> str:
    path = 'export PATH="$reelseek_prefix/bin:${PATH:-/usr/local/bin:/usr/bin:/bin}"'
    lines = [f"reelseek_prefix={quoted(job.prefix)}", path, exports.rstrip("\n")]
    return "\n".join(lines) + "\n"


def _preflight(job: TrainJob) -> str:
    options = []
    if job.gpus:
        options += ["--gpus", str(job.gpus)]
    if job.dataset:
        options += ["--dataset", job.dataset]
    if not job.is_with_torchcodec:
        options.append("--no-torchcodec")
    arguments = "\n".join(array("reelseek_arguments", map(quoted, options)))
    return f"{CHECK}{arguments}\n{PREFLIGHT}".replace("@SECONDS@", str(job.preflight_seconds))


def _needs_meeting_place(job: TrainJob, torchrun: Torchrun | None) -> bool:
    if torchrun is None:
        return job.nodes > 1 or job.tasks == "gpu"
    return job.nodes > 1 and "--rdzv-endpoint" not in torchrun.options


def _command(job: TrainJob, torchrun: Torchrun | None) -> list[str]:
    words = [quoted(word) for word in job.command]
    if torchrun is None:
        return words
    filled = options_to_fill_in(torchrun, nodes=job.nodes, gpus=job.gpus)
    return [*words[: torchrun.num_words], *filled, *words[torchrun.num_words :]]


def _start(job: TrainJob) -> str:
    options = [f"--output={quoted(_log(job, '%x-%j-%t.log'))}", "--open-mode=append"]
    if job.cpus:
        # Since SLURM 22.05 srun doesn't take the batch script's.
        options.append(f"--cpus-per-task={job.cpus // job.tasks_per_node}")
    ranks = 'bash -c "$reelseek_ranks" ranks ' if job.tasks == "gpu" else ""
    values = {
        "@OPTIONS@": " ".join(options),
        "@RANKS@": ranks,
        "@SHUTDOWN@": str(max(1, job.signal_seconds - 10)),
        "@MKDIR@": "" if job.logs == "." else f"mkdir -p {quoted(job.logs)}\n",
        "@LOGS@": quoted(job.logs),
        "@REQUEUES@": str(job.requeues),
    }
    text = (RANKS if ranks else "") + START + "\n" + END_OF_JOB
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text
