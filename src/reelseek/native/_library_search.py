"""Where the dynamic linker looks for a library, in its order.

Source: ld.so(8) and glibc's ``elf/dl-load.c`` (``_dl_map_object``, ``open_path``, ``open_verify``,
``fillin_rpath``, ``expand_dynamic_string_token``).
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from reelseek.errors import ElfError
from reelseek.native._elf import ElfFile, read_elf, read_identity
from reelseek.native._elf_image import Identity
from reelseek.native._ld_cache import LdCache
from reelseek.native._ld_so import LdSo

TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")
GOES_ON_AFTER = (errno.ENOENT, errno.EACCES)
"""Failures to open a file after which the search goes on in the list's next folder. Another one, in
a folder that exists, ends the search in that list."""


class FoundBy(Enum):
    """What led the linker to a file."""

    MAPPED = "already in the process"
    DT_RPATH = "DT_RPATH"
    LD_LIBRARY_PATH = "LD_LIBRARY_PATH"
    DT_RUNPATH = "DT_RUNPATH"
    CACHE = "ld.so.cache"
    DEFAULT = "a default folder"
    PATH = "its path"


@dataclass(slots=True, eq=False)
class LinkMap:
    """A file in the emulated process: glibc's ``struct link_map``."""

    path: str
    """As it was found: absolute, its links not followed. Empty for a name that wasn't found."""
    elf: ElfFile | None
    """None where there is no file, or the file can't be loaded."""
    loader: LinkMap | None
    """Whose need brought it; None for the program and for what dlopen was called with."""
    found_by: FoundBy | None
    names: set[str] = field(default_factory=set)
    """The names under which it was asked for, besides its soname."""
    is_new: bool = True
    """Mapped by what is simulated, rather than there before."""
    error: ElfError | None = None
    """Why the file that was found can't be loaded."""
    skipped: str = ""
    """For a name that wasn't found: a file of that name for another machine."""

    def answers_to(self, name: str) -> bool:
        """Whether the linker takes this for a name, instead of searching."""
        if name == self.path or name in self.names:
            return True
        return self.elf is not None and bool(self.elf.soname) and name == self.elf.soname

    @property
    def origin(self) -> str:
        """What ``$ORIGIN`` stands for in this file."""
        return self.path.rpartition("/")[0] or "/"


