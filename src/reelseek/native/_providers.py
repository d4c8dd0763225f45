"""Where a library that is missing, or too old, could come from."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from reelseek.errors import BackendUnavailableError, ElfError
from reelseek.native._elf import ElfFile, read_elf
from reelseek.native._facts import DEFAULT_FOLDERS, Facts, started_with
from reelseek.native._known import pyav_requirement
from reelseek.native._linker import Fault, FaultKind
from reelseek.native._process import torchcodec_majors
from reelseek.native._wheel_ffmpeg import (
    WheelRefusal,
    WheelRefusedError,
    no_wheel,
    prepared_copies,
    wheel_ffmpeg_major,
)

MENDED_BY_ANOTHER = (FaultKind.NOT_FOUND, FaultKind.VERSION_NOT_DEFINED, FaultKind.UNREADABLE)
"""Faults that another file of the library's name mends."""


class Providers:
    """The folders of one environment and its machine that libraries can be taken from."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.folders: list[str] = [
            folder for folder in dict.fromkeys(_folders(facts)) if os.path.isdir(folder)
        ]
        """In the order in which they would stand on a search path: the environment's own first."""
        self.wheel_refusal: WheelRefusal | None = None
        """Why PyAV's FFmpeg can't be had, once it has been asked for."""
        self.wheel_error: BackendUnavailableError | None = None
        """The same for people."""
        self.wheel_folder = ""
        """Where the copies of PyAV's FFmpeg lie, once they have been asked for."""
        self._machine = _machine_of(facts.executable)

    def add_wheel_ffmpeg(self) -> bool:
        """Add the FFmpeg inside PyAV's wheel, copied under its usual names; whether there is one.

        Where it can't be had, ``wheel_refusal`` and ``wheel_error`` say why.
        """
        try:
            paths = prepared_copies(*self._wheel(), self._facts.site_packages)
        except WheelRefusedError as exc:
            self.wheel_refusal, self.wheel_error = exc.refusal, exc.error
            return False
        self.wheel_folder = str(paths[0].parent)
        self.folders.append(self.wheel_folder)
        return True

    def _wheel(self) -> tuple[Path, str]:
        """``av.libs`` and the wheel's version, where torchcodec is built for its FFmpeg."""
        package = self._facts.packages.get("av", "")
        folder = os.path.join(os.path.dirname(package), "av.libs")
        majors = sorted(torchcodec_majors(self._facts))
        if not package or not os.path.isdir(folder):
            raise no_wheel(_other_wheel(majors, "--force-reinstall "))
        major = wheel_ffmpeg_major(Path(folder))
        if major and majors and major not in majors:
            raise WheelRefusedError(
                WheelRefusal.OTHER_MAJOR,
                f"PyAV's wheel carries FFmpeg {major}, and torchcodec is built for FFmpeg "
                f"{majors[0]} to {majors[-1]}",
                remedy=_other_wheel(majors),
            )
        return Path(folder), self._facts.versions.get("av", "")

    def of(self, fault: Fault, *, but: Collection[str] = ()) -> str:
        """The path of a library that mends the fault; empty where there is none.

        Args:
            fault: A library that is missing, lacks a version, or is shadowed by a damaged one.
            but: Folders that are not to be looked into.
        """
        if fault.kind not in MENDED_BY_ANOTHER:
            return ""
        for folder in self.folders:
            path = os.path.join(folder, fault.library)
            if folder not in but and path != fault.path and self._mends(path, fault):
                return path
        return ""

    def _mends(self, path: str, fault: Fault) -> bool:
        elf = _elf_of(path)
        if elf is None or (elf.machine, elf.bits) != self._machine:
            return False
        needs_version = fault.kind is FaultKind.VERSION_NOT_DEFINED
        return not needs_version or fault.version in elf.version_definitions


def _other_wheel(majors: Sequence[int], options: str = "") -> str:
    """What brings an FFmpeg of one of these majors, in ascending order."""
    system = f"FFmpeg {7 if 7 in majors or not majors else majors[-1]}"
    wanted = pyav_requirement(majors)
    if not wanted:
        return f"Install {system}"
    return f"Run `pip install {options}{shlex.quote(wanted)}`, or install {system}"


def _machine_of(path: str) -> tuple[str, int]:
    elf = _elf_of(path)
    return (elf.machine, elf.bits) if elf else ("", 0)


def _elf_of(path: str) -> ElfFile | None:
    try:
        return read_elf(path) if os.path.exists(path) else None
    except ElfError:
        return None  # a damaged file provides nothing


def _folders(facts: Facts) -> Iterator[str]:
    yield facts.lib_folder
    yield os.path.join(facts.base_prefix, "lib")
    for folder in facts.site_packages:
        escaped = glob.escape(folder)
        for pattern in ("nvidia/*/lib", "nvidia/cu*/lib"):
            yield from sorted(glob.glob(os.path.join(escaped, pattern)))
    if "torch" in facts.packages:
        yield os.path.join(facts.packages["torch"], "lib")
    if conda := os.environ.get("CONDA_PREFIX"):
        yield os.path.join(conda, "lib")
    # What the shell exports already, also where it is to be done without.
    exported = started_with().get("LD_LIBRARY_PATH", "")
    yield from (folder for folder in re.split("[:;]", exported) if os.path.isabs(folder))
    yield from sorted(glob.glob("/usr/local/cuda*/lib64"), reverse=True)
    yield from sorted(glob.glob("/usr/local/cuda*/targets/*/lib"), reverse=True)
    yield from DEFAULT_FOLDERS
