"""Where a Matroska or WebM file says that it ends.

Source: RFC 8794 4 and 5 (EBML variable-size integers and element IDs); RFC 9559 5.1 (Segment).
"""

from __future__ import annotations

EBML_ID, SEGMENT_ID = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"


def matroska_end(head: bytes) -> int | None:
    """The number of bytes that the file is to have, from its first ones; None where unsaid."""
    position = 0
    for identifier in (EBML_ID, SEGMENT_ID):
        if head[position : position + 4] != identifier:
            return None
        size, position = _size(head, position + 4)
        if size is None:
            return None
        position += size
    return position


def _size(data: bytes, position: int) -> tuple[int | None, int]:
    """An element's size and where its content starts; None for one that isn't known."""
    if position >= len(data) or data[position] == 0:
        return None, position
    length = 9 - data[position].bit_length()
    coded = int.from_bytes(data[position : position + length], "big")
    ones = (1 << (7 * length)) - 1
    size = coded & ones
    is_known = size != ones and position + length <= len(data)
    return (size if is_known else None), position + length
