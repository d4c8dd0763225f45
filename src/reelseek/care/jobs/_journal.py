"""The journal: what became of each item, as JSON lines, one file for each writer.

A job's folder holds a folder for each identity (the function with its arguments), and there::

    lock                 held by the driver, one at a time
    results/RUN-SHARD.jsonl   appended to by one worker at a time, a line as each item ends

A line holds a checksum: one that is cut short, or mixed with another, is no line.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS = "results"


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the journal."""

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


def append(path: Path, entry: Entry) -> None:
    """Write one line, and hand it to the file system, which a network's needs closing for."""
    text = json.dumps(asdict(entry), separators=(",", ":"))
    line = f'{{"crc":{zlib.crc32(text.encode())},"entry":{text}}}\n'
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        data = line.encode()
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def end_torn_line(path: Path) -> None:
    """Begin a line of one's own after what a killed writer may have left."""
    with open(path, "ab") as file:
        if file.tell():
            file.write(b"\n")


class JournalReader:
    """Reads what was added to a folder of journal files since the last look."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, int] = {}
        """Bytes of each file that were read, up to the end of a line."""

    def new_entries(self) -> Iterator[Entry]:
        """The lines that were added."""
        for path in sorted(self._folder.glob("*.jsonl")):
            yield from self._of(path)

    def _of(self, path: Path) -> Iterator[Entry]:
        name = path.name
        with open(path, "rb") as file:
            file.seek(self._read.get(name, 0))
            for line in file:
                if not line.endswith(b"\n"):  # is being written
                    return
                self._read[name] = self._read.get(name, 0) + len(line)
                entry = _entry_of(line)
                if entry is not None:
                    yield entry


def _entry_of(line: bytes) -> Entry | None:
    try:
        checksum, text = line.rstrip(b"\n").removeprefix(b'{"crc":').split(b',"entry":', 1)
        text = text.removesuffix(b"}")
        if int(checksum) != zlib.crc32(text):
            return None
        return Entry(**json.loads(text))
    except (ValueError, TypeError):
        return None
