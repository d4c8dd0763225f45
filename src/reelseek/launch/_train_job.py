"""What a training job asks of the cluster, checked before a script is made of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from reelseek.errors import LaunchError
from reelseek.launch._words import base

Tasks = Literal["node", "gpu"]
"""How many tasks ``srun`` starts on a node: one, or one for each GPU."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
"""Of a job, as it stands in the names of its logs."""
VALUE = re.compile(r"[A-Za-z0-9_.,:@+/*\[\]-]+")
"""Of an #SBATCH option other than a path; sbatch takes quotes and spaces apart."""
FROM_SBATCH = "sbatch reads an #SBATCH line up to a space, a quote or a line break"


@dataclass(frozen=True, slots=True)
class TrainJob:
    """A command to start on the nodes of a SLURM cluster."""

    command: tuple[str, ...]
    """The program and its arguments; what torchrun isn't told is filled in."""
    prefix: str
    """The environment's folder, the same on every node."""
    name: str = "train"
    gpus: int = 1
    """Of each node; 0 for none."""
    nodes: int = 1
    tasks: Tasks = "node"
    cpus: int = 0
    """Of each node; 0 leaves it to the cluster."""
    memory: str = ""
    """Of each node, such as ``200G``; empty leaves it to the cluster, as the others below do."""
    time: str = ""
    """Such as ``1-00:00:00``."""
    partition: str = ""
    account: str = ""
    gpu_type: str = ""
    uses_gres: bool = False
    """Ask for ``--gres=gpu:N``, for clusters that don't know ``--gpus-per-node``."""
    logs: str = "."
    """The folder for logs. sbatch doesn't make it, and a job without it fails unheard."""
    dataset: str = ""
    """A frame of each of its cameras is decoded on every node first."""
    is_with_torchcodec: bool = True
    """Check on every node that torchcodec loads."""
    requeues: int = 3
    """How often the job may be started again."""
    signal_seconds: int = 120
    """How long before the end of its time the program is told to save."""
    preflight_seconds: int = 300
    """For the checks on all nodes; 0 leaves them out."""
    more: tuple[str, ...] = ()
    """Further options of sbatch, such as ``--constraint=h100``."""

    def __post_init__(self) -> None:
        _check_numbers(self)
        _check_values(self)
        if not self.command:
            raise LaunchError("there is no command to start", remedy="Give it after --")
        for option in self.more:
            if not option.startswith("-") or not option.isprintable():
                raise LaunchError(
                    f"{option!r} is no option of sbatch", remedy="Give one such as --qos=high"
                )

    @property
    def tasks_per_node(self) -> int:
        """How many tasks srun starts on each node."""
        return self.gpus if self.tasks == "gpu" else 1


def _check_numbers(job: TrainJob) -> None:
    least = {"nodes": 1, "signal_seconds": 1}
    names = ("gpus", "nodes", "cpus", "requeues", "signal_seconds", "preflight_seconds")
    for name in names:
        value = getattr(job, name)
        if value < least.get(name, 0):
            raise LaunchError(f"{name} is {value}, and has to be {least.get(name, 0)} or more")
    if job.signal_seconds > 65535:
        raise LaunchError(f"signal_seconds is {job.signal_seconds}, and sbatch takes 65535 at most")
    if job.tasks == "gpu" and not job.gpus:
        raise LaunchError("there is no GPU to start a task for", remedy="Give --gpus")
    if job.cpus % job.tasks_per_node:
        raise LaunchError(
            f"{job.cpus} CPUs can't be shared evenly by {job.tasks_per_node} tasks on a node",
            remedy=f"Give a multiple of {job.tasks_per_node}",
        )


def _check_values(job: TrainJob) -> None:
    if not NAME.fullmatch(job.name):
        raise LaunchError(
            f"a job can't be called {job.name!r}", remedy="Use letters, digits and any of _.+-"
        )
    for name in ("memory", "time", "partition", "account", "gpu_type"):
        value = getattr(job, name)
        if value and not VALUE.fullmatch(value):
            raise LaunchError(f"{name} can't be {value!r}: {FROM_SBATCH}")
    if "\\" in job.logs or not job.logs.isprintable() or not job.logs:
        raise LaunchError(
            f"logs can't go to {job.logs!r}: SLURM changes the meaning of its name",
            remedy="Use a folder without a backslash or a line break in its name",
        )
    for name in ("prefix", "dataset"):
        if "\0" in getattr(job, name):
            raise LaunchError(f"{name} can't be {getattr(job, name)!r}")


def default_name(command: tuple[str, ...]) -> str:
    """A job's name after the script that it runs: ``train`` for ``torchrun a/train.py``."""
    scripts = [word for word in command if word.endswith(".py")]
    words = [*scripts, *command]
    stem = base(words[0]).removesuffix(".py") if words else ""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", stem).strip("-.+") or "train"
