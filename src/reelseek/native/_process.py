"""What a process maps up to ``import torchcodec``, and what torchcodec's loads then meet.

torchcodec tries one set of libraries for each FFmpeg major, the highest first, and takes the
first that loads whole (``_internally_replaced_utils.py`` in its package). torch has been imported
by then, so libstdc++ is usually mapped already.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reelseek.errors import ElfError
from reelseek.native._elf import defined_symbols, undefined_symbols
from reelseek.native._facts import Facts
from reelseek.native._linker import (
    Fault,
    FaultKind,
    LinkerSetting,
    LoadResult,
    simulate_load,
    simulate_start,
)

CORE_NAME = re.compile(r"libtorchcodec_(?:core|decoder)(\d{1,3})\.so")
"""The library of one FFmpeg major: ``decoder`` up to torchcodec 0.4."""
FFMPEG_NAME = re.compile(
    r"lib(avutil|avcodec|avformat|avdevice|avfilter|swscale|swresample|postproc)\.so\.\d+"
)
MAX_SYMBOL_FAULTS = 20


@dataclass(frozen=True, slots=True)
class Process:
    """The state of a process in which ``import torchcodec`` comes next."""

    setting: LinkerSetting
    """With what is mapped by then."""
    mapped_by: Mapping[str, str]
    """For each mapped file, what it was mapped for: ``the interpreter``, ``torch``."""
    faults: tuple[Fault, ...]
    """What keeps the interpreter or torch themselves from loading."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """torchcodec's libraries for one FFmpeg major, in one process."""

    ffmpeg_major: int
    results: tuple[LoadResult, ...]
    """Of the core library, then of the others that are loaded after it."""
    faults: tuple[Fault, ...]

    @property
    def loads(self) -> bool:
        """Whether torchcodec works with this FFmpeg."""
        return not self.faults

    @property
    def missing_ffmpeg(self) -> tuple[str, ...]:
        """The sonames of FFmpeg's own libraries that were not found."""
        return tuple(fault.library for fault in self.faults if is_missing_ffmpeg(fault))

    @property
    def other_faults(self) -> tuple[Fault, ...]:
        """What is wrong besides FFmpeg's own libraries."""
        return tuple(fault for fault in self.faults if not is_missing_ffmpeg(fault))

    @property
    def avutil(self) -> str:
        """The soname by which the FFmpeg major is known."""
        names = (library.name for result in self.results for library in result.libraries)
        return next((name for name in names if name.startswith("libavutil.so.")), "")

    def path_of(self, stem: str) -> str:
        """The path of the library whose name begins so; empty where it wasn't found."""
        libraries = (library for result in self.results for library in result.libraries)
        return next((found.path for found in libraries if found.name.startswith(stem)), "")


def is_missing_ffmpeg(fault: Fault) -> bool:
    """Whether the fault is that a library of FFmpeg's own isn't found."""
    return fault.kind is FaultKind.NOT_FOUND and bool(FFMPEG_NAME.fullmatch(fault.library))


def torch_is_imported(
    facts: Facts, ld_library_path: Sequence[str], *, with_torch: bool = True
) -> Process:
    """A new process of the environment's Python that has imported torch.

    Raises:
        ElfError: The interpreter is no ELF file.
    """
    setting = LinkerSetting(
        executable=facts.executable,
        ld_library_path=_that_exist(ld_library_path),
        ld_preload=facts.ld_preload,
    )
    started = simulate_start(setting)
    process = Process(setting, {}, started.faults)
    process = after_load(process, started, "the interpreter")
    return import_torch(facts, process) if with_torch else process


def _that_exist(folders: Sequence[str]) -> tuple[str, ...]:
    """Without folders that aren't there: asked for once, and not again for each library."""
    return tuple(
        folder
        for folder in dict.fromkeys(folders)
        if not os.path.isabs(folder) or "$" in folder or os.path.isdir(folder)
    )


def import_torch(facts: Facts, process: Process) -> Process:
    """The process after ``import torch``."""
    faults = list(process.faults)
    for path in _torch_files(facts.packages.get("torch", "")):
        result = simulate_load(path, process.setting)
        process = after_load(process, result, "torch")
        faults += result.faults
    return replace(process, faults=tuple(faults))


def after_load(process: Process, result: LoadResult, what: str) -> Process:
    """The process once a library has been loaded for ``what``."""
    new = [path for path in _paths(result) if path not in process.mapped_by]
    mapped = (*process.setting.mapped, *new)
    mapped_by = {**process.mapped_by, **dict.fromkeys(new, what)}
    return replace(process, setting=replace(process.setting, mapped=mapped), mapped_by=mapped_by)


def torchcodec_majors(facts: Facts) -> tuple[int, ...]:
    """The FFmpeg majors that the installed torchcodec has libraries for, highest first."""
    there = glob.glob(os.path.join(glob.escape(facts.packages["torchcodec"]), "lib*.so"))
    majors = {
        int(found[1])
        for path in (*there, *facts.missing_files.get("torchcodec", ()))
        if (found := CORE_NAME.fullmatch(os.path.basename(path)))
    }
    return tuple(sorted(majors, reverse=True))


