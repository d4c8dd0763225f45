"""What the dynamic linker reads in a program or library: names, search paths, versions, symbols.

Files are read, never loaded. Sources: the System V gABI, chapter 5 (dynamic section); the Linux
Standard Base, "Symbol Versioning"; the GNU hash table as in glibc's ``elf/dl-lookup.c``.
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reelseek.errors import ElfError
from reelseek.native._elf_image import Dynamic, ElfImage, Identity, elf_image

VER_FLG_WEAK = 2
DF_1_NODEFLIB = 0x800
DF_1_PIE = 0x08000000
VERSION_INDEX_MASK = 0x7FFF
"""Of a symbol's version index; the bit above says that the definition is not the default one."""
STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 1, 2, 10
SHN_UNDEF = 0
MAX_SYMBOLS = 4 << 20
SINGLE_WORDS = 4
"""More words than these are a table, of a size that has been checked."""
NAME_SHARE = 4
"""All symbols' names together, in sizes of the string table. Names may share their ends; many
that overlap could fill the memory."""
MAX_STRING_BYTES = 256 << 20
"""libtorch_cpu.so has 75,000 symbols with 5 MB of names; CUDA libraries have ten times that."""
CACHED_FILES = 1024
CACHED_SYMBOL_TABLES = 128
"""Those of torch's libraries take some megabytes each."""


@dataclass(frozen=True, slots=True)
class VersionNeed:
    """A version that another library has to define."""

    library: str
    """The soname of that library (vn_file)."""
    version: str
    """Such as ``CXXABI_1.3.15`` (vna_name)."""
    is_weak: bool
    """Its absence is only worth a warning (VER_FLG_WEAK)."""


@dataclass(frozen=True, slots=True)
class ElfFile:
    """What the dynamic linker goes by in one file."""

    path: str
    machine: str
    """``x86_64``, ``aarch64``, ... (e_machine)."""
    bits: int
    """32 or 64 (EI_CLASS)."""
    soname: str
    """DT_SONAME; empty where there is none."""
    needed: tuple[str, ...]
    """DT_NEEDED, in file order."""
    rpath: tuple[str, ...]
    """DT_RPATH as written, split at ``:``; empty where DT_RUNPATH is present, as ld.so ignores
    DT_RPATH then."""
    runpath: tuple[str, ...]
    """DT_RUNPATH as written, split at ``:``; ``("",)`` where it is present and empty, which still
    switches DT_RPATH off."""
    version_needs: tuple[VersionNeed, ...]
    version_definitions: frozenset[str]
    """The base definition, which is the file's own name, among them. Empty: the library has no
    versions at all, and ld.so takes that for every version that is needed of it."""
    interpreter: str
    """PT_INTERP, the dynamic linker that a program asks for; empty for libraries."""
    flags_1_nodeflib: bool
    """DF_1_NODEFLIB: the default folders are not searched for what this file needs."""
    is_program: bool = False
    """ET_EXEC, or marked as a program by DF_1_PIE; dlopen refuses it."""


def read_identity(path: str) -> Identity:
    """Class, byte order, machine and type of a file: all that a search looks at.

    Raises:
        ElfError: No regular file, no ELF file, or cut short inside its header.
        OSError: The file can't be opened.
    """
    with ElfImage(path) as image:
        return image.identity


def read_elf(path: str) -> ElfFile:
    """Read what the dynamic linker goes by in one file; a few kilobytes, however large it is.

    Raises:
        ElfError: The file can't be opened, is no regular or no ELF file, is cut short, or has a
            structure that lies outside it.
    """
    return _read_elf(path, _state_of(path))


def undefined_symbols(path: str) -> frozenset[tuple[str, str]]:
    """Symbols that a file takes from others, as (name, version); the version may be empty.

    Weak ones are left out: ld.so sets them to zero where no library has them.

    Raises:
        ElfError: As for ``read_elf``, or the symbol table is damaged.
    """
    return _symbols(path, _state_of(path))[0]


def defined_symbols(path: str) -> frozenset[tuple[str, str]]:
    """Symbols that a file offers to others, as (name, version); the version may be empty.

    Default (``@@``) and other (``@``) versions are not told apart.

    Raises:
        ElfError: As for ``read_elf``, or the symbol table is damaged.
    """
    return _symbols(path, _state_of(path))[1]


