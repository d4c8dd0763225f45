"""The boxes of an MP4 file, and the fields and tables in them.

Source: ISO/IEC 14496-12:2022, 4.2.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_BOXES = 10_000
"""Boxes in one box: far more than any file has."""
HEAD = struct.Struct(">I4s")
"""A box's size and kind."""
VERSION, COUNT = struct.Struct(">B"), struct.Struct(">I")


class Mp4Error(ValueError):
    """A box is damaged or of an unknown kind.

    Attributes:
        structure: The box.
        byte_offset: Its position in ``moov``.
    """

    def __init__(self, structure: str, byte_offset: int, what: str) -> None:
        super().__init__(f"{structure} at byte {byte_offset} of moov: {what}")
        self.structure = structure
        self.byte_offset = byte_offset


class Box(NamedTuple):
    """Where a box is."""

    kind: bytes
    """Its type, such as ``moov``."""
    start: int
    """Where its content begins."""
    end: int
    """Where it ends."""


def boxes_in(data: bytes, start: int, end: int) -> list[Box]:
    """The boxes between two positions, 4.2; a box that leaves its parent is damage."""
    found: list[Box] = []
    for _ in range(MAX_BOXES):
        if start + 8 > end:
            return found
        size, kind = HEAD.unpack_from(data, start)
        head = 8
        if size == 1:
            size, head = int.from_bytes(data[start + 8 : start + 16], "big"), 16
        elif size == 0:
            size = end - start
        if size < head or start + size > end:
            raise Mp4Error(
                name_text(kind), start, f"its size is {size}, {end - start} bytes are left"
            )
        found.append(Box(kind, start + head, start + size))
        start += size
    raise Mp4Error("box", start, f"it follows {MAX_BOXES:,} others")


def version_of(data: bytes, box: Box) -> int:
    """The version of a full box, 4.2.2."""
    return int(fields_at(data, box, box.start, VERSION)[0])


def count_at(data: bytes, box: Box, at: int) -> int:
    """A field of 32 bits."""
    return int(fields_at(data, box, at, COUNT)[0])


def fields_at(data: bytes, box: Box, at: int, layout: struct.Struct) -> tuple[Any, ...]:
    """Fields of a box; damage where they don't fit into the box."""
    if at + layout.size > box.end:
        raise Mp4Error(name_of(data, box), box.start, "it is too short")
    return layout.unpack_from(data, at)


def numbers_at(
    data: bytes, box: Box, at: int, count: int, kind: str | np.dtype[Any]
) -> NDArray[Any]:
    """A table of a box; damage where it doesn't fit into the box."""
    dtype: np.dtype[Any] = np.dtype(kind)
    if at + count * dtype.itemsize > box.end:
        raise Mp4Error(name_of(data, box), box.start, f"its {count} entries don't fit into it")
    return np.frombuffer(data, dtype, count, at)


def name_of(data: bytes, box: Box) -> str:
    """A box's kind; a box with a size of 64 bits has that between its kind and its content."""
    kind = data[box.start - 4 : box.start]
    return name_text(kind if kind.isalnum() else data[box.start - 12 : box.start - 8])


def name_text(kind: bytes) -> str:
    """A box's type as text."""
    return kind.decode("latin-1")
