"""The libraries that torchcodec needs as a tree, cut down to what a reader has to see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reelseek.native._judge import describe
from reelseek.native._linker import Fault, FaultKind, FoundBy, LoadResult
from reelseek.native._printable import printable
from reelseek.native._process import Attempt

HOW = {
    FoundBy.MAPPED: "mapped already",
    FoundBy.DT_RPATH: "by RPATH",
    FoundBy.LD_LIBRARY_PATH: "by LD_LIBRARY_PATH",
    FoundBy.DT_RUNPATH: "by RUNPATH",
    FoundBy.CACHE: "by ld.so.cache",
    FoundBy.DEFAULT: "in a default folder",
    FoundBy.PATH: "",
}


@dataclass(frozen=True, slots=True)
class Branch:
    """One library in the tree."""

    depth: int
    """0 for torchcodec's own library."""
    name: str
    where: str
    """Its path and how it was found; empty where it wasn't."""
    faults: tuple[str, ...]
    """What is wrong with it."""


def branches(attempt: Attempt) -> list[Branch]:
    """The tree: what torchcodec's library needs itself, and every way to a fault, in full."""
    found: list[Branch] = []
    named: set[tuple[str, str]] = set()
    for result in attempt.results:
        faults = {(fault.library, fault.version) for fault in result.faults}
        # The libraries after the first mostly meet the same faults again.
        if not found or faults - named:
            found += list(_of_result(result))
        named |= faults
    symbols = [fault for fault in attempt.faults if fault.kind is FaultKind.UNDEFINED_SYMBOL]
    if symbols and found:
        words = (*found[0].faults, *map(describe, symbols[:3]))
        found[0] = Branch(0, found[0].name, found[0].where, words)
    return found


def _of_result(result: LoadResult) -> Iterator[Branch]:
    libraries = result.libraries
    if not libraries:
        return
    faults: dict[int, list[Fault]] = {}
    for fault in result.faults:
        faults.setdefault(_place(result, fault), []).append(fault)
    shown = {0}
    for place in faults:
        while place >= 0:
            shown.add(place)
            place = libraries[place].needed_by  # noqa: PLW2901  # up to the root
    children: dict[int, list[int]] = {}
    for index, library in enumerate(libraries):
        if index in shown or library.needed_by == 0:
            children.setdefault(library.needed_by, []).append(index)
    yield from _walk(result, children, faults, 0, 0)


def _place(result: LoadResult, fault: Fault) -> int:
    """The node that a fault is about: by its path, else by its name; 0 where it has none."""
    for index, library in enumerate(result.libraries):
        is_same = library.path == fault.path if fault.path else library.name == fault.library
        if is_same:
            return index
    return 0


def _walk(
    result: LoadResult,
    children: dict[int, list[int]],
    faults: dict[int, list[Fault]],
    index: int,
    depth: int,
) -> Iterator[Branch]:
    library = result.libraries[index]
    how = HOW.get(library.found_by, "") if library.found_by else ""
    where = printable(f"{library.path} ({how})" if how else library.path)
    said = tuple(describe(fault) for fault in faults.get(index, []))
    yield Branch(depth, printable(library.name.rpartition("/")[2]), where, said)
    for child in children.get(index, []):
        yield from _walk(result, children, faults, child, depth + 1)
