"""Indexing in a process of its own, which may crash without harm.

Run as a program it answers requests on stdin, one at a time, until stdin ends, as it does when
whoever asks is killed. Both ways: a length of 4 bytes, then a pickle.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from typing import IO, Any

LENGTH = struct.Struct("<I")


def index_file(folder: str, relative: bytes) -> Any:
    """A file's record (VideoRecord), or what is wrong with it, as text."""
    from reelseek.errors import ReelseekError
    from reelseek.index._build import index_tables
    from reelseek.index._video_record import write_record

    path = os.path.join(folder, os.fsdecode(relative))
    try:
        before = os.stat(path)
        tables = index_tables(path)
        after = os.stat(path)
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            return f"{path}: it was changed while it was being indexed. Try again later"
        return write_record(relative, after.st_size, after.st_mtime_ns, tables)
    except ReelseekError as exc:
        return str(exc)
    except Exception as exc:  # noqa: BLE001 - one file's fault, whatever it is, stops no other
        return f"{path}: it can't be indexed ({type(exc).__name__}: {exc}). Please report it"


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
    data = stream.read(LENGTH.unpack(head)[0])
    return pickle.loads(data)  # noqa: S301 - from our own child or parent


def main() -> None:
    """Answer requests."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is no answer
    while True:
        try:
            folder, relative = receive(sys.stdin.buffer)
            send(answers, index_file(folder, relative))
        except (EOFError, BrokenPipeError, KeyboardInterrupt):
            os._exit(0)


if __name__ == "__main__":
    main()
