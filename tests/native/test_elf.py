"""Reading ELF files: what is found, against pyelftools and readelf's view, and what is refused."""

from __future__ import annotations

import os
import struct
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

from reelseek.errors import ElfError
from reelseek.native._elf import (
    VersionNeed,
    defined_symbols,
    read_elf,
    read_identity,
    undefined_symbols,
)
from tests.conftest import needs
from tests.native.tiny_elf import tiny_elf

MOST_LIBRARIES = 60


def _written(folder: Path, data: bytes, name: str = "libtiny.so.1") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def _installed() -> Iterator[Path]:
    """Libraries that are at hand wherever the tests run."""
    places = [Path(numpy.__file__).parents[1], Path(sysconfig.get_config_var("LIBDIR"))]
    found = (path for place in places for path in sorted(place.rglob("*.so*")))
    for path in found:
        with path.open("rb") as file:
            if file.read(4) == b"\x7fELF":
                yield path


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("bits", [32, 64])
def test_every_class_and_byte_order_is_read(tmp_path: Path, bits: int, order: str) -> None:
    path = _written(tmp_path, tiny_elf(bits=bits, order=order))
    elf = read_elf(path)
    assert (elf.bits, elf.machine, elf.soname) == (bits, "x86_64", "libtiny.so.1")
    assert elf.needed == ("libone.so.1", "libtwo.so.2")
    assert elf.runpath == ("$ORIGIN", "/opt/lib")
    assert elf.version_needs == (
        VersionNeed("libone.so.1", "ONE_1", False),
        VersionNeed("libone.so.1", "ONE_2", True),
    )
    assert elf.version_definitions == {"libtiny.so.1", "TINY_1"}
    assert undefined_symbols(path) == {("takes", "ONE_1")}
    assert defined_symbols(path) == {("gives", "TINY_1"), ("plain", "")}


def test_rpath_is_ignored_where_a_runpath_stands_beside_it(tmp_path: Path) -> None:
    both = {"RPATH": "/old", "RUNPATH": "/new"}
    elf = read_elf(_written(tmp_path, tiny_elf(texts=both)))
    assert (elf.rpath, elf.runpath) == ((), ("/new",))


def test_rpath_is_split_and_not_expanded(tmp_path: Path) -> None:
    elf = read_elf(_written(tmp_path, tiny_elf(texts={"RPATH": "$ORIGIN/../lib::/b"})))
    assert (elf.rpath, elf.runpath) == (("$ORIGIN/../lib", "", "/b"), ())


def test_nodeflib_is_read(tmp_path: Path) -> None:
    assert read_elf(_written(tmp_path, tiny_elf(flags_1=0x800))).flags_1_nodeflib


def test_file_is_read_again_after_it_changed(tmp_path: Path) -> None:
    assert read_elf(_written(tmp_path, tiny_elf())).soname == "libtiny.so.1"
    assert read_elf(_written(tmp_path, tiny_elf(soname="libother.so"))).soname == "libother.so"


def test_installed_libraries_are_read_as_pyelftools_reads_them() -> None:
    compared = 0
    for path in list(_installed())[:MOST_LIBRARIES]:
        elf = read_elf(str(path))
        with path.open("rb") as file:
            theirs = ELFFile(file)
            dynamic = next(s for s in theirs.iter_segments() if isinstance(s, DynamicSegment))
            tags = list(dynamic.iter_tags())
            assert list(elf.needed) == [t.needed for t in tags if t.entry.d_tag == "DT_NEEDED"]
            assert elf.soname == next((t.soname for t in tags if t.entry.d_tag == "DT_SONAME"), "")
            assert elf.version_needs == tuple(_their_needs(theirs))
            assert elf.version_definitions == set(_their_definitions(theirs))
        compared += 1
    assert compared > 20


def _their_needs(elf: ELFFile) -> Iterator[VersionNeed]:
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for need, entries in section.iter_versions():
                for entry in entries:
                    yield VersionNeed(need.name, entry.name, bool(entry["vna_flags"] & 2))


def _their_definitions(elf: ELFFile) -> Iterator[str]:
    for section in elf.iter_sections():
        if isinstance(section, GNUVerDefSection):
            yield from (next(names).name for _, names in section.iter_versions())