def _state_of(path: str) -> tuple[int, ...]:
    """Changes whenever the file does: part of the cache's key."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as exc:
        raise ElfError("the file can't be opened", path=path, detail=str(exc)) from exc
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@lru_cache(maxsize=CACHED_FILES)
def _read_elf(path: str, state: tuple[int, ...]) -> ElfFile:
    with elf_image(path) as image:
        dynamic = Dynamic(image)
        if not dynamic.tags and image.identity.elf_type == "ET_DYN":
            raise image.fault("there is no dynamic section (PT_DYNAMIC)", 0)
        rpath = dynamic.tag_string("DT_RPATH", "DT_RPATH")
        runpath = dynamic.tag_string("DT_RUNPATH", "DT_RUNPATH")
        flags_1 = dynamic.tags.get("DT_FLAGS_1", 0)
        return ElfFile(
            path=path,
            machine=image.identity.machine,
            bits=image.identity.bits,
            soname=dynamic.tag_string("DT_SONAME", "DT_SONAME") or "",
            needed=tuple(dynamic.string(index, "DT_NEEDED") for index in dynamic.needed),
            rpath=() if rpath is None or runpath is not None else tuple(rpath.split(":")),
            runpath=() if runpath is None else tuple(runpath.split(":")),
            version_needs=tuple(need for need, _ in _version_needs(dynamic)),
            version_definitions=frozenset(name for name, _ in _version_definitions(dynamic)),
            interpreter=dynamic.interpreter,
            flags_1_nodeflib=bool(flags_1 & DF_1_NODEFLIB),
            is_program=image.identity.elf_type == "ET_EXEC" or bool(flags_1 & DF_1_PIE),
        )


def _version_needs(dynamic: Dynamic) -> Iterator[tuple[VersionNeed, int]]:
    """DT_VERNEED: each version with the index that symbols refer to it by (vna_other)."""
    for offset, need in _chain(dynamic, "DT_VERNEED", "Elf_Verneed", "vn_next"):
        library = dynamic.string(need.vn_file, "a version need (vn_file)")
        start = offset + need.vn_aux
        for _, entry in _links(dynamic, start, "Elf_Vernaux", "vna_next", "DT_VERNEED"):
            version = dynamic.string(entry.vna_name, "a version need (vna_name)")
            is_weak = bool(entry.vna_flags & VER_FLG_WEAK)
            yield VersionNeed(library, version, is_weak), entry.vna_other & VERSION_INDEX_MASK


def _version_definitions(dynamic: Dynamic) -> Iterator[tuple[str, int]]:
    """DT_VERDEF: each version with its index (vd_ndx)."""
    for offset, definition in _chain(dynamic, "DT_VERDEF", "Elf_Verdef", "vd_next"):
        name = dynamic.image.record("Elf_Verdaux", offset + definition.vd_aux, "DT_VERDEF")
        version = dynamic.string(name.vda_name, "a version definition (vda_name)")
        yield version, definition.vd_ndx & VERSION_INDEX_MASK


def _chain(dynamic: Dynamic, tag: str, kind: str, link: str) -> Iterator[tuple[int, Any]]:
    found = dynamic.table(tag, tag)
    if found is not None:
        yield from _links(dynamic, found[0], kind, link, tag)


def _links(
    dynamic: Dynamic, offset: int, kind: str, link: str, structure: str
) -> Iterator[tuple[int, Any]]:
    """A list of records, each with the distance to the next; the image's limit ends long ones."""
    while True:
        record = dynamic.image.record(kind, offset, structure)
        yield offset, record
        if record[link] == 0:
            return
        offset += record[link]


Symbols = frozenset[tuple[str, str]]


@lru_cache(maxsize=CACHED_SYMBOL_TABLES)
def _symbols(path: str, state: tuple[int, ...]) -> tuple[Symbols, Symbols]:
    """The undefined and the defined symbols of the dynamic symbol table."""
    with elf_image(path) as image:
        dynamic = Dynamic(image)
        start = dynamic.table("DT_SYMTAB", "the symbol table")
        if start is None:
            return frozenset(), frozenset()
        count = _symbol_count(dynamic)
        layout = _symbol_layout(image.identity)
        data = _table(dynamic, start, count * layout.size, "the symbol table")
        names = _SymbolNames(dynamic)
        undefined, defined = set(), set()
        versions = _symbol_versions(dynamic, count)
        for (name, info, section), version in zip(layout.iter_unpack(data), versions, strict=True):
            binding = info >> 4
            if section == SHN_UNDEF and binding in (STB_GLOBAL, STB_GNU_UNIQUE):
                undefined.add(names.of(name, version))
            elif section != SHN_UNDEF and binding in (STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE):
                defined.add(names.of(name, version))
        return frozenset(filter(any, undefined)), frozenset(filter(any, defined))


