"""glibc's dynamic linker, emulated: which files a program or a library would get, and what fails.

Nothing is loaded. Names are searched for as ``_library_search`` says; libraries come in
breadth-first order (``_dl_map_object_deps``), a name that a mapped library answers to is not
searched for, and version needs are held against the file that was really taken
(``elf/dl-version.c``).

Not emulated: LD_AUDIT, LD_PROFILE, DT_FILTER and DT_AUXILIARY, namespaces (dlmopen), programs
with raised privileges, /etc/ld.so.preload, GLIBC_TUNABLES, the legacy hwcap folders (``tls``,
``haswell``) that glibc searched before 2.37, the size of the static TLS block, and what a library's
own initialisers do. musl's linker follows other rules.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from reelseek.errors import ElfError
from reelseek.native._elf import (
    ElfFile,
    VersionNeed,
    defined_symbols,
    read_elf,
    read_identity,
    undefined_symbols,
)
from reelseek.native._ld_cache import LdCache, read_ld_cache
from reelseek.native._ld_so import read_ld_so
from reelseek.native._library_search import FoundBy, LibrarySearch, LinkMap
from reelseek.native._linker_records import Fault, FaultKind, LinkerSetting, Loaded, LoadResult

__all__ = [
    "Fault",
    "FaultKind",
    "FoundBy",
    "LinkerSetting",
    "LoadResult",
    "Loaded",
    "simulate_load",
    "simulate_start",
]


def simulate_start(setting: LinkerSetting) -> LoadResult:
    """What the program itself maps when it starts; the program is the first of ``libraries``.

    Raises:
        ElfError: The program can't be read.
    """
    return _Process(setting).start_result


def simulate_load(path: str, setting: LinkerSetting, *, check_symbols: bool = False) -> LoadResult:
    """What ``dlopen(path, RTLD_NOW | RTLD_LOCAL)`` does in a process that has started.

    That is how Python loads extension modules and how ``ctypes.CDLL`` and
    ``torch.ops.load_library`` load libraries.

    Args:
        path: The library; a name without a slash is searched for.
        setting: The process.
        check_symbols: Also look for symbols that no library of the program's start or of this
            tree defines. Only done where every file is found.

    Raises:
        ElfError: The program can't be read.
    """
    process = _Process(setting)
    process.add_mapped(setting.mapped)
    tree = process.open(path)
    if check_symbols:
        process.check_symbols(tree)
    return process.result(tree)


class _Tree:
    """The libraries of one load, in order, with the faults found in it."""

    def __init__(self) -> None:
        self.maps: list[LinkMap] = []
        self.names: list[str] = []
        self.needed_by: list[int] = []
        self.faults: list[Fault] = []
        self._seen: set[LinkMap] = set()

    def add(self, name: str, link_map: LinkMap, needed_by: int) -> None:
        """Append what isn't there yet, with the fault in finding it."""
        if link_map in self._seen:
            return
        self._seen.add(link_map)
        self.maps.append(link_map)
        self.names.append(name)
        self.needed_by.append(needed_by)
        fault = _search_fault(name, link_map, self.chain(len(self.maps) - 1))
        if fault is not None:
            self.faults.append(fault)

    def chain(self, index: int) -> tuple[str, ...]:
        """Names from the root to a library."""
        names = [Path(self.names[index]).name]
        while self.needed_by[index] >= 0:
            index = self.needed_by[index]
            names.insert(0, Path(self.names[index]).name)
        return tuple(names)


