"""The dynamic linker's cache of library names, ``/etc/ld.so.cache``.

Three layouts: the new one, the old one of libc5 days, and the old one with the new one behind it.
Source: glibc's ``sysdeps/generic/dl-cache.h`` and ``elf/dl-cache.c``; ld.so(8), ldconfig(8).
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from reelseek.errors import ElfError

MAX_CACHE_BYTES = 8 << 20
"""Real ones have some tens of kilobytes."""
OLD_MAGIC, NEW_MAGIC = b"ld.so-1.7.0", b"glibc-ld.so.cache1.1"
OLD_HEADER_BYTES, OLD_ENTRY_BYTES = 16, 12
NEW_HEADER_BYTES, NEW_ENTRY_BYTES = 48, 24
NEW_ALIGNMENT = 8
ENDIAN_MASK, ENDIAN_UNSET, ENDIAN_LITTLE, ENDIAN_BIG = 3, 0, 2, 3
EXTENSION_MAGIC, EXTENSION_HWCAPS = 0xEAA42174, 1
HWCAP_NAMED = 1 << 30
"""In the upper half of an entry's hwcap: the lower half is the number of a folder's name."""
HWCAP_LEVEL_MASK = 0x3FF
"""The bits beside it hold a CPU level, which only ldconfig itself needs."""
MAX_NAME_BYTES = 4096
MAX_STRING_BYTES = 32 << 20
"""Of all names together, as names that overlap could add up to more than the file."""

DEFAULT_FLAGS = {
    "x86_64": 0x0303, "i386": 0x0003, "aarch64": 0x0A03, "arm": 0x0903, "ppc64": 0x0503,
    "s390": 0x0403, "riscv": 0x1003, "loongarch": 0x1103,
}  # fmt: skip
"""Machine -> flags of the entries that its ld.so takes: an ELF library for libc 6, of one ABI."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One library in the cache."""

    name: str
    path: str
    flags: int
    hwcap: int
    """Zero for what any CPU can run."""
    hwcap_name: str = ""
    """Name of the folder below ``glibc-hwcaps`` that it is in, such as ``x86-64-v3``."""


@dataclass(frozen=True, slots=True)
class LdCache:
    """The cache's entries by name, in the file's order."""

    entries: dict[str, tuple[CacheEntry, ...]]

    def path_of(self, name: str, machine: str, hwcaps: Sequence[str] = ()) -> str | None:
        """The path that ld.so takes for a name.

        Args:
            name: A soname.
            machine: As ``ElfFile.machine``.
            hwcaps: The folders below ``glibc-hwcaps`` that this CPU can use, best first.
        """
        flags, best, best_rank = DEFAULT_FLAGS.get(machine), None, len(hwcaps)
        for entry in self.entries.get(name, ()):
            if flags is not None and entry.flags != flags:
                continue
            if not entry.hwcap_name:
                if not entry.hwcap and best is None:
                    best = entry.path
                continue
            rank = hwcaps.index(entry.hwcap_name) if entry.hwcap_name in hwcaps else best_rank
            if rank < best_rank:
                best, best_rank = entry.path, rank
        return best