class _SymbolNames:
    """The names of symbols with those of their versions."""

    def __init__(self, dynamic: Dynamic) -> None:
        found = dynamic.table("DT_STRTAB", "the string table")
        size = dynamic.tags.get("DT_STRSZ", 0)
        if found is None or size > MAX_STRING_BYTES:
            raise dynamic.image.fault(f"the string table has {size} bytes", 0)
        self._dynamic = dynamic
        self._text = _table(dynamic, found, size, "the string table")
        self._room = NAME_SHARE * size
        self._version_names = {0: "", 1: ""}  # local, and global without a version
        for version, index in _version_definitions(dynamic):
            self._version_names.setdefault(index, version)
        for need, index in _version_needs(dynamic):
            self._version_names.setdefault(index, need.version)

    def of(self, start: int, version: int) -> tuple[str, str]:
        """The name that begins there, and the version; both empty for a symbol without a name."""
        end = self._text.find(b"\0", start)
        self._room -= max(end - start, 0)
        if end < 0 or self._room < 0:
            what = "has no end" if end < 0 else "overlaps too many others"
            raise self._dynamic.image.fault(f"a symbol's name {what}", 0)
        if end == start:
            return "", ""
        name = self._text[start:end].decode(errors="replace")
        return name, self._version_names.get(version & VERSION_INDEX_MASK, "")


def _table(dynamic: Dynamic, place: tuple[int, int], size: int, structure: str) -> bytes:
    offset, room = place
    if size > room:
        raise dynamic.image.fault(f"{structure} has {size} bytes, its segment {room}", offset)
    return dynamic.image.read(offset, size, structure, is_table=True)


def _symbol_layout(identity: Identity) -> struct.Struct:
    """``st_name``, ``st_info`` and ``st_shndx`` of Elf64_Sym or Elf32_Sym (elf(5))."""
    order = "<" if identity.is_little_endian else ">"
    return struct.Struct(order + ("IBxH16x" if identity.bits == 64 else "I8xBxH"))


def _symbol_versions(dynamic: Dynamic, count: int) -> Sequence[int]:
    """DT_VERSYM: the version index of each symbol; zeros where there is none."""
    found = dynamic.table("DT_VERSYM", "DT_VERSYM")
    if found is None:
        return bytes(count)
    return _numbers(dynamic, "H", _table(dynamic, found, count * 2, "DT_VERSYM"))


def _symbol_count(dynamic: Dynamic) -> int:
    """How many symbols there are, which only the hash tables tell."""
    count = 0
    plain = dynamic.table("DT_HASH", "DT_HASH")
    gnu = dynamic.table("DT_GNU_HASH", "DT_GNU_HASH")
    if plain is not None:
        count = _words(dynamic, plain[0], 2, "DT_HASH")[1]
    elif gnu is not None:
        count = _gnu_hash_count(dynamic, gnu[0])
    if count > MAX_SYMBOLS:
        raise dynamic.image.fault(f"the hash table speaks of {count} symbols", 0)
    return count


def _gnu_hash_count(dynamic: Dynamic, start: int) -> int:
    """One more than the last symbol of the last chain, whose hash has its lowest bit set."""
    bucket_count, first, bloom_size, _ = _words(dynamic, start, 4, "DT_GNU_HASH")
    if bucket_count > MAX_SYMBOLS:
        raise dynamic.image.fault(f"DT_GNU_HASH has {bucket_count} buckets", start)
    buckets_at = start + 16 + bloom_size * dynamic.image.identity.bits // 8
    buckets = _words(dynamic, buckets_at, bucket_count, "DT_GNU_HASH")
    last = max(buckets, default=0)
    if last < first:
        return first
    chain_at = buckets_at + 4 * bucket_count + 4 * (last - first)
    while last < MAX_SYMBOLS:
        if _words(dynamic, chain_at, 1, "DT_GNU_HASH")[0] & 1:
            return last + 1
        last, chain_at = last + 1, chain_at + 4
    raise dynamic.image.fault("a chain of DT_GNU_HASH has no end", chain_at)


def _words(dynamic: Dynamic, offset: int, count: int, structure: str) -> Sequence[int]:
    is_table = count > SINGLE_WORDS
    data = dynamic.image.read(offset, count * 4, structure, is_table=is_table)
    return _numbers(dynamic, "I", data)


def _numbers(dynamic: Dynamic, kind: str, data: bytes) -> Sequence[int]:
    """Numbers of two (``H``) or four bytes (``I``), in the file's byte order."""
    numbers = array(kind, data)
    if dynamic.image.identity.is_little_endian != (sys.byteorder == "little"):
        numbers.byteswap()
    return numbers
