"""Reading a sidecar: the tables of a video without looking into the video."""

from __future__ import annotations

import bisect
import mmap
import os
import sys
import zlib
from collections.abc import Iterator
from typing import Any

from reelseek.errors import IndexFileError
from reelseek.index._columns import NOT_WRITTEN_BY_US
from reelseek.index._sidecar_format import (
    FACTS,
    FACTS_AT,
    HEADER_BYTES,
    VIDEO,
    Header,
    hash_of,
    read_record,
)
from reelseek.index._video_record import (
    RecordHead,
    SharedFacts,
    VideoRecord,
    read_facts,
    read_head,
    read_tables,
)
from reelseek.index._video_tables import VideoTables

FILE_NAMES = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
"""How file names are encoded."""


class Sidecar:
    """The tables of a folder's videos in one memory-mapped file.

    Opening reads the header only. Tables are copies: they stay valid when the file goes.

    Threads: safe. Fork: a child reads the same mapping. Pickling: the file is opened again.
    A file that is cut or replaced while it is open is noticed at the next look-up.
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
        self._map, header = _mapped(path)
        self._facts: tuple[int, SharedFacts | None] = (0, None)
        self._header = header
        directory = memoryview(self._map)[header.directory_at : header.num_bytes].cast("Q")
        self._hashes = directory[: header.num_videos]
        self._positions = directory[header.num_videos :]

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
        if not path.startswith(self._beginning) or not self._is_whole():
            return None
        relative = path[len(self._beginning) :].encode(*FILE_NAMES)
        try:
            status = os.stat(path)
        except OSError:
            return None
        for position in self._positions_of(relative):
            payload = read_record(self._map, position, VIDEO)
            if payload is None:
                continue
            try:
                head = read_head(payload, FACTS_AT.size)
                if head.path != relative:
                    continue
                if (head.num_bytes, head.mtime_ns) != (status.st_size, status.st_mtime_ns):
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
        """True where the directory's sum is right; reads all of it."""
        directory = self._map[self._header.directory_at :]
        return zlib.crc32(directory) == self._header.directory_crc

    def __reduce__(self) -> tuple[Any, ...]:
        return Sidecar, (self.path, self.folder)

    def __repr__(self) -> str:
        return f"Sidecar({self.path!r}, {len(self)} videos)"

    def _is_whole(self) -> bool:
        """False where the file was cut since it was opened: touching the map would be fatal."""
        try:
            return self._map.size() >= self._header.num_bytes
        except OSError:  # gone from a network file system
            return False

    def _positions_of(self, relative: bytes) -> list[int]:
        """Where the records of paths with this path's hash are."""
        wanted = hash_of(relative)
        first = bisect.bisect_left(self._hashes, wanted)
        found = []
        while first < len(self._hashes) and self._hashes[first] == wanted:
            found.append(self._positions[first])
            first += 1
        return found

    def _facts_at(self, position: int) -> SharedFacts | None:
        """The facts at a position; those read last are kept, as most videos share them."""
        kept_at, facts = self._facts
        if kept_at != position:
            written = read_record(self._map, position, FACTS)
            facts = None if written is None else read_facts(written)
            self._facts = (position, facts)
        return facts

    def _read(self, position: int) -> tuple[RecordHead, VideoRecord] | None:
        """A video's record; None where it is damaged."""
        payload = read_record(self._map, position, VIDEO)
        if payload is None or len(payload) < FACTS_AT.size:
            return None
        body = payload[FACTS_AT.size :]
        try:
            facts = self._facts_at(FACTS_AT.unpack_from(payload)[0])
            return None if facts is None else (read_head(body), VideoRecord(facts.written, body))
        except NOT_WRITTEN_BY_US:
            return None


def _mapped(path: str) -> tuple[mmap.mmap, Header]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as exc:
        raise IndexFileError(
            "no index there that can be read",
            remedy="Build it with `reelseek index`",
            path=path,
            detail=exc.strerror or "",
        ) from exc
    try:
        header = Header.unpack(os.pread(descriptor, HEADER_BYTES, 0), _size(descriptor), path)
        return mmap.mmap(descriptor, header.num_bytes, access=mmap.ACCESS_READ), header
    except (OSError, ValueError) as exc:
        if isinstance(exc, IndexFileError):
            raise
        raise IndexFileError(
            "the index can't be read",
            remedy="Check that the disk or NAS is still mounted",
            path=path,
            detail=str(exc),
        ) from exc
    finally:
        os.close(descriptor)


def _size(descriptor: int) -> int:
    return os.fstat(descriptor).st_size