def test_symbols_are_those_that_pyelftools_finds() -> None:
    for path in list(_installed())[:4]:
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            assert isinstance(table, SymbolTableSection)
            symbols = [s for s in table.iter_symbols() if s["st_info"]["bind"] != "STB_LOCAL"]
            undefined = {
                s.name for s in symbols
                if s["st_shndx"] == "SHN_UNDEF" and s["st_info"]["bind"] != "STB_WEAK"
            }  # fmt: skip
            defined = {s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF"}
        assert {name for name, _ in undefined_symbols(str(path))} == undefined
        assert {name for name, _ in defined_symbols(str(path))} == defined


def test_section_headers_are_not_needed(tmp_path: Path) -> None:
    original = next(_installed())
    data = bytearray(original.read_bytes())
    data[40:48] = b"\xff" * 8  # e_shoff
    data[60:64] = b"\xff" * 4  # e_shnum, e_shstrndx
    stripped = _written(tmp_path, bytes(data))
    assert read_elf(stripped).needed == read_elf(str(original)).needed
    assert defined_symbols(stripped) == defined_symbols(str(original))


def test_large_library_takes_milliseconds() -> None:
    needs("torch")
    library = Path(numpy.__file__).parents[1] / "torch" / "lib" / "libtorch_cpu.so"
    read_identity(str(library))
    started = time.process_time()
    assert "libc10.so" in read_elf(str(library)).needed
    assert time.process_time() - started < 0.1


def test_file_cut_anywhere_is_read_or_refused_with_the_place(tmp_path: Path) -> None:
    whole = tiny_elf()
    for length in range(0, len(whole), 3):
        with pytest.raises(ElfError) as error:
            read_elf(_written(tmp_path, whole[:length]))
        assert error.value.byte_offset is not None
        assert 0 <= error.value.byte_offset <= length


def test_text_file_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(ElfError, match=r"no ELF file: it begins with b'INPU'"):
        read_elf(_written(tmp_path, b"INPUT(libncurses.so.6 -ltinfo)\n"))


def test_empty_file_is_too_short(tmp_path: Path) -> None:
    with pytest.raises(ElfError, match="too short"):
        read_elf(_written(tmp_path, b""))


def test_fifo_device_and_folder_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero"), Path("/dev/tty"), tmp_path):
        with pytest.raises(ElfError, match=r"no library|can't be opened"):
            read_elf(str(path))


def test_missing_file_is_an_elf_error_with_the_systems_word(tmp_path: Path) -> None:
    with pytest.raises(ElfError, match="No such file"):
        read_elf(str(tmp_path / "absent.so"))
    with pytest.raises(FileNotFoundError):
        read_identity(str(tmp_path / "absent.so"))


def test_name_with_a_nul_is_refused() -> None:
    with pytest.raises(ElfError, match="can't be opened"):
        read_elf("lib\0.so")


def test_sparse_file_of_a_terabyte_costs_nothing(tmp_path: Path) -> None:
    path = _written(tmp_path, tiny_elf())
    os.truncate(path, 1 << 40)
    assert read_elf(path).soname == "libtiny.so.1"


def test_hash_table_that_claims_two_billion_buckets_is_refused(tmp_path: Path) -> None:
    table = tiny_elf().index(struct.pack("<4I", 1, 3, 1, 0))  # DT_GNU_HASH
    data = bytearray(tiny_elf())
    data[64 + 32 : 64 + 40] = (1 << 40).to_bytes(8, "little")  # p_filesz of the PT_LOAD
    data[table : table + 4] = b"\xff\xff\xff\x7f"
    path = _written(tmp_path, bytes(data))
    os.truncate(path, 1 << 40)
    with pytest.raises(ElfError, match="DT_GNU_HASH has 2147483647 buckets"):
        defined_symbols(path)


def test_names_that_overlap_cannot_fill_the_memory(tmp_path: Path) -> None:
    few, many = (_written(tmp_path, tiny_elf(copies=n), f"{n}.so") for n in (5, 5000))
    assert ("plain", "") in defined_symbols(few)
    with pytest.raises(ElfError, match="overlaps"):
        defined_symbols(many)


def test_version_list_without_end_is_refused(tmp_path: Path) -> None:
    data = tiny_elf()
    looped = data.replace(b"\x01\0\x02\0", b"\x01\0\xff\xff", 1)
    assert read_elf(_written(tmp_path, looped)).version_needs  # the count is not what ends it
    place = data.index(b"\x01\0\x02\0")
    endless = data[: place + 12] + b"\x10\0\0\0" + data[place + 16 :]  # vn_next
    with pytest.raises(ElfError):
        read_elf(_written(tmp_path, endless))


def test_thousands_of_program_headers_are_refused(tmp_path: Path) -> None:
    data = bytearray(tiny_elf())
    data[56:58] = b"\xff\xff"  # e_phnum
    path = _written(tmp_path, bytes(data) + bytes(4 << 20))
    with pytest.raises(ElfError, match="65535 program headers"):
        read_elf(path)


def test_thousands_of_needs_are_refused(tmp_path: Path) -> None:
    many = tuple(f"l{number}" for number in range(5000))
    with pytest.raises(ElfError, match="more than 4096 libraries"):
        read_elf(_written(tmp_path, tiny_elf(needed=many)))
