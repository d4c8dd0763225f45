"""Processes of other programs, with a limit to their time and to what they may say."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

MAX_OUTPUT_BYTES = 4 << 20
"""Of stdout and stderr together. A torch that warns of everything writes some kilobytes."""
PIECE_BYTES = 1 << 16


class ChildError(Exception):
    """A process could not be started, took too long or said too much; the text says which."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended by itself."""

    status: int
    """The exit status; the negative number of the signal that ended it."""
    stdout: bytes
    stderr: bytes


def run_child(
    command: Sequence[str],
    *,
    timeout_seconds: float,
    environment: Mapping[str, str] | None = None,
    folder: str | None = None,
) -> Ended:
    """Run a program to its end, with nothing on stdin.

    It leads a process group of its own, which is killed where a limit is passed, so that what it
    has started ends with it.

    Args:
        command: The program and its arguments.
        timeout_seconds: Until it has ended, and its output with it.
        environment: Its variables; this process's where none are given.
        folder: Its current folder; this process's where none is given.

    Raises:
        ChildError: It could not be started, or was killed for passing a limit.
    """
    deadline = time.monotonic() + timeout_seconds
    try:
        child = subprocess.Popen(
            command, env=environment, cwd=folder, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as exc:
        raise ChildError(str(exc)) from exc
    assert child.stdout is not None and child.stderr is not None  # pipes were asked for
    with child:
        try:
            stdout, stderr = _said([child.stdout, child.stderr], deadline)
            status = child.wait(max(deadline - time.monotonic(), 0))
        except BaseException as exc:  # also Ctrl-C, which reaches this group alone
            os.killpg(child.pid, signal.SIGKILL)  # not waited for yet, so the number is its own
            if isinstance(exc, (TimeoutError, subprocess.TimeoutExpired)):
                raise ChildError(f"timed out after {timeout_seconds:g} s") from exc
            raise
    return Ended(status, stdout, stderr)


def _said(streams: Sequence[IO[bytes]], deadline: float) -> list[bytes]:
    """All that comes out of the streams.

    Raises:
        TimeoutError: They have not all ended at the deadline.
        ChildError: It is more than ``MAX_OUTPUT_BYTES``.
    """
    said = [bytearray() for _ in streams]
    with selectors.DefaultSelector() as selector:
        for number, stream in enumerate(streams):
            selector.register(stream, selectors.EVENT_READ, number)
        while selector.get_map():
            ready = selector.select(max(deadline - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                piece = os.read(key.fd, PIECE_BYTES)
                said[key.data] += piece
                if not piece:
                    selector.unregister(key.fileobj)
            if sum(map(len, said)) > MAX_OUTPUT_BYTES:
                raise ChildError(f"said more than {MAX_OUTPUT_BYTES >> 20} MiB")
    return [bytes(text) for text in said]
