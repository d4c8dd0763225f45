"""What the emulated linker is given, and what it gives: a process, a tree of libraries, faults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from reelseek.native._elf import ElfFile
from reelseek.native._library_search import FoundBy


@dataclass(frozen=True, slots=True)
class LinkerSetting:
    """A process, as the dynamic linker sees it."""

    executable: str
    """Path of the program; links are followed, as the kernel does. Its folder is ``$ORIGIN``."""
    ld_library_path: tuple[str, ...] = ()
    """The variable's entries as the process got them at its start; ``()`` where it is unset."""
    ld_preload: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    """Paths of the libraries in the process, in the order of loading; the program's own, which
    are found by simulation, may be among them. Files that are no libraries are passed over."""
    caller: str = ""
    """Path of the mapped library that calls dlopen; empty for the program itself. Its search paths
    serve a name without a slash, and nothing else: for what that library needs, and for a library
    asked for by its path, as torchcodec's are, it makes no difference who calls."""
    cache: str = "/etc/ld.so.cache"
    folder: str = ""
    """The current folder; empty for that of this process."""


class FaultKind(Enum):
    """Why a library does not load."""

    NOT_FOUND = "not found"
    VERSION_NOT_DEFINED = "version not defined"
    WRONG_MACHINE = "only found for another machine"
    UNREADABLE = "found, but damaged or no library"
    UNDEFINED_SYMBOL = "undefined symbol"


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason why a library does not load; ld.so itself stops at the first one."""

    kind: FaultKind
    library: str
    """The name that is missing, or that lacks something."""
    path: str
    """The file that was taken, or the one for another machine; empty where there is none."""
    version: str = ""
    """The version that is not defined, such as ``CXXABI_1.3.15``, or that of the symbol."""
    symbol: str = ""
    chain: tuple[str, ...] = ()
    """Names from the root to ``library``, each needed by the one before it."""
    detail: str = ""
    """What is wrong with the file, in words."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One library of the tree; a library that several need is there once."""

    name: str
    """As it was asked for."""
    path: str
    """Absolute, its links not followed; empty where it wasn't found."""
    found_by: FoundBy | None
    needed_by: int
    """Index of the one that needed it first; -1 for the root."""
    elf: ElfFile | None
    """None where it wasn't found or can't be loaded."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What the linker would do."""

    libraries: tuple[Loaded, ...]
    """The root, then what it needs, in the linker's breadth-first order."""
    faults: tuple[Fault, ...]
    cache_problem: str = ""
    """Why the linker's cache was left aside; empty where it was sound or absent."""

    @property
    def loads(self) -> bool:
        """Whether nothing is at fault."""
        return not self.faults
