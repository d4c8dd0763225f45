"""The journal: what became of each item, as JSON lines, one file for each writer.

A job's folder holds a folder for each identity (the function with its arguments), and there::

    lock                      held by the driver, one at a time
    results/RUN-PART.jsonl    a line as each item ends; each file has one writer at a time
    runs/RUN/                 what a cluster's tasks were asked, and their logs

A line holds a checksum: one that is cut short, or mixed with another, is no line.
"""

from __future__ import annotations

import errno
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reelseek.errors import ReelseekError

RESULTS = "results"
RUNS = "runs"


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of an item."""

    key: str
    """The item's key."""
    stamp: str
    """Its input's fingerprint."""
    run: str
    """Which run made it. A failure holds for that run only; the next one tries again."""
    value: dict[str, Any] | None
    """What the function returned."""
    error: str
    """What is wrong; empty where nothing is."""
    attempts: int = 1
    """How often it was tried."""
    is_final: bool = True
    """False for an error that another attempt may not meet."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An item that a task of a cluster begins with: what it is at when it is killed."""

    key: str
    """The item's key."""
    part: str
    """The task's part of the run."""


_KINDS: dict[bytes, type[Entry | Begun]] = {b"entry": Entry, b"begun": Begun}
_NAMES = {kind: name.decode() for name, kind in _KINDS.items()}


def append(path: Path, line: Entry | Begun) -> None:
    """Write one line, and close the file, at which a network's file system hands it on."""
    text = json.dumps(asdict(line), separators=(",", ":"))
    whole = f'{{"crc":{zlib.crc32(text.encode())},"{_NAMES[type(line)]}":{text}}}\n'
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        data = whole.encode()
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


@contextmanager
def journal_faults(folder: Path) -> Iterator[None]:
    """Turn what the system says against writing into an error for a person."""
    try:
        yield
    except OSError as exc:
        is_full = exc.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "Free some space or quota there" if is_full else "See that you may write there"
        raise ReelseekError(
            "the job's journal can't be written",
            remedy=f"{remedy}, and run the command again: what was done is kept",
            path=exc.filename or folder,
            detail=exc.strerror or str(exc),
        ) from exc


def end_torn_line(path: Path) -> None:
    """Begin a line of one's own after what a killed writer may have left."""
    with open(path, "ab") as file:
        if file.tell():
            file.write(b"\n")


class JournalReader:
    """Reads what was added to a folder of journal files since the last look."""

    def __init__(self, folder: Path) -> None:
        self.begun: dict[str, str] = {}
        """Which part began with an item last, by the item's key."""
        self._folder = folder
        self._read: dict[str, int] = {}
        """Bytes of each file that were read, up to the end of a line."""

    def new_entries(self) -> Iterator[Entry]:
        """The entries that were added."""
        for path in sorted(self._folder.glob("*.jsonl")):
            yield from self.entries_of(path)

    def entries_of(self, path: Path) -> Iterator[Entry]:
        """The entries that were added to one file."""
        with open(path, "rb") as file:
            file.seek(self._read.get(path.name, 0))
            for line in file:
                if not line.endswith(b"\n"):  # is being written
                    return
                self._read[path.name] = self._read.get(path.name, 0) + len(line)
                found = _parsed(line)
                if isinstance(found, Begun):
                    self.begun[found.key] = found.part
                elif found is not None:
                    yield found


_LINE = re.compile(rb'{"crc":(\d+),"(entry|begun)":(.*)}\n')


def _parsed(line: bytes) -> Entry | Begun | None:
    """What a line says; None for one that isn't whole."""
    found = _LINE.fullmatch(line)
    if found is None or int(found[1]) != zlib.crc32(found[3]):
        return None
    return _KINDS[found[2]](**json.loads(found[3]))
