"""Where packets lie in a file, and reading them there.

By ``pread``, not by mapping: a mapped file that is cut meanwhile ends the process.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream._bit_columns import PADDING_BYTES

MAX_SPAN_BYTES = 256 * 1024 * 1024
SEARCHED_BYTES = 64
"""How far after the position that a demuxer gives a packet's bytes may start: Matroska's position
is its block's, which has a header of its own."""


class PacketPlaces:
    """Reads packets' bytes in a file, and finds them."""

    def __init__(self, path: str) -> None:
        """Open the file.

        Raises:
            OSError: It can't be read, or is a folder, a device or a pipe.
        """
        # Without O_NONBLOCK a pipe would wait for somebody to write into it.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.close(self._descriptor)
            raise OSError(errno.EINVAL, "not a file", path)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file; fewer where it ends."""
        return os.pread(self._descriptor, size, offset)

    def read_span(
        self, offset: NDArray[np.int64], size: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], int] | None:
        """All bytes from the first to the last of these places, in one read.

        Returns:
            The bytes, with zeros behind them, and the position of the first; None where they are
            too many, or the file ends before them.
        """
        base, end = int(offset.min()), int((offset + size).max())
        if end - base > MAX_SPAN_BYTES:
            return None
        data: NDArray[np.uint8] = np.empty(end - base + PADDING_BYTES, np.uint8)
        data[end - base :] = 0
        if os.preadv(self._descriptor, [data[: end - base].data], base) != end - base:
            return None
        return data, base

    def read_each(self, offset: NDArray[np.int64], size: NDArray[np.int64]) -> Iterator[bytes]:
        """The bytes of each of these places: read in one go where they aren't too many."""
        span = self.read_span(offset, size)
        pairs = zip(offset.tolist(), size.tolist(), strict=True)
        if span is None:
            yield from (self.read(start, count) for start, count in pairs)
            return
        data, base = span[0].data, span[1]
        yield from (bytes(data[start - base : start - base + count]) for start, count in pairs)

    def size(self) -> int:
        """The file's size in bytes."""
        return os.fstat(self._descriptor).st_size

    def find(self, data: bytes, position: int | None) -> int:
        """The offset of these bytes; -1 where they aren't stored like this near the position."""
        if position is None or position < 0:
            return -1
        found = self.read(position, SEARCHED_BYTES + len(data)).find(data)
        return position + found if found >= 0 else -1

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __enter__(self) -> PacketPlaces:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()
