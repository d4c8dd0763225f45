"""What the doctor found out as a versioned JSON document."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from reelseek.errors import ElfError
from reelseek.native._decoders import decodes_av1
from reelseek.native._doctor import Examination
from reelseek.native._elf import read_elf
from reelseek.native._facts import DEFAULT_FOLDERS, Facts
from reelseek.native._known import numbers
from reelseek.native._linker import Fault
from reelseek.native._process import Attempt
from reelseek.native._remedy import Remedy

SCHEMA = "reelseek.doctor/1"
"""Described by ``doctor.schema.json`` beside this file."""


def document(examinations: Sequence[Examination]) -> dict[str, Any]:
    """The versioned JSON document of ``reelseek doctor --json``."""
    import reelseek

    return {
        "schema": SCHEMA,
        "reelseek": reelseek.__version__,
        "environments": [_environment(found) for found in examinations],
    }


def _environment(found: Examination) -> dict[str, Any]:
    facts, diagnosis, proof = found.facts, found.diagnosis, found.proof
    return {
        **_installed(facts),
        "is_well": found.is_well,
        "cause": diagnosis.cause.value,
        "verdict": diagnosis.verdict,
        "chain": list(diagnosis.chain),
        "fault": None if diagnosis.fault is None else _fault(diagnosis.fault),
        "also": list(diagnosis.also),
        "noise": list(diagnosis.noise),
        "attempts": [_attempt(attempt) for attempt in found.attempts],
        "remedy": _remedy(found.remedy),
        "proof": None if proof is None else {**asdict(proof), "seconds": round(proof.seconds, 3)},
        "decoders": [asdict(decoder) for decoder in found.decoders],
        "seconds": found.seconds,
    }


def _installed(facts: Facts) -> dict[str, Any]:
    return {
        "python": facts.python,
        "python_version": facts.python_version,
        "prefix": facts.prefix,
        "kind": facts.kind,
        "versions": dict(sorted(facts.versions.items())),
        "torch_cuda": facts.torch_cuda,
        "glibc": facts.glibc,
        "ffmpeg": dict(facts.ffmpeg),
        "libstdcxx": libstdcxx_versions(facts),
        "ld_library_path": list(facts.ld_library_path),
        "ld_library_path_was_changed_inside": facts.path_was_changed_inside,
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "kind": remedy.kind.value,
        "command": remedy.command,
        "note": remedy.note,
        "ld_library_path": list(remedy.folders),
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "kind": fault.kind.name.lower(),
        "library": fault.library,
        "path": fault.path,
        "version": fault.version,
        "symbol": fault.symbol,
        "chain": list(fault.chain),
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    core = attempt.results[0] if attempt.results else None
    return {
        "ffmpeg_major": attempt.ffmpeg_major,
        "loads": attempt.loads,
        "faults": [_fault(fault) for fault in attempt.faults],
        "decodes_av1": decodes_av1(core) if core else None,
        "libraries": [
            {
                "name": library.name,
                "path": library.path,
                "found_by": library.found_by.name.lower() if library.found_by else None,
                "needed_by": library.needed_by,
            }
            for library in (core.libraries if core else ())
        ],
    }


def libstdcxx_versions(facts: Facts) -> dict[str, list[str]]:
    """For each libstdc++ found: the newest GLIBCXX and the newest CXXABI that it defines."""
    found: dict[str, list[str]] = {}
    for folder in dict.fromkeys([*facts.ld_library_path, facts.lib_folder, *DEFAULT_FOLDERS]):
        path = os.path.join(folder, "libstdc++.so.6")
        if os.path.isfile(path) and os.path.realpath(path) not in map(os.path.realpath, found):
            found[path] = _newest_versions(path)
    return found


def _newest_versions(path: str) -> list[str]:
    try:
        defined = read_elf(path).version_definitions
    except ElfError:
        return []
    newest = []
    for family in ("GLIBCXX_", "CXXABI_"):
        names = [name for name in defined if numbers(name.removeprefix(family))]
        of_family = [name for name in names if name.startswith(family)]
        if of_family:
            newest.append(max(of_family, key=lambda name: numbers(name.removeprefix(family))))
    return newest
