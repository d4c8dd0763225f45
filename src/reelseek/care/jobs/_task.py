"""What a task of a cluster does: its part of a run, going on from its journal."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from reelseek.care.jobs._attempts import Attempts
from reelseek.care.jobs._journal import JournalReader, append, end_torn_line, journal_faults
from reelseek.care.jobs._parts import Part
from reelseek.errors import ReelseekError


def run_part(path: str) -> int:
    """Do what is left of a part.

    Returns:
        How many items the part has.
    """
    part = Part.read(Path(path))
    for _ in _steps(part):
        pass
    return len(part.items)


def run_part_on_ray(path: str) -> int:
    """``run_part``, with what is printed in the part's log."""
    with _printed_into(Part.read(Path(path)).log):
        return run_part(path)


def run_part_on_slurm(path: str) -> None:
    """``run_part``, which SLURM may stop; ends the process.

    At the signal that the time is nearly up, the task goes back into the queue, and goes on from
    its journal; but not where it hasn't finished a single item: it never would.

    At its end it leaves nothing to submitit, which would write into a folder that the driver may
    have deleted by then, as it has all the results.
    """
    part = Part.read(Path(path))
    finished = 0
    try:
        with _stopped_by(signal.SIGUSR2, signal.SIGTERM):
            for _ in _steps(part):
                finished += 1
    except _Stopped as exc:
        print(f"stopped by {exc} after {finished} items", file=sys.stderr, flush=True)
        if exc.number == signal.SIGUSR2:
            _go_back_into_the_queue(finished)
        os._exit(1)
    except ReelseekError as exc:
        print(exc, file=sys.stderr, flush=True)
        os._exit(1)
    print(f"{finished} items are done", flush=True)
    os._exit(0)


def _steps(part: Part) -> Iterator[None]:
    """One step for each item that is done now."""
    _check_machine(part)
    journal = Path(part.journal)
    done = {entry.key for entry in JournalReader(journal.parent).entries_of(journal)}
    with journal_faults(journal):
        end_torn_line(journal)
    attempts = Attempts(part.function, part.arguments, part.run, part.journal)
    todo = [item for item in part.items if item.key not in done]
    for entry in attempts.entries(todo, part.cpus):
        with journal_faults(journal):
            append(journal, entry)
        yield


def _check_machine(part: Part) -> None:
    """End the task on a machine where the items would all be missing."""
    for folder in part.needs:
        try:
            is_there = any(Path(folder).iterdir())
        except OSError:
            is_there = False
        if not is_there:
            raise ReelseekError(
                f"there is nothing of this folder on {socket.gethostname()}",
                remedy="Mount its file system on every node",
                path=folder,
            )


class _Stopped(BaseException):
    """A signal came."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def _stopped_by(*numbers: signal.Signals) -> Iterator[None]:
    def stop(number: int, _frame: FrameType | None) -> None:
        for other in numbers:  # one is enough
            signal.signal(other, signal.SIG_IGN)
        raise _Stopped(number)

    for number in numbers:
        signal.signal(number, stop)
    yield


def _go_back_into_the_queue(finished: int) -> None:
    if not finished:
        print(
            "no item was finished in the time that the task had: give it more (--time)",
            file=sys.stderr,
            flush=True,
        )
        return
    subprocess.run(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]], check=False)  # noqa: S607


@contextmanager
def _printed_into(log: str) -> Iterator[None]:
    """This process's stdout and stderr, and its children's, at the end of a file."""
    kept = [os.dup(number) for number in (1, 2)]
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for number in (1, 2):
        os.dup2(descriptor, number)
    os.close(descriptor)
    try:
        yield
    finally:
        for number, former in zip((1, 2), kept, strict=True):
            os.dup2(former, number)
            os.close(former)
