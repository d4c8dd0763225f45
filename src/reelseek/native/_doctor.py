"""The doctor: collect -> judge -> remedy -> prove, for one environment.

Nothing of the environment is loaded into this process: its ELF files are read, and the proof
runs in a process of the environment's own Python.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from reelseek.errors import ElfError
from reelseek.native._decoders import Decoder, decodes_av1, other_decoders
from reelseek.native._elf import read_elf
from reelseek.native._facts import DEFAULT_FOLDERS, Facts, collect_facts
from reelseek.native._judge import Cause, Diagnosis, judge
from reelseek.native._known import numbers
from reelseek.native._linker import Fault, LinkerSetting
from reelseek.native._process import Attempt, Process, torch_is_imported, try_all
from reelseek.native._prove import Proof, prove
from reelseek.native._providers import Providers
from reelseek.native._remedy import Remedy, RemedyKind, find_remedy

SCHEMA = "reelseek.doctor/1"
"""Described by ``doctor.schema.json`` beside this file."""


@dataclass(frozen=True, slots=True)
class Examination:
    """All that the doctor found out about one environment."""

    facts: Facts
    process: Process
    attempts: tuple[Attempt, ...]
    diagnosis: Diagnosis
    remedy: Remedy
    proof: Proof | None
    """Under the remedy's search path; None where there is nothing to prove, or it wasn't asked."""
    decoders: tuple[Decoder, ...]
    seconds: float
    """How long it took, the proof left out."""

    @property
    def is_well(self) -> bool:
        """Whether torchcodec loads as things are, and decodes if that was tried."""
        return self.diagnosis.cause is Cause.OK and (self.proof is None or self.proof.decodes)


def examine(
    python: str = "",
    *,
    with_proof: bool = True,
    decoders: bool = True,
    ld_library_path: Sequence[str] | None = None,
) -> Examination:
    """Diagnose one environment; the one that this runs in where no Python is given.

    Args:
        python: The interpreter, or the environment's folder.
        with_proof: Import torchcodec in a process of its own where it should load.
        decoders: Look at the other decoders too.
        ld_library_path: The search path to judge by; this process's where none is given.

    Raises:
        BackendUnavailableError: There is no such interpreter.
    """
    begin = time.perf_counter()
    facts = collect_facts(python)
    if ld_library_path is not None:
        facts = replace(facts, ld_library_path=tuple(ld_library_path))
    try:
        process, attempts = _simulated(facts)
        diagnosis = judge(facts, process, attempts)
    except ElfError as exc:
        process, attempts = Process(LinkerSetting(facts.executable), {}, ()), ()
        diagnosis = Diagnosis(Cause.NO_INTERPRETER, f"{facts.python} is no Python: {exc}")
    remedy = find_remedy(facts, diagnosis, attempts, Providers(facts))
    others = other_decoders(facts) if decoders else ()
    seconds = time.perf_counter() - begin
    found = Examination(
        facts, process, attempts, diagnosis, remedy, None, others, round(seconds, 3)
    )
    is_provable = remedy.kind in (RemedyKind.NOTHING_NEEDED, RemedyKind.SEARCH_PATH)
    return with_its_proof(found) if with_proof and is_provable else found


def with_its_proof(found: Examination) -> Examination:
    """The examination with the proof under its remedy; a remedy that fails is taken back."""
    proof = prove(found.facts, found.remedy.folders)
    found = replace(found, proof=proof)
    if proof.decodes:
        return found
    what = "decodes no AV1" if proof.imports else "does not load all the same"
    if found.diagnosis.cause is Cause.OK:
        verdict = f"{found.diagnosis.verdict}, but {what} when it is tried: {proof.message}"
        diagnosis = replace(found.diagnosis, cause=Cause.FAILS_IN_PROOF, verdict=verdict)
        return replace(found, diagnosis=diagnosis, remedy=Remedy(RemedyKind.UNKNOWN))
    note = f"Tried {found.remedy.command}: it {what}: {proof.message}"
    return replace(found, remedy=Remedy(RemedyKind.UNKNOWN, note=note))


def _simulated(facts: Facts) -> tuple[Process, tuple[Attempt, ...]]:
    process = torch_is_imported(facts, facts.ld_library_path)
    is_there = {"torch", "torchcodec"} <= facts.packages.keys()
    return process, try_all(facts, process) if is_there else ()


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
        "is_well": found.is_well,
        "cause": diagnosis.cause.value,
        "verdict": diagnosis.verdict,
        "chain": list(diagnosis.chain),
        "fault": None if diagnosis.fault is None else _fault(diagnosis.fault),
        "also": list(diagnosis.also),
        "noise": list(diagnosis.noise),
        "attempts": [_attempt(attempt) for attempt in found.attempts],
        "remedy": {
            "kind": found.remedy.kind.value,
            "command": found.remedy.command,
            "note": found.remedy.note,
            "ld_library_path": list(found.remedy.folders),
        },
        "proof": None
        if proof is None
        else {
            "imports": proof.imports,
            "decodes": proof.decodes,
            "seconds": round(proof.seconds, 3),
            "message": proof.message,
        },
        "decoders": [
            {
                "name": decoder.name,
                "version": decoder.version,
                "loads": decoder.loads,
                "ffmpeg_major": decoder.ffmpeg_major,
                "decodes_av1": decoder.decodes_av1,
                "fault": decoder.fault,
            }
            for decoder in found.decoders
        ],
        "seconds": found.seconds,
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