class _Process:
    """An emulated process; ``maps`` is in the order of loading."""

    def __init__(self, setting: LinkerSetting) -> None:
        executable = os.path.realpath(setting.executable)
        program = read_elf(executable)
        self._main = LinkMap(executable, program, None, FoundBy.PATH)
        self._setting = setting
        self._maps = [self._main]
        self._not_mapped: dict[str, LinkMap] = {}
        self._by_file: dict[tuple[int, int], LinkMap] = {}
        self._remember_file(self._main)
        cache, self._cache_problem = _cache_of(setting.cache)
        self._search = LibrarySearch(
            self._main,
            read_identity(executable),
            read_ld_so(program.interpreter, program.machine, program.bits),
            setting.ld_library_path,
            cache,
            setting.folder or _current_folder(),
        )
        self.started = self._start(program)
        self.start_result = self.result(self.started)
        for link_map in self._maps:
            link_map.is_new = False

    def add_mapped(self, paths: Sequence[str]) -> None:
        """Libraries that came into the process after its start."""
        for path in paths:
            self._add_existing(path)

    def open(self, name: str) -> _Tree:
        """dlopen: map a library and all that it needs."""
        caller = self._answering(self._setting.caller) if self._setting.caller else None
        tree = _Tree()
        root = self._map(name, caller or self._main)
        if root.is_new:
            root.loader = None  # the caller's DT_RPATH is not passed on (__RTLD_CALLMAP)
        tree.add(name, root, -1)
        self._add_needed(tree)
        self._check_versions(tree)
        return tree

    def result(self, tree: _Tree) -> LoadResult:
        """The tree as what callers get."""
        libraries = (
            Loaded(name, found.path, found.found_by if found.is_new else FoundBy.MAPPED, by,
                   found.elf)
            for name, found, by in zip(tree.names, tree.maps, tree.needed_by, strict=True)
        )  # fmt: skip
        return LoadResult(tuple(libraries), tuple(tree.faults), self._cache_problem)

    def check_symbols(self, tree: _Tree) -> None:
        """Look for what the new libraries take from others, in the order of the linker's scope."""
        if any(fault.kind is not FaultKind.VERSION_NOT_DEFINED for fault in tree.faults):
            return
        known = {fault.version for fault in tree.faults}
        new = [index for index, link_map in enumerate(tree.maps) if link_map.is_new]
        try:
            wants = [undefined_symbols(tree.maps[index].path) for index in new]
            left = {want for wanted in wants for want in wanted if want[1] not in known}
            for provider in (*self.started.maps, *tree.maps):
                left = _still_missing(left, defined_symbols(provider.path))
        except ElfError as exc:
            tree.faults.append(_symbol_table_fault(tree, exc))
            return
        for index, wanted in zip(new, wants, strict=True):
            for name, version in sorted(wanted & left):
                chain = tree.chain(index)
                tree.faults.append(
                    Fault(FaultKind.UNDEFINED_SYMBOL, chain[-1], tree.maps[index].path, version,
                          name, chain)
                )  # fmt: skip

    def _start(self, program: ElfFile) -> _Tree:
        tree = _Tree()
        if program.interpreter:
            self._add_existing(program.interpreter)
        tree.add(self._main.path, self._main, -1)
        for name in self._setting.ld_preload:
            found = self._map(name, self._main)
            if found.elf is not None:  # ld.so warns of the others, and goes on
                tree.add(name, found, 0)
        self._add_needed(tree)
        self._check_versions(tree)
        return tree

    def _add_existing(self, path: str) -> None:
        try:
            elf = read_elf(path)
        except ElfError:
            return
        link_map = LinkMap(path, elf, self._main, FoundBy.MAPPED, is_new=False)
        known = self._by_file.get(_file_of(path))
        if known is not None:
            known.names.add(path)
        else:
            self._maps.append(link_map)
            self._remember_file(link_map)

    def _add_needed(self, tree: _Tree) -> None:
        # The list grows while it is walked: that makes the order breadth-first.
        for index, link_map in enumerate(tree.maps):
            for name in link_map.elf.needed if link_map.elf else ():
                found = self._map(self._search.expanded(name, link_map), link_map)
                # What is mapped has got all that it needs, even where the setting leaves it out.
                if found.elf is not None or link_map.is_new:
                    tree.add(name, found, index)

    def _map(self, name: str, loader: LinkMap) -> LinkMap:
        """The mapped library that answers to a name, or else the file that is found for it."""
        known = self._answering(name)
        if known is not None:
            return known
        found = self._search.find(name, loader)
        if found.elf is None:  # another library's search path may still lead to it
            return self._not_mapped.setdefault(name, found)
        same = self._by_file.get(_file_of(found.path))
        if same is None:
            self._remember_file(found)
            self._maps.append(found)
            same = found
        same.names.add(name)
        return same

    def _answering(self, name: str) -> LinkMap | None:
        return next((known for known in self._maps if known.answers_to(name)), None)

    def _remember_file(self, link_map: LinkMap) -> None:
        self._by_file[_file_of(link_map.path)] = link_map

    def _check_versions(self, tree: _Tree) -> None:
        for index, link_map in enumerate(tree.maps):
            if not link_map.is_new or link_map.elf is None:
                continue
            for need in link_map.elf.version_needs:
                found = self._answering(need.library)
                if found is not None and _lacks(found.elf, need):
                    tree.faults.append(_version_fault(need, found, tree.chain(index)))


def _cache_of(path: str) -> tuple[LdCache, str]:
    try:
        return read_ld_cache(path), ""
    except ElfError as exc:
        return LdCache({}), str(exc)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed; paths that count from it lead nowhere, as for ld.so
        return "/proc/self/cwd"


def _file_of(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return -1, -1
    return found.st_dev, found.st_ino


def _lacks(provider: ElfFile | None, need: VersionNeed) -> bool:
    """Whether a need is at fault: a weak one isn't, nor one of a library without any versions."""
    if provider is None or need.is_weak or not provider.version_definitions:
        return False
    return need.version not in provider.version_definitions


def _search_fault(name: str, found: LinkMap, chain: tuple[str, ...]) -> Fault | None:
    if found.elf is not None:
        return None
    if found.error is not None:
        return Fault(FaultKind.UNREADABLE, name, found.path, chain=chain, detail=str(found.error))
    if found.skipped:
        return Fault(FaultKind.WRONG_MACHINE, name, found.skipped, chain=chain)
    return Fault(FaultKind.NOT_FOUND, name, "", chain=chain)


def _version_fault(need: VersionNeed, found: LinkMap, chain: tuple[str, ...]) -> Fault:
    return Fault(
        FaultKind.VERSION_NOT_DEFINED,
        need.library,
        found.path,
        version=need.version,
        chain=(*chain, need.library),
    )


def _symbol_table_fault(tree: _Tree, error: ElfError) -> Fault:
    chain = next(
        (tree.chain(index) for index, found in enumerate(tree.maps) if found.path == error.path),
        (Path(error.path or "").name,),
    )
    return Fault(FaultKind.UNREADABLE, chain[-1], error.path or "", chain=chain, detail=str(error))


def _still_missing(
    missing: set[tuple[str, str]], defined: frozenset[tuple[str, str]]
) -> set[tuple[str, str]]:
    """A definition without a version serves every need; a need without one takes any version."""
    left = {want for want in missing if want not in defined and (want[0], "") not in defined}
    wanted = {name for name, version in left if not version}
    if wanted:
        left -= {(name, "") for name, _ in defined if name in wanted}
    return left
