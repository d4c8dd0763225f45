"""Reading a sidecar: the tables of a video without looking into the video."""

from __future__ import annotations

import bisect
import os
import weakref
import zlib
from collections.abc import Iterator
from typing import Any

from reelseek.errors import IndexFileError
from reelseek.index._columns import NOT_WRITTEN_BY_US
from reelseek.index._sidecar_format import (
    FACTS,
    FACTS_AT,
    HEADER_BYTES,
    RECORD_HEAD,
    VIDEO,
    Header,
    hash_of,
    read_record,
)
from reelseek.index._stamp import stamp_of
from reelseek.index._video_record import (
    RecordHead,
    SharedFacts,
    VideoRecord,
    read_facts,
    read_head,
    read_tables,
)
from reelseek.index._video_tables import VideoTables

MOST_ALIKE = 16
"""Paths of one CRC-32 that are tried. Of a million paths hardly ever three have the same, but names
can be made so that all have."""
FIRST_BYTES = 4096
"""Bytes of a record that are read at first: mostly all of it."""


class Sidecar:
    """The tables of a folder's videos in one file.

    Opening reads the header and the directory, a look-up one record. Tables are copies: they stay
    valid when the file goes.

    Threads: safe. Fork: a child reads the same file. Pickling: the file is opened again.
    A file that is cut or overwritten while it is open has no tables there; one that is replaced is
    read on as it was.
    """

    def __init__(self, path: str, folder: str) -> None:
        """Open a sidecar.

        Args:
            path: The sidecar.
            folder: The folder that its paths start from.

        Raises:
            IndexFileError: There is none, or it is damaged, cut short or of another version.
        """
        self.path = path
        self.folder = folder
        self._beginning = folder + os.sep
        self._descriptor, self._header, self._directory = _opened(path)
        weakref.finalize(self, os.close, self._descriptor)
        self._facts: tuple[int, SharedFacts | None] = (0, None)
        cells = memoryview(self._directory).cast("Q")
        self._hashes = cells[: self._header.num_videos]
        self._positions = cells[self._header.num_videos :]

    def __len__(self) -> int:
        return self._header.num_videos

    @property
    def num_bytes(self) -> int:
        """The sidecar's size."""
        return self._header.num_bytes

    def lookup(self, path: str) -> VideoTables | None:
        """The tables of a video.

        Args:
            path: The video, below the sidecar's folder.

        Returns:
            None where the sidecar doesn't list it, where the video has another size or time of
            change than when it was indexed, or where the sidecar is damaged there.
        """
        if not path.startswith(self._beginning):
            return None
        relative = os.fsencode(path[len(self._beginning) :])
        stamp = stamp_of(path)
        if stamp is None:
            return None
        for position in self._positions_of(relative):
            payload = self._record_at(position, VIDEO)
            if payload is None:
                continue
            try:
                head = read_head(payload, FACTS_AT.size)
                if head.path != relative:
                    continue
                if head.stamp != stamp:
                    return None
                facts = self._facts_at(FACTS_AT.unpack_from(payload)[0])
                return None if facts is None else read_tables(payload, head, facts)
            except NOT_WRITTEN_BY_US:
                return None
        return None

    def records(self) -> Iterator[tuple[RecordHead, VideoRecord]]:
        """Every video's record; those that are damaged are left out."""
        for hashed, position in zip(self._hashes, self._positions, strict=True):
            found = self._read(position)
            if found is not None and hash_of(found[0].path) == hashed:
                yield found

    def has_whole_directory(self) -> bool:
        """True where the directory's sum is right."""
        return zlib.crc32(self._directory) == self._header.directory_crc

    def __reduce__(self) -> tuple[Any, ...]:
        return Sidecar, (self.path, self.folder)

    def __repr__(self) -> str:
        return f"Sidecar({self.path!r}, {len(self)} videos)"

    def _positions_of(self, relative: bytes) -> list[int]:
        """Where the records of paths with this path's hash are."""
        wanted = hash_of(relative)
        first = bisect.bisect_left(self._hashes, wanted)
        found = []
        for number in range(first, min(first + MOST_ALIKE, len(self._hashes))):
            if self._hashes[number] != wanted:
                break
            found.append(self._positions[number])
        return found

    def _record_at(self, position: int, kind: int) -> bytes | None:
        """The payload of the record at a position; None where there is no whole one of the kind."""
        room = self._header.directory_at - position  # nothing that the file says is trusted
        if room < RECORD_HEAD.size:
            return None
        try:
            data = os.pread(self._descriptor, min(FIRST_BYTES, room), position)
            missing = RECORD_HEAD.size + int.from_bytes(data[:4], "little") - len(data)
            if 0 < missing <= room - len(data):
                data += os.pread(self._descriptor, missing, position + len(data))
        except OSError:  # gone from a network file system
            return None
        return read_record(data, 0, kind)

    def _facts_at(self, position: int) -> SharedFacts | None:
        """The facts at a position; those read last are kept, as most videos share them."""
        kept_at, facts = self._facts
        if kept_at != position:
            written = self._record_at(position, FACTS)
            facts = None if written is None else read_facts(written)
            self._facts = (position, facts)
        return facts

    def _read(self, position: int) -> tuple[RecordHead, VideoRecord] | None:
        """A video's record; None where it is damaged."""
        payload = self._record_at(position, VIDEO)
        if payload is None or len(payload) < FACTS_AT.size:
            return None
        body = payload[FACTS_AT.size :]
        try:
            facts = self._facts_at(FACTS_AT.unpack_from(payload)[0])
            return None if facts is None else (read_head(body), VideoRecord(facts.written, body))
        except NOT_WRITTEN_BY_US:
            return None


def _opened(path: str) -> tuple[int, Header, bytes]:
    """A descriptor of the file, its header and its directory."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as exc:
        raise IndexFileError(
            "no index there that can be read",
            remedy="Build it with `reelseek index`",
            path=path,
            detail=exc.strerror or "",
        ) from exc
    try:
        size = os.fstat(descriptor).st_size
        header = Header.unpack(os.pread(descriptor, HEADER_BYTES, 0), size, path)
        directory = os.pread(descriptor, size - header.directory_at, header.directory_at)
        if len(directory) != size - header.directory_at:
            raise OSError(f"{len(directory)} bytes of its directory came")
    except BaseException as exc:
        os.close(descriptor)
        if isinstance(exc, OSError):
            raise IndexFileError(
                "the index can't be read",
                remedy="Check that the disk or NAS is still mounted",
                path=path,
                detail=str(exc),
            ) from exc
        raise
    return descriptor, header, directory
