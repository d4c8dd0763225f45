"""The smallest ELF library that has everything the reader reads, byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Mapping

BASE = 0x1000
"""The address of the file's first byte, so that addresses and offsets can't be mixed up."""
MACHINES = {"x86_64": 62, "i386": 3, "aarch64": 183}
DT = {
    "NULL": 0, "NEEDED": 1, "HASH": 4, "STRTAB": 5, "SYMTAB": 6, "STRSZ": 10, "SONAME": 14,
    "RPATH": 15, "RUNPATH": 29, "GNU_HASH": 0x6FFFFEF5, "VERSYM": 0x6FFFFFF0,
    "FLAGS_1": 0x6FFFFFFB, "VERDEF": 0x6FFFFFFC, "VERNEED": 0x6FFFFFFE,
}  # fmt: skip


class _Strings:
    def __init__(self) -> None:
        self.data = b"\0"

    def at(self, text: str) -> int:
        place = len(self.data)
        self.data += text.encode() + b"\0"
        return place


def tiny_elf(
    *,
    bits: int = 64,
    order: str = "<",
    machine: str = "x86_64",
    soname: str = "libtiny.so.1",
    needed: tuple[str, ...] = ("libone.so.1", "libtwo.so.2"),
    texts: Mapping[str, str] = {"RUNPATH": "$ORIGIN:/opt/lib"},
    flags_1: int = 0,
    copies: int = 0,
) -> bytes:
    """A library that needs ``ONE_1`` and, weakly, ``ONE_2`` of libone.so.1, and defines ``TINY_1``.

    Its symbols: ``takes@ONE_1`` undefined, ``maybe`` undefined and weak, ``gives@@TINY_1`` and
    ``plain`` defined, and the latter again ``copies`` times.
    """
    strings, word = _Strings(), "Q" if bits == 64 else "I"
    needs = _version_needs(strings, order)
    definitions = _version_definitions(strings, order, soname)
    symbols = _symbols(strings, order, bits)
    symbols += symbols[-len(symbols) // 5 :] * copies
    versym = struct.pack(f"{order}{5 + copies}H", 0, 2, 0, 4, 1, *[1] * copies)
    gnu_hash = _gnu_hash(order, bits, 2 + copies)
    tags = [("NEEDED", strings.at(name)) for name in needed]
    tags += [("SONAME", strings.at(soname)), ("FLAGS_1", flags_1)]
    tags += [(tag, strings.at(text)) for tag, text in texts.items()]
    headers = 64 + 2 * 56 if bits == 64 else 52 + 2 * 32
    place, body = headers, b""
    for tag, table in (
        ("VERNEED", needs), ("VERDEF", definitions), ("SYMTAB", symbols), ("VERSYM", versym),
        ("GNU_HASH", gnu_hash), ("STRTAB", strings.data),
    ):  # fmt: skip
        tags.append((tag, BASE + place + len(body)))
        body += table + bytes(-len(table) % 8)
    tags += [("STRSZ", len(strings.data)), ("NULL", 0)]
    dynamic = b"".join(struct.pack(f"{order}{word}{word}", DT[tag], value) for tag, value in tags)
    dynamic_at, size = place + len(body), place + len(body) + len(dynamic)
    segments = _segment(order, bits, 1, 0, size) + _segment(
        order, bits, 2, dynamic_at, len(dynamic)
    )
    return _header(order, bits, MACHINES[machine]) + segments + body + dynamic


def _header(order: str, bits: int, machine: int) -> bytes:
    word = "Q" if bits == 64 else "I"
    size, entry = (64, 56) if bits == 64 else (52, 32)
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    fields = (3, machine, 1, 0, size, 0, 0, size, entry, 2, 0, 0, 0)
    return ident + struct.pack(f"{order}HHI{word}{word}{word}I6H", *fields)


def _segment(order: str, bits: int, kind: int, offset: int, size: int) -> bytes:
    address = BASE + offset
    if bits == 64:
        fields = (kind, 6, offset, address, address, size, size, 8)
        return struct.pack(f"{order}IIQQQQQQ", *fields)
    return struct.pack(f"{order}8I", kind, offset, address, address, size, size, 6, 4)


def _version_needs(strings: _Strings, order: str) -> bytes:
    head = struct.pack(f"{order}HHIII", 1, 2, strings.at("libone.so.1"), 16, 0)
    first = struct.pack(f"{order}IHHII", 1, 0, 2, strings.at("ONE_1"), 16)
    return head + first + struct.pack(f"{order}IHHII", 2, 2, 3, strings.at("ONE_2"), 0)


def _version_definitions(strings: _Strings, order: str, soname: str) -> bytes:
    out = b""
    for index, name, following in ((1, soname, 28), (4, "TINY_1", 0)):
        flags = 1 if index == 1 else 0  # VER_FLG_BASE
        out += struct.pack(f"{order}HHHHIII", 1, flags, index, 1, 0, 20, following)
        out += struct.pack(f"{order}II", strings.at(name), 0)
    return out


def _symbols(strings: _Strings, order: str, bits: int) -> bytes:
    out = bytes(24 if bits == 64 else 16)
    for name, info, section in (
        ("takes", 0x12, 0), ("maybe", 0x22, 0), ("gives", 0x12, 5), ("plain", 0x11, 5),
    ):  # fmt: skip
        at = strings.at(name)
        if bits == 64:
            out += struct.pack(f"{order}IBBHQQ", at, info, 0, section, 0, 0)
        else:
            out += struct.pack(f"{order}IIIBBH", at, 0, 0, info, 0, section)
    return out


def _gnu_hash(order: str, bits: int, defined: int) -> bytes:
    """One bucket, whose chain is the defined symbols, from the third on."""
    chain = [0x10] * (defined - 1) + [0x11]
    head = struct.pack(f"{order}4I", 1, 3, 1, 0) + bytes(bits // 8)
    return head + struct.pack(f"{order}{1 + defined}I", 3, *chain)
