"""The dynamic linker's cache in all its layouts, against ldconfig, and damaged."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from reelseek.errors import ElfError
from reelseek.native._ld_cache import parse_ld_cache, read_ld_cache
from tests.conftest import skip_without
from tests.native.ld_caches import new_cache, old_cache
from tests.native.tiny_elf import tiny_elf

X86_64, OTHER = 0x0303, 0x0003
NAMED = 1 << 62


def test_entry_is_found_by_its_name() -> None:
    cache = parse_ld_cache(new_cache([("libb.so.1", "/opt/libb.so.1", X86_64, 0)]), "cache")
    assert cache.path_of("libb.so.1", "x86_64") == "/opt/libb.so.1"
    assert cache.path_of("libc.so.6", "x86_64") is None


def test_entry_of_another_abi_is_passed_over() -> None:
    rows = [("libb.so", "/lib32/libb.so", OTHER, 0), ("libb.so", "/lib64/libb.so", X86_64, 0)]
    cache = parse_ld_cache(new_cache(rows), "cache")
    assert cache.path_of("libb.so", "x86_64") == "/lib64/libb.so"
    assert cache.path_of("libb.so", "i386") == "/lib32/libb.so"
    assert cache.path_of("libb.so", "aarch64") is None


def test_best_folder_for_the_cpu_is_chosen() -> None:
    rows = [
        ("libb.so", "/v2", X86_64, NAMED + 0), ("libb.so", "/v4", X86_64, NAMED + 1),
        ("libb.so", "/v3", X86_64, NAMED + (5 << 32) + 2), ("libb.so", "/plain", X86_64, 0),
    ]  # fmt: skip
    cache = parse_ld_cache(new_cache(rows, ["x86-64-v2", "x86-64-v4", "x86-64-v3"]), "cache")
    assert cache.path_of("libb.so", "x86_64", ["x86-64-v3", "x86-64-v2"]) == "/v3"
    assert cache.path_of("libb.so", "x86_64", ["x86-64-v2"]) == "/v2"
    assert cache.path_of("libb.so", "x86_64") == "/plain"


def test_legacy_hwcap_entry_is_passed_over() -> None:
    rows = [("libb.so", "/haswell", X86_64, 1 << 52), ("libb.so", "/plain", X86_64, 0)]
    assert parse_ld_cache(new_cache(rows), "cache").path_of("libb.so", "x86_64") == "/plain"


def test_new_layout_behind_the_old_one_is_taken() -> None:
    for count in (1, 2):
        rows = [("libb.so", "/old", X86_64, 0)] * count
        data = old_cache(rows, new_cache([("libb.so", "/new", X86_64, 0)]))
        assert parse_ld_cache(data, "cache").path_of("libb.so", "x86_64") == "/new"


def test_old_layout_alone_is_read() -> None:
    data = old_cache([("libb.so", "/old", X86_64, 0)])
    assert parse_ld_cache(data, "cache").path_of("libb.so", "x86_64") == "/old"


def test_missing_cache_is_an_empty_one(tmp_path: Path) -> None:
    assert read_ld_cache(str(tmp_path / "absent")).entries == {}


def test_fifo_and_folder_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/zero")):
        with pytest.raises(ElfError, match="no regular file"):
            read_ld_cache(str(path))


@pytest.mark.parametrize(
    ("place", "value", "structure"),
    [
        (0, b"x", "no linker cache"),
        (20, b"\xff\xff\xff\x7f", "entries"),
        (28, b"\1", "byte order"),
        (32, b"\xff\xff\xff\x7f", "extension"),
        (52, b"\xff\xff\xff\x7f", "name"),
    ],
)
def test_damaged_cache_is_refused_with_structure_and_place(
    place: int, value: bytes, structure: str
) -> None:
    data = bytearray(new_cache([("libb.so", "/opt/libb.so", X86_64, 0)], ["x86-64-v2"]))
    data[place : place + len(value)] = value
    with pytest.raises(ElfError, match=structure) as error:
        parse_ld_cache(bytes(data), "the/cache")
    assert error.value.path == "the/cache"
    assert error.value.byte_offset is not None


def test_names_that_overlap_cannot_fill_the_memory() -> None:
    count = 20_000
    strings = b"a" * 4000 + b"\0"
    base = 48 + 24 * count
    header = b"glibc-ld.so.cache1.1" + struct.pack("<IIB19x", count, len(strings), 2)
    entries = b"".join(
        struct.pack("<iIIIQ", X86_64, base + i % 99, base, 0, 0) for i in range(count)
    )
    with pytest.raises(ElfError, match="too many"):
        parse_ld_cache(header + entries + strings, "cache")


def _ldconfig() -> str:
    program = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin")
    if program is None:
        skip_without("ldconfig", "there is no ldconfig")
    return str(program)


def test_systems_cache_is_read_as_ldconfig_prints_it() -> None:
    done = subprocess.run([_ldconfig(), "-p"], capture_output=True, text=True, check=True)
    printed = [line.split(" => ") for line in done.stdout.splitlines() if " => " in line]
    ours = [
        (entry.name, entry.path)
        for entries in read_ld_cache().entries.values()
        for entry in entries
    ]
    assert sorted(ours) == sorted((left.split()[0], path) for left, path in printed)


@pytest.mark.parametrize("layout", ["new", "compat", "old"])
def test_cache_that_ldconfig_writes_is_read(tmp_path: Path, layout: str) -> None:
    best = tmp_path / "lib" / "glibc-hwcaps" / "x86-64-v3"
    best.mkdir(parents=True)
    for folder in (tmp_path / "lib", best):
        (folder / "libtiny.so.1").write_bytes(_library_for_ldconfig())
    (tmp_path / "conf").write_text(f"{tmp_path}/lib\n")
    done = subprocess.run(
        [_ldconfig(), "-X", "-c", layout, "-C", str(tmp_path / "cache"), "-f",
         str(tmp_path / "conf")], capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not (tmp_path / "cache").exists():
        skip_without("ldconfig", f"ldconfig writes no cache here: {done.stderr}")
    cache = read_ld_cache(str(tmp_path / "cache"))
    if layout == "old":  # it has no word for folders for some CPUs
        assert "libtiny.so.1" in cache.entries
    else:
        assert cache.path_of("libtiny.so.1", "x86_64") == f"{tmp_path}/lib/libtiny.so.1"
        assert cache.path_of("libtiny.so.1", "x86_64", ["x86-64-v3"]) == f"{best}/libtiny.so.1"


def _library_for_ldconfig() -> bytes:
    return tiny_elf(needed=("libc.so.6",))
