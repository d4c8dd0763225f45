"""An ELF file as the dynamic linker sees it: identity, segments, and the dynamic section.

Record layouts are pyelftools'; finding the way through them is done here, since a file may be
damaged or hostile: each read is checked against the file's size, and the work per file has a limit.
As in ld.so, everything is reached through the program headers; section headers, which ``strip``
may have removed, are not looked at. Source: the System V gABI, chapters 4 and 5.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any

from elftools.construct import ConstructError
from elftools.elf.structs import ELFStructs

from reelseek.errors import ElfError

MAGIC = b"\x7fELF"
IDENT_BYTES = 16
EV_CURRENT = 1
WORK_LIMIT = 16 << 20
"""Bytes read for one file, symbol tables apart. The libraries of torch need about 10,000."""
LEAST_WORK = 256
"""What the smallest read counts for, so that the limit bounds the number of reads too."""
MAX_PROGRAM_HEADERS = 1024
MAX_DYNAMIC_BYTES = 1 << 18
MAX_NEEDED = 4096
STRING_STEPS = (128, 4096, 1 << 16, 1 << 20)
"""How much is read at a time to find a string's end; an RPATH may hold hundreds of folders."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What the linker compares before it takes a file."""

    bits: int
    """32 or 64 (EI_CLASS)."""
    is_little_endian: bool
    machine: str
    """``x86_64``, ``aarch64``, ... (e_machine)."""
    elf_type: str
    """``ET_DYN`` for libraries and for most programs, ``ET_EXEC`` for other programs."""


@dataclass(frozen=True, slots=True)
class Load:
    """A PT_LOAD segment: bytes of the file at an address."""

    address: int
    offset: int
    size: int
    """Bytes in the file."""


class ElfImage:
    """An open ELF file. Close it, or use it in a ``with`` statement.

    Args:
        path: The file. Folders, FIFOs and devices are refused without being opened.

    Raises:
        ElfError: No regular file, no ELF file, cut short, or of a layout that ld.so refuses.
        OSError: The file can't be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._work = 0
        self._fd = _open_regular(path)
        try:
            self.size = os.fstat(self._fd).st_size
            self.identity, self.structs = self._read_identity()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ElfImage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def read(self, offset: int, size: int, structure: str, *, is_table: bool = False) -> bytes:
        """So many bytes of the file; ``is_table`` leaves them out of the limit on work."""
        if not 0 <= offset <= self.size - size:
            raise self.fault(f"{structure} lies outside the file, which has {self.size} bytes",
                             offset)  # fmt: skip
        if not is_table:
            self._work += max(size, LEAST_WORK)
            if self._work > WORK_LIMIT:
                raise self.fault(f"{structure}: more entries than any library has", offset)
        data = b""
        while len(data) < size:
            try:
                piece = os.pread(self._fd, size - len(data), offset + len(data))
            except OSError as exc:
                raise self.fault(f"{structure} can't be read", offset, str(exc)) from exc
            if not piece:
                raise self.fault(f"the file became shorter while {structure} was read", offset)
            data += piece
        return data

    def record(self, kind: str, offset: int, structure: str) -> Any:
        """One record of pyelftools' ``ELFStructs``, such as ``Elf_Verneed``."""
        layout = getattr(self.structs, kind)
        return self.parsed(layout, self.read(offset, layout.sizeof(), structure), offset, structure)

    def parsed(self, layout: Any, data: bytes, offset: int, structure: str) -> Any:
        """A record from bytes that were read: the one door for pyelftools' exceptions."""
        try:
            return layout.parse(data)
        except ConstructError as exc:
            raise self.fault(f"{structure} has a field of no known value", offset) from exc

    def fault(self, what: str, offset: int, detail: str = "") -> ElfError:
        """The error that names this file and the place."""
        place = min(max(offset, 0), self.size)
        return ElfError(what, path=self.path, byte_offset=place, detail=detail)

    def program_headers(self) -> list[Any]:
        """The program headers, in file order."""
        header = self.record("Elf_Ehdr", 0, "the ELF header")
        layout, count = self.structs.Elf_Phdr, header.e_phnum
        size = layout.sizeof()
        if count and header.e_phentsize != size:
            raise self.fault(f"program headers of {header.e_phentsize} bytes, not {size}", 0)
        if count > MAX_PROGRAM_HEADERS:
            raise self.fault(f"{count} program headers, more than any library has", 0)
        structure = "the program header table"
        table = self.read(header.e_phoff, count * size, structure)
        return [
            self.parsed(layout, table[at : at + size], header.e_phoff + at, structure)
            for at in range(0, len(table), size)
        ]

    def _read_identity(self) -> tuple[Identity, ELFStructs]:
        if self.size < IDENT_BYTES:
            raise self.fault(f"the file is too short for an ELF header: {self.size} bytes", 0)
        ident = self.read(0, IDENT_BYTES, "the ELF header")
        if ident[:4] != MAGIC:
            raise self.fault(f"no ELF file: it begins with {ident[:4]!r}", 0)
        bits, order, version = {1: 32, 2: 64}.get(ident[4]), ident[5], ident[6]
        if bits is None or order not in (1, 2) or version != EV_CURRENT:
            raise self.fault(
                f"the ELF header has class {ident[4]}, byte order {order}, version {version}", 4
            )
        self.structs = structs_of(bits, order == 1)
        header = self.record("Elf_Ehdr", 0, "the ELF header")
        if header.e_version not in (EV_CURRENT, "EV_CURRENT"):
            raise self.fault(f"the ELF header has version {header.e_version}", 20)
        machine = str(header.e_machine).removeprefix("EM_").lower()
        names = {"386": "i386"}
        identity = Identity(bits, order == 1, names.get(machine, machine), str(header.e_type))
        return identity, self.structs


