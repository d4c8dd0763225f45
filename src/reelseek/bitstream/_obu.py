"""AV1 open bitstream units: splitting a temporal unit into them.

Source: AV1 Bitstream & Decoding Process Specification, version 1.0.0 with errata 1, 5.3 and 4.10.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum


class ObuType(IntEnum):
    """obu_type, 6.2.2."""

    SEQUENCE_HEADER = 1
    TEMPORAL_DELIMITER = 2
    FRAME_HEADER = 3
    TILE_GROUP = 4
    METADATA = 5
    FRAME = 6
    REDUNDANT_FRAME_HEADER = 7
    TILE_LIST = 8
    PADDING = 15


def iter_obus(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Each OBU of a temporal unit.

    Yields:
        obu_type, and three positions in ``data``: of its header, of its payload, of its end.

    Raises:
        ValueError: The bytes are no whole OBUs.
    """
    position, end = 0, len(data)
    while position < end:
        start, header = position, data[position]
        if header & 0x80:
            raise ValueError(f"OBU at byte {start}: the forbidden bit is set")
        position += 2 if header & 0x04 else 1  # obu_extension_flag
        size = end - position
        if header & 0x02:  # obu_has_size_field
            size, position = read_leb128(data, position)
        if size < 0 or position + size > end:
            raise ValueError(f"OBU at byte {start}: it has {size} bytes of {end - position} left")
        yield header >> 3 & 15, start, position, position + size
        position += size


def read_leb128(data: bytes, position: int) -> tuple[int, int]:
    """A length and the position after it, 4.10.5."""
    value = 0
    for index in range(8):
        if position + index >= len(data):
            break
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if not byte & 0x80:
            return value, position + index + 1
    raise ValueError(f"length at byte {position}: it doesn't end")