def read_ld_cache(path: str = "/etc/ld.so.cache") -> LdCache:
    """Read the cache; a missing file is an empty cache.

    Raises:
        ElfError: The cache is damaged, or is no regular file. (ld.so works on as if there were
            none, or loses the damaged entries.)
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return LdCache({})
    except OSError as exc:
        raise ElfError("the cache can't be read", path=path, detail=str(exc)) from exc
    if not stat.S_ISREG(found.st_mode):
        raise ElfError("the cache is no regular file", path=path)
    return _read(path, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=8)
def _read(path: str, state: tuple[int, ...]) -> LdCache:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            data = file.read(MAX_CACHE_BYTES + 1)
    except OSError as exc:
        raise ElfError("the cache can't be read", path=path, detail=str(exc)) from exc
    if len(data) > MAX_CACHE_BYTES:
        raise ElfError("the cache is larger than any real one", path=path)
    return parse_ld_cache(data, path)


def parse_ld_cache(data: bytes, path: str) -> LdCache:
    """The cache from its bytes; ``path`` is for the error's text.

    Raises:
        ElfError: As for ``read_ld_cache``.
    """
    if data.startswith(NEW_MAGIC):
        entries = _NewCache(data, 0, path).entries()
    elif data.startswith(OLD_MAGIC):
        entries = _old_entries(data, path)
    else:
        raise ElfError(f"no linker cache: it begins with {data[:20]!r}", path=path, byte_offset=0)
    named: dict[str, list[CacheEntry]] = {}
    for entry in entries:
        named.setdefault(entry.name, []).append(entry)
    return LdCache({name: tuple(found) for name, found in named.items()})


class _NewCache:
    """The new layout, from ``base`` on: names count from there, the extension from byte 0."""

    def __init__(self, data: bytes, base: int, path: str) -> None:
        self._data, self._base, self._path = data, base, path
        self._string = _Strings(data, base, path).at
        header = self._bytes(0, NEW_HEADER_BYTES, "the cache's header")
        endian = header[28] & ENDIAN_MASK
        if endian not in (ENDIAN_UNSET, ENDIAN_LITTLE, ENDIAN_BIG):
            raise self._fault(f"the cache's header says byte order {endian}", 28)
        self._order = ">" if endian == ENDIAN_BIG else "<"
        self._count, _ = struct.unpack_from(f"{self._order}II", header, 20)
        (self._extension,) = struct.unpack_from(f"{self._order}I", header, 32)

    def entries(self) -> list[CacheEntry]:
        table = self._bytes(NEW_HEADER_BYTES, self._count * NEW_ENTRY_BYTES, "the cache's entries")
        hwcap_names = self._hwcap_names()
        out = []
        for flags, key, value, _, hwcap in struct.iter_unpack(f"{self._order}iIIIQ", table):
            hwcap_name = ""
            if (hwcap >> 32) & ~HWCAP_LEVEL_MASK == HWCAP_NAMED:
                number = hwcap & 0xFFFFFFFF
                if number >= len(hwcap_names):
                    continue  # as ld.so: what it can't name it can't choose
                hwcap_name = hwcap_names[number]
            out.append(CacheEntry(self._string(key), self._string(value), flags, hwcap, hwcap_name))
        return out

    def _hwcap_names(self) -> list[str]:
        if not self._extension:
            return []
        structure = "the cache's extension"
        place = self._extension - self._base
        head = self._bytes(place, 8, structure)
        magic, count = struct.unpack(f"{self._order}II", head)
        if magic != EXTENSION_MAGIC:
            raise self._fault(f"{structure} has magic {magic:#x}", place)
        sections = self._bytes(place + 8, count * 16, structure)
        for tag, _, offset, size in struct.iter_unpack(f"{self._order}IIII", sections):
            if tag == EXTENSION_HWCAPS:
                names = self._bytes(offset - self._base, size - size % 4, structure)
                return [self._string(at) for (at,) in struct.iter_unpack(f"{self._order}I", names)]
        return []

    def _bytes(self, offset: int, size: int, structure: str) -> bytes:
        start = self._base + offset
        if not 0 <= start <= len(self._data) - size:
            raise self._fault(f"{structure} of {size} bytes goes beyond the file's end", offset)
        return self._data[start : start + size]

    def _fault(self, what: str, offset: int) -> ElfError:
        place = min(max(self._base + offset, 0), len(self._data))
        return ElfError(what, path=self._path, byte_offset=place)


def _old_entries(data: bytes, path: str) -> list[CacheEntry]:
    """The old layout: ld.so takes the new one behind it, where there is one."""
    if len(data) < OLD_HEADER_BYTES:
        raise ElfError("the cache's header is cut short", path=path, byte_offset=0)
    (count,) = struct.unpack_from("<I", data, 12)
    end = OLD_HEADER_BYTES + count * OLD_ENTRY_BYTES
    if end > len(data):
        raise ElfError(f"the cache ends before its {count} entries", path=path, byte_offset=12)
    base = -(-end // NEW_ALIGNMENT) * NEW_ALIGNMENT
    if data.startswith(NEW_MAGIC, base):
        return _NewCache(data, base, path).entries()
    string = _Strings(data, end, path).at
    table = struct.iter_unpack("<iII", data[OLD_HEADER_BYTES:end])
    return [CacheEntry(string(key), string(value), flags, 0) for flags, key, value in table]


class _Strings:
    """The names, by their distance from ``base``."""

    def __init__(self, data: bytes, base: int, path: str) -> None:
        self._data, self._base, self._path, self._room = data, base, path, MAX_STRING_BYTES

    def at(self, offset: int) -> str:
        start = self._base + offset
        end = self._data.find(b"\0", start, start + MAX_NAME_BYTES)
        self._room -= max(end - start, 0)
        if end < 0 or self._room < 0:
            raise ElfError(
                "a name in the cache has no end in the file, or there are too many",
                path=self._path,
                byte_offset=min(start, len(self._data)),
            )
        return os.fsdecode(self._data[start:end])
