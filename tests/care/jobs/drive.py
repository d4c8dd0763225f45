"""A driver to be killed: runs a job of toys and prints each outcome as a JSON line."""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from pathlib import Path
from typing import Any

from reelseek.care.jobs import (
    Executor,
    Item,
    Job,
    LocalExecutor,
    RayExecutor,
    SlurmExecutor,
    run_job,
)


def job_of(
    folder: Path,
    *keys: str,
    function: str = "misbehave",
    stamp: str = "a",
    needs: tuple[str, ...] = (),
    **arguments: Any,
) -> Job:
    """A job of one of the toys, whose keys note their calls in the folder's log."""
    items = tuple(Item(key, len(keys) - number, stamp) for number, key in enumerate(keys))
    arguments = {"log": str(folder / "log"), **arguments}
    function = f"tests.care.jobs.toys:{function}"
    return Job("toy", function, arguments, items, folder / "jobs", tuple(needs))


def executor_of(name: str, ray_address: str = "", **options: Any) -> Executor:
    """An executor that looks often."""
    if name == "local":
        return LocalExecutor(2)
    options = {"tasks": 2, "poll_seconds": 0.1, "grace_seconds": 0.3, "say": _say, **options}
    if name == "slurm":
        return SlurmExecutor(ask_seconds=0.5, **options)
    return RayExecutor(ray_address, **options)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    name, ray_address, folder, arguments, *keys = sys.argv[1:]
    values = json.loads(arguments)
    ours = ("cpus", "partition", "setup", "tasks")
    options = {name: values.pop(name) for name in ours if name in values}
    job = job_of(Path(folder), *keys, **values)
    for outcome in run_job(job, executor_of(name, ray_address, **options)):
        print(json.dumps(dataclasses.asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