@contextmanager
def elf_image(path: str) -> Iterator[ElfImage]:
    """An open ELF file, every failure an ElfError."""
    try:
        image = ElfImage(path)
    except (OSError, ValueError) as exc:
        if isinstance(exc, ElfError):
            raise
        raise ElfError("the file can't be opened", path=path, detail=str(exc)) from exc
    with image:
        yield image


class Dynamic:
    """The dynamic section of an ELF file, with the segments that its addresses point into."""

    def __init__(self, image: ElfImage) -> None:
        self.image = image
        headers = image.program_headers()
        self.loads = [
            Load(header.p_vaddr, header.p_offset, header.p_filesz)
            for header in headers
            if header.p_type == "PT_LOAD"
        ]
        self._check_loads()
        self.interpreter = self._interpreter(headers)
        self.tags: dict[str, int] = {}
        """Tag -> value; as in ld.so the last one counts where a tag stands twice."""
        self.needed: list[int] = []
        """String offsets of DT_NEEDED, in file order."""
        for header in headers:
            if header.p_type == "PT_DYNAMIC":
                self._read_tags(header)
        self._strings: dict[int, str] = {}

    def offset_of(self, address: int, structure: str) -> tuple[int, int]:
        """Where an address lies in the file, and how many bytes of its segment follow there."""
        for load in self.loads:
            if load.address <= address < load.address + load.size:
                into = address - load.address
                return load.offset + into, load.size - into
        raise self.image.fault(f"{structure} is at address {address:#x}, in no segment", 0)

    def table(self, tag: str, structure: str) -> tuple[int, int] | None:
        """As ``offset_of`` for the address under a tag; None where the tag is absent."""
        address = self.tags.get(tag)
        return None if address is None else self.offset_of(address, structure)

    def string(self, index: int, structure: str) -> str:
        """A string of the dynamic string table (DT_STRTAB)."""
        if index not in self._strings:
            self._strings[index] = self._read_string(index, structure)
        return self._strings[index]

    def tag_string(self, tag: str, structure: str) -> str | None:
        """The string under a tag; None where the tag is absent."""
        index = self.tags.get(tag)
        return None if index is None else self.string(index, structure)

    def _read_string(self, index: int, structure: str) -> str:
        strings = self.table("DT_STRTAB", "the string table")
        if strings is None:
            raise self.image.fault(f"{structure}: there is no string table (DT_STRTAB)", 0)
        start, room = strings
        for step in STRING_STEPS:
            length = min(step, room - index)
            if length <= 0:
                break
            text, end, _ = self.image.read(start + index, length, structure).partition(b"\0")
            if end:
                return os.fsdecode(text)
        raise self.image.fault(f"{structure}: its string has no end", start + index)

    def _check_loads(self) -> None:
        # ld.so would map the file as it is, and the process die of SIGBUS on the missing pages.
        for load in self.loads:
            if load.offset + load.size > self.image.size:
                raise self.image.fault(
                    f"the file is cut short: a segment ends at byte {load.offset + load.size}, "
                    f"and the file has {self.image.size}",
                    load.offset,
                )

    def _interpreter(self, headers: list[Any]) -> str:
        for header in headers:
            if header.p_type == "PT_INTERP":
                size = min(header.p_filesz, STRING_STEPS[1])
                text = self.image.read(header.p_offset, size, "PT_INTERP")
                return os.fsdecode(text.partition(b"\0")[0])
        return ""

    def _read_tags(self, header: Any) -> None:
        structure, layout = "the dynamic section", self.image.structs.Elf_Dyn
        start, room = self.offset_of(header.p_vaddr, structure)
        size = layout.sizeof()
        table = self.image.read(start, min(room, header.p_filesz, MAX_DYNAMIC_BYTES), structure)
        for at in range(0, len(table) - size + 1, size):
            entry = self.image.parsed(layout, table[at : at + size], start + at, structure)
            if entry.d_tag == "DT_NULL":
                return
            if entry.d_tag == "DT_NEEDED" and len(self.needed) < MAX_NEEDED:
                self.needed.append(entry.d_val)
            elif entry.d_tag == "DT_NEEDED":
                raise self.image.fault(f"it needs more than {MAX_NEEDED} libraries", start + at)
            else:
                self.tags[str(entry.d_tag)] = entry.d_val
        raise self.image.fault(f"{structure} has no end (DT_NULL)", start)


@cache
def structs_of(bits: int, is_little_endian: bool) -> ELFStructs:
    """pyelftools' record layouts for one class and byte order."""
    structs = ELFStructs(little_endian=is_little_endian, elfclass=bits)
    structs.create_basic_structs()
    structs.create_advanced_structs(None, None, None)
    return structs


def _open_regular(path: str) -> int:
    """A descriptor of a regular file; anything else could block, or act on being opened."""
    _refuse_others(path, os.stat(path).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _refuse_others(path, os.fstat(descriptor).st_mode)
    except ElfError:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_others(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ElfError("this is a folder, no library", path=path)
    if not stat.S_ISREG(mode):
        raise ElfError("this is a FIFO, socket or device, no library", path=path)
