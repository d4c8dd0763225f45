"""Calls in a process of its own, which may crash without harm.

Run as a program it answers requests on stdin, one at a time, until stdin ends, as it does when
whoever asks is killed; what is being worked on then is given up. Both ways: a length of 4 bytes,
then a pickle. A request names a function ("module:name") and gives its arguments.
"""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import select
import struct
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

LENGTH = struct.Struct("<I")


@functools.lru_cache(64)
def function_of(name: str) -> Callable[..., Any]:
    """The function that "module:name" names."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def send(stream: IO[bytes], message: object) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=5)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; EOFError where the other side is gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:  # killed while it wrote
        raise EOFError
    return pickle.loads(data)  # noqa: S301 - from our own child or parent


def main() -> None:
    """Answer requests."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is no answer
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    while True:
        try:
            name, arguments = receive(sys.stdin.buffer)
            send(answers, function_of(name)(*arguments))
        except (EOFError, BrokenPipeError, KeyboardInterrupt):
            os._exit(0)


def _end_with_the_asker() -> None:
    poll = select.poll()
    poll.register(sys.stdin.fileno(), 0)  # that the other end is closed is told always
    poll.poll()
    os._exit(0)


if __name__ == "__main__":
    main()
