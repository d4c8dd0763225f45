"""Caches of the dynamic linker in both layouts, byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Row = tuple[str, str, int, int]
"""Name, path, flags, hwcap."""


def new_cache(rows: Sequence[Row], hwcaps: Sequence[str] = (), endian: int = 2) -> bytes:
    """A cache in the new layout, its extension last."""
    strings, places = b"", {}
    first = 48 + 24 * len(rows)
    for text in dict.fromkeys([text for row in rows for text in row[:2]] + list(hwcaps)):
        places[text] = first + len(strings)
        strings += text.encode() + b"\0"
    strings += bytes(-(first + len(strings)) % 4)
    extension = first + len(strings) if hwcaps else 0
    header = b"glibc-ld.so.cache1.1" + struct.pack(
        "<IIBxxxI12x", len(rows), len(strings), endian, extension
    )
    entries = b"".join(
        struct.pack("<iIIIQ", flags, places[name], places[path], 0, hwcap)
        for name, path, flags, hwcap in rows
    )
    tail = b""
    if hwcaps:
        tail = struct.pack("<II", 0xEAA42174, 1)
        tail += struct.pack("<IIII", 1, 0, extension + 24, 4 * len(hwcaps))
        tail += struct.pack(f"<{len(hwcaps)}I", *(places[name] for name in hwcaps))
    return header + entries + strings + tail


def old_cache(rows: Sequence[Row], behind: bytes = b"") -> bytes:
    """A cache in the old layout, with another one behind it."""
    strings, entries = b"", b""
    for name, path, flags, _ in rows:
        key, value = len(strings), len(strings) + len(name) + 1
        strings += f"{name}\0{path}\0".encode()
        entries += struct.pack("<iII", flags, key, value)
    head = b"ld.so-1.7.0\0" + struct.pack("<I", len(rows)) + entries
    return head + bytes(-len(head) % 8) + behind if behind else head + strings