def try_major(facts: Facts, process: Process, major: int) -> Attempt:
    """Simulate what torchcodec does for one FFmpeg major."""
    results: list[LoadResult] = []
    faults: list[Fault] = []
    for path in _torchcodec_files(facts, major):
        result = _loaded(path, process)
        process = after_load(process, result, "torchcodec")
        results.append(result)
        known = {(fault.kind, fault.library, fault.version) for fault in faults}
        faults += [
            fault
            for fault in result.faults
            if (fault.kind, fault.library, fault.version) not in known
        ]
    return Attempt(major, tuple(results), tuple(faults))


def _loaded(path: str, process: Process) -> LoadResult:
    """The load of one of torchcodec's own files; where it can't be opened, it is damaged."""
    result = simulate_load(path, process.setting)
    name = os.path.basename(path)
    faults = tuple(
        Fault(FaultKind.UNREADABLE, name, path, chain=(name,), detail="it can't be opened")
        if fault.kind is FaultKind.NOT_FOUND and fault.library == path
        else fault
        for fault in result.faults
    )
    return replace(result, faults=faults)


def try_all(facts: Facts, process: Process, *, check_symbols: bool = True) -> tuple[Attempt, ...]:
    """Simulate every FFmpeg major in torchcodec's order, up to the first that loads."""
    attempts: list[Attempt] = []
    for major in torchcodec_majors(facts):
        attempt = try_major(facts, process, major)
        if check_symbols and not attempt.other_faults:
            attempt = with_symbols(facts, process, attempt)
        attempts.append(attempt)
        if attempt.loads:
            break
    return tuple(attempts)


def with_symbols(facts: Facts, process: Process, attempt: Attempt) -> Attempt:
    """The attempt, with the symbols that torchcodec's own libraries want and nothing has.

    Only names without a version are looked at: those with one are settled by the version needs.
    They are torch's and Python's, which is where a torchcodec of another torch fails.
    """
    own = _torchcodec_files(facts, attempt.ffmpeg_major)
    missing = {name: path for path in own for name in _unversioned(path)}
    chain = {path: os.path.basename(path) for path in own}
    for path in _scope(facts, process, attempt, own):
        if not missing:
            return attempt
        for name in {name for name, _ in _symbols_of(path)} & missing.keys():
            del missing[name]
    faults = [
        Fault(
            kind=FaultKind.UNDEFINED_SYMBOL,
            library=chain[path],
            path=path,
            version="",
            symbol=name,
            chain=(chain[path],),
        )
        for name, path in sorted(missing.items())[:MAX_SYMBOL_FAULTS]
    ]
    return replace(attempt, faults=(*attempt.faults, *faults))


def _scope(facts: Facts, process: Process, attempt: Attempt, own: Sequence[str]) -> Iterator[str]:
    """The files in which a symbol may be, those of torchcodec and torch first."""
    torch = facts.packages.get("torch", "\0")
    mapped = [path for path in process.mapped_by if path != facts.executable]
    loaded = [path for result in attempt.results for path in _paths(result)]
    everything = [*own, *mapped, *loaded, facts.executable]
    nearest = sorted(everything, key=lambda path: not path.startswith((torch, *own)))
    yield from dict.fromkeys(nearest)


def _unversioned(path: str) -> set[str]:
    try:
        return {name for name, version in undefined_symbols(path) if not version}
    except ElfError:
        return set()  # its load has named the fault


def _symbols_of(path: str) -> Iterable[tuple[str, str]]:
    try:
        return defined_symbols(path)
    except ElfError:
        return ()  # its load has named the fault


def _torch_files(torch: str) -> list[str]:
    """What ``import torch`` loads, in order: its global dependencies, then its extension."""
    if not torch:
        return []
    names = ("lib/libtorch_global_deps.so", "_C.*.so", "_C.so", "lib/libtorch_python.so")
    found = [
        sorted(glob.glob(os.path.join(glob.escape(torch), *name.split("/")))) for name in names
    ]
    return [path for paths in found for path in paths]


def _torchcodec_files(facts: Facts, major: int) -> tuple[str, ...]:
    """The libraries of one FFmpeg major, in the order in which torchcodec loads them."""
    folder, missing = facts.packages["torchcodec"], facts.missing_files.get("torchcodec", ())
    stems = ("core", "decoder", "custom_ops", "pybind_ops")
    paths = [os.path.join(folder, f"libtorchcodec_{stem}{major}.so") for stem in stems]
    paths.append(os.path.join(folder, "libtorchcodec_pybind_ops.so"))  # of every major, since 0.16
    return tuple(path for path in paths if path in missing or os.path.lexists(path))


def _paths(result: LoadResult) -> list[str]:
    return [library.path for library in result.libraries if library.path]
