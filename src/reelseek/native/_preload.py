"""Which libraries to load into this process first, so that torchcodec finds what it needs.

A library that is mapped already answers to its soname, wherever it came from; so what is missing
can be loaded by absolute path beforehand. What is mapped can't be replaced: an old libstdc++ that
is in the process stays there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reelseek.native._facts import Facts
from reelseek.native._linker import Fault, FaultKind, LinkerSetting, simulate_load
from reelseek.native._process import Attempt, Process, after_load, import_torch, try_major
from reelseek.native._providers import Providers
from reelseek.native._wheel_ffmpeg import LOAD_ORDER

MAX_PRELOADS = 40
_MAP_LINE = re.compile(rb"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ +(/.+)")


@dataclass(frozen=True, slots=True)
class Plan:
    """Libraries to load, or why that can't help."""

    paths: tuple[str, ...]
    """In the order in which they have to be loaded."""
    stuck_at: Fault | None = None
    """What can't be mended in this process; None where the plan works in simulation."""


def mapped_files() -> tuple[str, ...]:
    """The files mapped into this process, the first loaded first, as far as addresses tell.

    Linux gives each new mapping a lower address (mmap(2), top-down layout).
    """
    lines = Path("/proc/self/maps").read_bytes().splitlines()
    found = (_MAP_LINE.fullmatch(line) for line in reversed(lines))
    paths = dict.fromkeys(os.fsdecode(match[1]) for match in found if match)
    return tuple(path for path in paths if ".so" in path and os.path.isfile(path))


def this_process(facts: Facts) -> Process:
    """This process as it is, torch imported or not."""
    mapped = mapped_files()
    setting = LinkerSetting(
        executable=os.path.realpath("/proc/self/exe"),
        ld_library_path=facts.ld_library_path,
        ld_preload=facts.ld_preload,
        mapped=mapped,
    )
    return Process(setting, dict.fromkeys(mapped, "this process"), ())


def plan_preloads(facts: Facts, process: Process, major: int, providers: Providers) -> Plan:
    """What to load first so that torchcodec loads with one FFmpeg major."""
    paths: list[str] = []
    left_out: set[str] = set()
    for _ in range(MAX_PRELOADS):
        place, fault = _first_fault(facts, process, paths, major)
        if fault is None:
            return Plan(tuple(paths))
        found = providers.of(fault, but=left_out)
        is_too_late = fault.kind is FaultKind.VERSION_NOT_DEFINED and (
            fault.path in process.mapped_by or fault.library in map(_name, process.mapped_by)
        )
        if not found and place < len(paths):  # one that was to help can't be loaded itself
            left_out.add(os.path.dirname(paths[place]))
            paths = [path for path in paths if os.path.dirname(path) not in left_out]
            continue
        if not found or is_too_late:
            return Plan((), fault)
        new = [path for path in _with_siblings(found, providers) if path not in paths]
        if not new:
            return Plan((), fault)
        if fault.kind is FaultKind.VERSION_NOT_DEFINED:
            place = 0  # before anything that would map the old one
        paths[place:place] = new
    return Plan((), fault)


def attempt_in(facts: Facts, process: Process, major: int) -> Attempt:
    """torchcodec's load with one FFmpeg major, after torch's where that isn't imported yet."""
    if "torch" not in sys.modules:
        process = import_torch(facts, process)
    attempt = try_major(facts, process, major)
    return replace(attempt, faults=(*process.faults, *attempt.faults))


def _first_fault(
    facts: Facts, process: Process, paths: Sequence[str], major: int
) -> tuple[int, Fault | None]:
    """Where the plan fails first: at one of its own libraries, or (last) at torchcodec's."""
    for place, path in enumerate(paths):
        result = simulate_load(path, process.setting)
        if result.faults:
            return place, result.faults[0]
        process = after_load(process, result, "reelseek")
    faults = attempt_in(facts, process, major).faults
    return len(paths), faults[0] if faults else None


def _with_siblings(path: str, providers: Providers) -> list[str]:
    """The library; for one of PyAV's FFmpeg, all of them in order."""
    folder = os.path.dirname(path)
    if folder != providers.wheel_folder:
        return [path]
    names = sorted(os.listdir(folder))
    return [
        os.path.join(folder, name)
        for stem in LOAD_ORDER
        for name in names
        if name.startswith(f"lib{stem}.so.")
    ]


def _name(path: str) -> str:
    return os.path.basename(path)
