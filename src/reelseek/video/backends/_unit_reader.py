"""Reading units' bytes from their file: neighbours in one call."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from reelseek.errors import CorruptVideoError, VideoNotFoundError
from reelseek.index._stamp import Stamp, stamp_in
from reelseek.video.backends._faults import changed

FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""Opening a pipe that has the file's name by now doesn't wait for a writer."""
GAP_BYTES = 64 * 1024
"""Bytes between two units that are rather read along than skipped by another call."""


class UnitReader:
    """Reads the bytes of one file's units; the file is opened at the first read.

    By ``pread``, not by mapping: a mapped file that is cut meanwhile ends the process.
    """

    def __init__(self, path: str, backend: str, stamp: Stamp | None) -> None:
        """Read nothing yet.

        Args:
            path: The file.
            backend: The backend that reads, for errors.
            stamp: The file's when its units were found; None where that isn't known.
        """
        self._path = path
        self._backend = backend
        self._stamp = stamp
        self._descriptor = -1
        self._file_bytes = 0

    def read(self, places: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """The bytes of units, in the order given.

        Args:
            places: Where each unit is: its position in the file, and the number of its bytes.

        Raises:
            ChangedVideoError: It is another file than when its units were found.
            CorruptVideoError: The file ends before a unit does.
            VideoNotFoundError: It is gone, or can't be read.
        """
        first = 0
        while first < len(places):
            start, size = places[first]
            end = start + size
            after = first + 1
            while after < len(places) and 0 <= places[after][0] - end <= GAP_BYTES:
                end = sum(places[after])
                after += 1
            block = self._read_bytes(start, end - start)
            for offset, size in places[first:after]:
                yield block[offset - start : offset - start + size]
            first = after

    def close(self) -> None:
        """Close the file; the next read opens it again."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _read_bytes(self, offset: int, size: int) -> bytes:
        if self._descriptor < 0:
            self._open()
        end, most = offset + size, self._file_bytes
        if offset < 0 or size <= 0 or end > most:  # no size from an index is trusted
            raise self._cut_short(offset, end - most)
        try:
            data = os.pread(self._descriptor, size, offset)
        except OSError as exc:
            raise self._gone(exc) from exc
        if len(data) != size:
            raise self._cut_short(offset, size - len(data))
        return data

    def _open(self) -> None:
        try:
            self._descriptor = os.open(self._path, FLAGS)
            status = os.fstat(self._descriptor)
        except OSError as exc:
            self.close()  # what wasn't compared with the stamp isn't read
            raise self._gone(exc) from exc
        self._file_bytes = status.st_size
        if self._stamp is not None and stamp_in(status) != self._stamp:
            self.close()
            raise changed(self._path, self._backend)

    def _cut_short(self, offset: int, missing: int) -> CorruptVideoError:
        return CorruptVideoError(
            f"the file ends {missing} bytes before the data of this frame",
            remedy="Copy it again from its source, compare the sizes, and index it anew",
            path=self._path,
            byte_offset=offset,
            backend=self._backend,
        )

    def _gone(self, exc: OSError) -> VideoNotFoundError:
        return VideoNotFoundError(
            "the file is gone since it was indexed, or can't be read any more",
            remedy="Check that the disk or NAS is still mounted",
            path=self._path,
            backend=self._backend,
            detail=exc.strerror or "",
        )
