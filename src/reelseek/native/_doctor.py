"""The doctor: collect -> judge -> remedy -> prove, for one environment.

Nothing of the environment is loaded into this process: its ELF files are read, and the proof
runs in a process of the environment's own Python.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reelseek.errors import BackendUnavailableError, ElfError
from reelseek.native._decoders import Decoder, other_decoders
from reelseek.native._facts import Facts, collect_facts, no_facts
from reelseek.native._judge import Cause, Diagnosis, judge
from reelseek.native._linker import LinkerSetting
from reelseek.native._process import Attempt, Process, torch_is_imported, try_all
from reelseek.native._prove import Proof, prove
from reelseek.native._providers import Providers
from reelseek.native._remedy import Remedy, RemedyKind, find_remedy


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

    Where there is no such interpreter, that is the diagnosis.
    """
    begin = time.perf_counter()
    try:
        facts = collect_facts(python)
    except BackendUnavailableError:
        return _nothing_there(python)
    if ld_library_path is not None:
        facts = replace(facts, ld_library_path=tuple(ld_library_path))
    try:
        process, attempts = _simulated(facts)
        diagnosis = judge(facts, process, attempts)
        others = other_decoders(facts) if decoders else ()
    except ElfError as exc:
        process, attempts = Process(LinkerSetting(facts.executable), {}, ()), ()
        diagnosis = Diagnosis(Cause.NO_INTERPRETER, f"{facts.python} is no Python: {exc}")
        others = ()
    remedy = find_remedy(facts, diagnosis, attempts, Providers(facts))
    seconds = time.perf_counter() - begin
    found = Examination(
        facts, process, attempts, diagnosis, remedy, None, others, round(seconds, 3)
    )
    is_provable = remedy.kind in (RemedyKind.NOTHING_NEEDED, RemedyKind.SEARCH_PATH)
    return with_its_proof(found) if with_proof and is_provable else found


def _nothing_there(python: str) -> Examination:
    facts = no_facts(python)
    diagnosis = Diagnosis(Cause.NO_INTERPRETER, f"there is no Python interpreter at {python}")
    process = Process(LinkerSetting(facts.executable), {}, ())
    remedy = find_remedy(facts, diagnosis, (), Providers(facts))
    return Examination(facts, process, (), diagnosis, remedy, None, (), 0.0)


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
