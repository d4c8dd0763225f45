"""What one dynamic linker was built with, and what it makes of this CPU.

Read from the ld.so file itself, so that it need not be run: its default folders stand in it one
behind the other. ``ld.so --list-diagnostics`` (glibc 2.33 and later) prints the same.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

MAX_LD_SO_BYTES = 4 << 20
"""Real ones have 0.2 to 1 MB."""
FOLDER = re.compile(rb"/[\x21-\x7e]*/\Z")
MAX_FOLDER_BYTES = 256
HWCAPS_LIST = re.compile(rb"x86-64-v\d+(?::x86-64-v\d+)+\0")
CPU_INFO = "/proc/cpuinfo"
LEVEL_FLAGS = {
    "x86-64-v2": "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""Level -> the flags in /proc/cpuinfo that it adds to those of the levels before it. Source: the
x86-64 psABI, "Micro-Architecture Levels"; the choice: glibc's ``dl-hwcaps-subdirs.c``."""


@dataclass(frozen=True, slots=True)
class LdSo:
    """A dynamic linker's own facts."""

    folders: tuple[str, ...]
    """The default folders, in order."""
    hwcaps: tuple[str, ...]
    """The folders below ``glibc-hwcaps`` that it searches on this CPU, best first."""
    lib: str
    """What ``$LIB`` stands for, such as ``lib64`` or ``lib/x86_64-linux-gnu``."""
    platform: str
    """What ``$PLATFORM`` stands for."""


@lru_cache(maxsize=64)
def read_ld_so(path: str, machine: str, bits: int) -> LdSo:
    """The facts of the dynamic linker at ``path``; where it can't be read, the usual ones."""
    data = _bytes_of(path)
    folders = _folder_list(data) or _usual_folders(machine, bits)
    return LdSo(
        folders=folders,
        hwcaps=_hwcaps(data, machine),
        lib=folders[0].lstrip("/"),
        platform=machine,
    )


def _bytes_of(path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            return file.read(MAX_LD_SO_BYTES)
    except (OSError, ValueError):
        return b""


def _folder_list(data: bytes) -> tuple[str, ...]:
    """The first run of two or more names that are folders of libraries, in glibc's form."""
    run: list[str] = []
    for piece in data.split(b"\0"):
        found = FOLDER.search(piece[-MAX_FOLDER_BYTES:]) if piece.endswith(b"/") else None
        if found and b"lib" in found[0]:
            run.append(os.fsdecode(found[0]).rstrip("/"))
        elif len(run) > 1:
            break
        else:
            run.clear()
    return tuple(run)


def _usual_folders(machine: str, bits: int) -> tuple[str, ...]:
    multiarch = f"{machine}-linux-gnu"
    if Path("/usr/lib", multiarch).is_dir():
        return f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib", "/usr/lib"
    return ("/lib64", "/usr/lib64") if bits == 64 else ("/lib", "/usr/lib")


def _hwcaps(data: bytes, machine: str) -> tuple[str, ...]:
    """Levels that this linker knows and this CPU has; none before glibc 2.33, which knew none."""
    listed = HWCAPS_LIST.search(data)
    if listed is None or machine != "x86_64":
        return ()
    known = listed[0].rstrip(b"\0").decode().split(":")
    usable = cpu_levels()
    return tuple(level for level in known if level in usable)


def cpu_levels(cpu_info: str = CPU_INFO) -> tuple[str, ...]:
    """The x86-64 levels of this CPU, best first; empty where it has none or can't be asked."""
    flags = _cpu_flags(cpu_info)
    levels: list[str] = []
    for level, added in LEVEL_FLAGS.items():
        if not flags.issuperset(added.split()):
            break
        levels.insert(0, level)
    return tuple(levels)


@lru_cache(maxsize=4)
def _cpu_flags(cpu_info: str) -> frozenset[str]:
    try:
        with open(cpu_info, encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() == "flags":
                    return frozenset(value.split())
    except OSError:
        pass  # as on a machine without such flags
    return frozenset()
