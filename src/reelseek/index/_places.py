"""Where packets that a demuxer returned lie in the file."""

from __future__ import annotations

import mmap

SEARCHED_BYTES = 64
"""How far after the position that a demuxer gives a packet's bytes may start: Matroska's position
is its block's, which has a header of its own."""


class PacketPlaces:
    """Finds packets' bytes in a file, and proves it by comparing them."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def find(self, data: bytes, position: int | None) -> int:
        """The offset of these bytes; -1 where they aren't stored like this near the position."""
        if position is None or position < 0:
            return -1
        return self._bytes.find(data, position, position + SEARCHED_BYTES + len(data))

    def close(self) -> None:
        """Give back the mapping."""
        self._bytes.close()
