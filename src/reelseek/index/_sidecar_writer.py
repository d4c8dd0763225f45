"""Writing a sidecar: records as they come, the directory last, then a rename."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from reelseek.index._columns import NOT_WRITTEN_BY_US
from reelseek.index._sidecar_format import (
    FACTS,
    FACTS_AT,
    HEADER_BYTES,
    RECORD_HEAD,
    UNFINISHED,
    VIDEO,
    Header,
    hash_of,
    pack_record,
    read_record,
)
from reelseek.index._video_record import RecordHead, VideoRecord, read_head

ALIGNMENT = 8


class SidecarWriter:
    """Appends to a partial file, which becomes the index when all is there.

    A partial file that a killed build left is taken up again; ``resumed`` lists its videos. Only
    one writer of a partial file at a time: the caller sees to that.
    """

    def __init__(self, path: Path, partial: Path) -> None:
        """Begin, or go on.

        Args:
            path: The index.
            partial: The file that is written before it becomes the index, in the same folder.
        """
        self._path = path
        self._partial = partial
        self._positions: dict[bytes, int] = {}
        self._facts: dict[bytes, int] = {}
        self.resumed: dict[bytes, RecordHead] = {}
        """The videos that the partial file holds, by their paths."""
        self._file = self._partial.open("r+b" if self._partial.exists() else "w+b")
        self._end = self._take_up()

    def add(self, record: VideoRecord, path: bytes) -> None:
        """Append a video; one of the same path that was there before is dropped."""
        facts_at = self._facts.get(record.facts)
        if facts_at is None:
            facts_at = self._facts[record.facts] = self._append(FACTS, record.facts)
        self._positions[path] = self._append(VIDEO, FACTS_AT.pack(facts_at) + record.body)

    def drop(self, path: bytes) -> None:
        """Leave a video out."""
        self._positions.pop(path, None)

    def checkpoint(self) -> None:
        """Hand over to the disk what was added so far: a build that is killed goes on from here."""
        self._file.flush()

    def finish(self) -> int:
        """Write the directory, and put the file in its place; its size in bytes."""
        self._file.write(b"\0" * (-self._end % ALIGNMENT))
        directory_at = self._end + -self._end % ALIGNMENT
        directory = _directory(self._positions)
        self._file.write(directory)
        size = directory_at + len(directory)
        self._file.truncate()
        header = Header(len(self._positions), directory_at, size, zlib.crc32(directory))
        self._file.seek(0)
        self._file.write(header.pack())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._partial.replace(self._path)
        return size

    def close(self) -> None:
        """Leave the partial file for the next build."""
        self._file.close()

    def _append(self, kind: int, payload: bytes) -> int:
        position = self._end
        self._end += self._file.write(pack_record(kind, payload))
        return position

    def _take_up(self) -> int:
        """Find the whole records of the file; the position behind the last."""
        self._file.seek(0)
        if not self._file.read(HEADER_BYTES).startswith(UNFINISHED[:12]):
            self._file.seek(0)
            self._file.truncate()
        self._file.seek(0)
        self._file.write(UNFINISHED)
        self._file.flush()
        data = self._partial.read_bytes() if self._partial.stat().st_size > HEADER_BYTES else b""
        end = HEADER_BYTES
        for position, found, end in _whole_records(data):  # noqa: B007 - read below
            if isinstance(found, bytes):
                self._facts[found] = position
                continue
            self._positions[found.path] = position
            self.resumed[found.path] = found
        self._file.seek(end)
        self._file.truncate()
        return end


def _whole_records(data: bytes) -> Iterator[tuple[int, bytes | RecordHead, int]]:
    """Each record's position, facts or video's head, and end, up to the first that isn't whole."""
    known_facts: set[int] = set()
    position = HEADER_BYTES
    while position + RECORD_HEAD.size <= len(data):
        kind = data[position + RECORD_HEAD.size - 1]
        payload = read_record(data, position, kind)
        if payload is None:
            return
        found: bytes | RecordHead | None = payload
        if kind == FACTS:
            known_facts.add(position)
        else:
            found = _head_of(payload, known_facts)
        if found is None:
            return
        end = position + RECORD_HEAD.size + len(payload)
        yield position, found, end
        position = end


def _head_of(payload: bytes, known_facts: set[int]) -> RecordHead | None:
    """The head of a video's record; None where ``SidecarWriter`` wrote no such record."""
    try:
        has_facts = FACTS_AT.unpack_from(payload)[0] in known_facts
        return read_head(payload, FACTS_AT.size) if has_facts else None
    except NOT_WRITTEN_BY_US:
        return None


def _directory(positions: dict[bytes, int]) -> bytes:
    hashes = np.fromiter(map(hash_of, positions), "<u8", len(positions))
    order = np.argsort(hashes, kind="stable")
    places = np.fromiter(positions.values(), "<u8", len(positions))
    return hashes[order].tobytes() + places[order].tobytes()
