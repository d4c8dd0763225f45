"""Whether a node can train: looked at in a task of the job, before the GPUs are held for hours."""

from __future__ import annotations

import os
import re
import sys
import time

from reelseek.errors import ReelseekError
from reelseek.launch._slurm import check_slurm
from reelseek.native._child import ChildError, run_child
from reelseek.native._doctor import examine
from reelseek.native._printable import printable

MARK = "reelseek preflight: "
"""What each of its lines starts with; the batch script looks for it."""
FAILED = ": FAILED: "
COUNT_GPUS = "import torch; print(torch.cuda.device_count(), torch.version.cuda)"
GPU_SECONDS = 200
"""For importing torch from a file system that all nodes read from at once."""


def preflight(dataset: str = "", gpus: int = 0, *, torchcodec: bool = True) -> tuple[bool, str]:
    """Look at this node: whether it can train, and one line that names it and the cause.

    Args:
        dataset: A folder of which a frame of each camera is decoded; empty for none.
        gpus: How many torch has to see.
        torchcodec: Whether it has to load, and what was exported has to have arrived.
    """
    begin = time.perf_counter()
    fault = (
        (_fault_of_environment() if torchcodec else "")
        or (_fault_of_gpus(gpus) if gpus else "")
        or (_fault_of_dataset(dataset) if dataset else "")
    )
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    if fault:
        return False, f"{MARK}{node}{FAILED}{printable(fault)}"
    return True, f"{MARK}{node}: ok, {time.perf_counter() - begin:.1f} s"


def _fault_of_environment() -> str:
    found = examine(decoders=False)
    slurm = check_slurm(found.facts, found.remedy)
    if found.is_well and (slurm.is_well or not slurm.job_id):
        return ""
    # What was lost on the way into the job is the cause, and the diagnosis what comes of it.
    is_lost = bool(slurm.job_id) and not slurm.is_well and bool(found.remedy.folders)
    verdict = _without_node(slurm.verdict) if is_lost else found.diagnosis.verdict
    command = slurm.command if is_lost else found.remedy.command
    return f"{verdict}. Run: {command}" if command else verdict


def _without_node(verdict: str) -> str:
    """The line names the node already."""
    return re.sub(r"^job \S+ on \S+: ", "", verdict)


def _fault_of_gpus(wanted: int) -> str:
    """In a process of its own, which ends and takes its hold of the GPUs with it."""
    try:
        done = run_child([sys.executable, "-c", COUNT_GPUS], timeout_seconds=GPU_SECONDS)
    except ChildError as exc:
        return f"torch can't be asked for GPUs: {exc}"
    said = done.stdout.decode("utf-8", "replace").split()
    if done.status != 0 or len(said) < 2 or not said[0].isdigit():
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"torch can't be asked for GPUs: {' '.join(last)}"
    if int(said[0]) >= wanted:
        return ""
    if said[1] == "None":
        return f"torch was built without CUDA, and {wanted} GPUs were asked for"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
    return (
        f"torch sees {said[0]} of {wanted} GPUs (CUDA_VISIBLE_DEVICES: {visible}). Run there: "
        "nvidia-smi"
    )


def _fault_of_dataset(root: str) -> str:
    from reelseek.datasets import open_dataset

    try:
        dataset = open_dataset(root, output="numpy")
        if len(dataset):
            dataset[0]
    except ReelseekError as exc:
        return str(exc)
    except OSError as exc:
        return f"{root} can't be read: {exc}"
    return ""