class LibrarySearch:
    """The search for files in one process.

    Args:
        main: The program.
        identity: The program's class and machine, which a library has to share.
        ld_so: Facts of its dynamic linker.
        ld_library_path: The variable's entries.
        cache: The linker's cache.
        folder: The current folder, which relative entries count from.
    """

    def __init__(
        self,
        main: LinkMap,
        identity: Identity,
        ld_so: LdSo,
        ld_library_path: Sequence[str],
        cache: LdCache,
        folder: str,
    ) -> None:
        self._main, self._identity, self._ld_so = main, identity, ld_so
        self._cache, self._folder = cache, folder
        entries = ":".join(ld_library_path)
        self._ld_library_path = self._folders(re.split("[:;]", entries), main) if entries else []
        self._subfolders: dict[str, tuple[str, ...]] = {}
        self._skipped = ""

    def find(self, name: str, loader: LinkMap) -> LinkMap:
        """The file for a name that no mapped library answers to.

        A file that is there but can't be loaded ends the search, as in ld.so; a file for another
        machine or class does not.
        """
        self._skipped = ""
        try:
            path, found_by = self._search(name, loader)
        except _UnusableError as exc:
            return LinkMap(exc.path, None, loader, exc.found_by, error=exc.error)
        if found_by is None:
            return LinkMap("", None, loader, None, skipped=self._skipped)
        try:
            elf = read_elf(path)
            if elf.is_program:
                raise ElfError("this is a program, which can't be loaded as a library", path=path)
        except ElfError as exc:
            return LinkMap(path, None, loader, found_by, error=exc)
        return LinkMap(path, elf, loader, found_by)

    def _search(self, name: str, loader: LinkMap) -> tuple[str, FoundBy | None]:
        if "/" in name:
            path = self._absolute(self.expanded(name, loader))
            usable = bool(path) and self._is_usable(path, FoundBy.PATH)
            return path, FoundBy.PATH if usable else None
        for folders, found_by in self._lists(loader):
            found = self._in_folders(name, folders, found_by)
            if found:
                return found, found_by
        return self._in_system(name, loader)

    def _lists(self, loader: LinkMap) -> Iterator[tuple[list[str], FoundBy]]:
        elf = loader.elf
        runpath = elf.runpath if elf else ()
        if not runpath:
            for ancestor in self._ancestors(loader):
                yield self._rpath(ancestor), FoundBy.DT_RPATH
        yield self._ld_library_path, FoundBy.LD_LIBRARY_PATH
        if any(runpath):
            yield self._folders(runpath, loader), FoundBy.DT_RUNPATH

    def _ancestors(self, loader: LinkMap) -> Iterator[LinkMap]:
        """The loader, what brought that, and so on; the program in any case."""
        ancestor: LinkMap | None = loader
        seen_main = False
        while ancestor is not None:
            seen_main |= ancestor is self._main
            yield ancestor
            ancestor = ancestor.loader
        if not seen_main:
            yield self._main

    def _rpath(self, loader: LinkMap) -> list[str]:
        rpath = loader.elf.rpath if loader.elf else ()
        return self._folders(rpath, loader) if any(rpath) else []

    def _in_system(self, name: str, loader: LinkMap) -> tuple[str, FoundBy | None]:
        no_default = loader.elf is not None and loader.elf.flags_1_nodeflib
        cached = self._cache.path_of(name, self._identity.machine, self._ld_so.hwcaps)
        defaults = tuple(f"{folder}/" for folder in self._ld_so.folders)
        if (
            cached
            and not (no_default and cached.startswith(defaults))
            and self._is_usable(cached, FoundBy.CACHE)
        ):
            return cached, FoundBy.CACHE
        if not no_default:
            found = self._in_folders(name, self._ld_so.folders, FoundBy.DEFAULT)
            if found:
                return found, FoundBy.DEFAULT
        return "", None

    def _in_folders(self, name: str, folders: Sequence[str], found_by: FoundBy) -> str:
        for folder in folders:
            for subfolder in self._subfolders_of(folder):
                path = f"{folder.rstrip('/')}/{subfolder}{name}"
                try:
                    if self._is_usable(path, found_by):
                        return path
                except OSError:
                    if _is_folder(f"{folder}/{subfolder}"):
                        return ""
        return ""

    def _subfolders_of(self, folder: str) -> tuple[str, ...]:
        """The folders for this CPU, best first, then the folder itself."""
        if folder not in self._subfolders:
            self._subfolders[folder] = (
                *(
                    f"glibc-hwcaps/{level}/"
                    for level in self._ld_so.hwcaps
                    if _is_folder(f"{folder}/glibc-hwcaps/{level}")
                ),
                "",
            )
        return self._subfolders[folder]

    def _is_usable(self, path: str, found_by: FoundBy) -> bool:
        """Whether the linker takes this file; it goes on where the file is for another machine.

        Raises:
            _UnusableError: The file ends the search.
            OSError: It can't be opened, for another reason than that it isn't there.
        """
        try:
            identity = read_identity(path)
        except OSError as exc:
            if exc.errno in GOES_ON_AFTER or found_by in (FoundBy.PATH, FoundBy.CACHE):
                return False
            raise
        except ElfError as exc:
            raise _UnusableError(path, found_by, exc) from exc
        except ValueError:  # a NUL in a path of the environment
            return False
        ours = self._identity
        if identity.bits != ours.bits or (
            identity.is_little_endian == ours.is_little_endian and identity.machine != ours.machine
        ):
            self._skipped = self._skipped or path
            return False
        if identity.is_little_endian != ours.is_little_endian:
            raise _UnusableError(path, found_by, ElfError("wrong byte order", path=path))
        if identity.elf_type not in ("ET_DYN", "ET_EXEC"):
            what = f"a file of type {identity.elf_type}, no library"
            raise _UnusableError(path, found_by, ElfError(what, path=path))
        return True

    def _folders(self, entries: Sequence[str], owner: LinkMap) -> list[str]:
        """Folders of a search path; an empty entry is the current folder."""
        out = []
        for entry in entries:
            expanded = self.expanded(entry, owner)
            if expanded or not entry:
                out.append(self._absolute(expanded.rstrip("/") or expanded[:1]))
        return list(dict.fromkeys(out))

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._folder.rstrip('/')}/{path}".rstrip("/")

    def expanded(self, text: str, owner: LinkMap) -> str:
        """``$ORIGIN``, ``$LIB`` and ``$PLATFORM`` replaced; other ``$`` stand as they are."""
        values = {
            "ORIGIN": owner.origin,
            "LIB": self._ld_so.lib,
            "PLATFORM": self._ld_so.platform,
        }
        return TOKEN.sub(lambda match: values[match[1] or match[2]], text)


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


class _UnusableError(Exception):
    """A file was found that the linker neither takes nor passes over."""

    def __init__(self, path: str, found_by: FoundBy, error: ElfError) -> None:
        super().__init__(str(error))
        self.path, self.found_by, self.error = path, found_by, error
