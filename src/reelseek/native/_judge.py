"""From what every FFmpeg major of torchcodec met in simulation to the one cause that matters.

torchcodec's own message lists one traceback for each FFmpeg major, and its last lines are those
of FFmpeg 4, which hardly any machine has. What matters is the major that the machine nearly has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from reelseek.native._facts import Facts
from reelseek.native._known import (
    NEWEST,
    avutil_of_ffmpeg,
    ffmpeg_major_of_avutil,
    known_torchcodec,
    package_of_library,
)
from reelseek.native._library_search import GOES_ON_AFTER
from reelseek.native._linker import Fault, FaultKind
from reelseek.native._printable import printable, printable_lines
from reelseek.native._process import (
    CORE_NAME,
    Attempt,
    Process,
    is_missing_ffmpeg,
    torchcodec_majors,
)

NVIDIA_NAME = re.compile(
    r"lib(npp\w*|nvrtc\w*|nvrtc-builtins|cudart|cublas\w*|cudnn\w*|cufft\w*|cusparse\w*|cusolver\w*|"
    r"curand|cupti|nvJitLink|nvjpeg|nvToolsExt|nccl|nvcuvid|nvidia-\w+|cuda)\.so(\.\d+)*"
)
LIBSTDCXX = "libstdc++.so.6"
MAX_ALSO = 5
"""Further faults that are named."""


class Cause(Enum):
    """Why torchcodec does not load."""

    OK = "ok"
    NO_INTERPRETER = "no-interpreter"
    NO_TORCHCODEC = "no-torchcodec"
    NO_TORCH = "no-torch"
    TORCH_FAILS = "torch-fails"
    WRONG_MACHINE = "wrong-machine"
    DAMAGED_FILE = "damaged-file"
    OLD_GLIBC = "old-glibc"
    CUDA_WHEEL = "cuda-wheel"
    OTHER_TORCH = "other-torch"
    NO_NVIDIA_LIBRARY = "no-nvidia-library"
    NO_FFMPEG = "no-ffmpeg"
    OTHER_FFMPEG = "other-ffmpeg"
    PARTIAL_FFMPEG = "partial-ffmpeg"
    NO_LIBPYTHON = "no-libpython"
    NO_LIBRARY = "no-library"
    OLD_LIBSTDCXX = "old-libstdcxx"
    OLD_LIBRARY = "old-library"
    FAILS_IN_PROOF = "fails-in-proof"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The one cause that matters, and what belongs to it."""

    cause: Cause
    verdict: str
    """One sentence that names it."""
    attempt: Attempt | None = None
    """The FFmpeg major that the machine nearly has."""
    fault: Fault | None = None
    """What the linker meets there."""
    also: tuple[str, ...] = ()
    """What else is wrong with that major, and has to be mended too."""
    noise: tuple[str, ...] = ()
    """What torchcodec's message says besides, of FFmpeg majors that nobody needs here."""

    def __post_init__(self) -> None:
        # Here, as the doctor, activate(), env and run all show these to people.
        object.__setattr__(self, "verdict", printable(self.verdict))
        object.__setattr__(self, "also", printable_lines(self.also))
        object.__setattr__(self, "noise", printable_lines(self.noise))

    @property
    def chain(self) -> tuple[str, ...]:
        """From torchcodec's library to the one at fault."""
        return self.fault.chain if self.fault else ()


def judge(facts: Facts, process: Process, attempts: Sequence[Attempt]) -> Diagnosis:
    """Name the one cause."""
    before = _before_torchcodec(facts, process)
    if before is not None:
        return before
    name = torchcodec_name(facts)
    if not attempts:
        path = facts.packages["torchcodec"]
        return Diagnosis(
            Cause.DAMAGED_FILE, f"{name} has no library of its own: {path} is not a whole install"
        )
    works = next((attempt for attempt in attempts if attempt.loads), None)
    damaged = damage(facts, attempts)
    if damaged is not None:
        attempt, fault = damaged
        return Diagnosis(Cause.DAMAGED_FILE, _damaged(facts, fault), attempt, fault)
    if works is not None:
        where = works.path_of("libavcodec.so.") or "an unknown place"
        verdict = f"{name} loads, with FFmpeg {works.ffmpeg_major} ({where})"
        return Diagnosis(Cause.OK, verdict, works, noise=_noise(attempts, works))
    nearest = ranked(facts, attempts)[0]
    faults = _by_weight(nearest.faults)
    found = [(*_cause_of(facts, process, nearest, fault), fault) for fault in faults]
    cause, verdict, fault = min(found, key=lambda finding: _ORDER.index(finding[0]))
    # A CUDA wheel misses several libraries of CUDA; one command mends them all.
    also = dict.fromkeys(
        text for kind, text, _ in found if text != verdict and kind is not Cause.CUDA_WHEEL
    )
    return Diagnosis(
        cause, verdict, nearest, fault, tuple(also)[:MAX_ALSO], _noise(attempts, nearest)
    )


def damage(facts: Facts, attempts: Sequence[Attempt]) -> tuple[Attempt, Fault] | None:
    """A file of torchcodec's own that is damaged, and the attempt that it is met in.

    One that torchcodec meets before the FFmpeg that works counts: the process may end there. One
    that is missing there does not, as torchcodec goes on to the next FFmpeg.
    """
    own = f"{facts.packages['torchcodec']}/"
    missing = facts.missing_files.get("torchcodec", ())
    works = any(attempt.loads for attempt in attempts)
    found = (
        (attempt, fault)
        for attempt in attempts
        for fault in attempt.faults
        if fault.kind is FaultKind.UNREADABLE and fault.path.startswith(own)
        if not (works and fault.path in missing)
    )
    return next(found, None)


def lost_file(facts: Facts) -> Fault | None:
    """A file without which no FFmpeg helps: torch's, or one of torchcodec's modules."""
    torch = facts.missing_files.get("torch", ())
    modules = (path for path in facts.missing_files.get("torchcodec", ()) if path.endswith(".py"))
    path = next(iter((*torch, *modules)), "")
    name = os.path.basename(path)
    return Fault(FaultKind.UNREADABLE, name, path, chain=(name,)) if path else None


def _damaged(facts: Facts, fault: Fault) -> str:
    """The verdict on a file that is missing from a package, or is no library."""
    for name, paths in facts.missing_files.items():
        if fault.path in paths:
            package = f"{name} {facts.versions.get(name, '')}".strip()
            return f"{package} is not a whole install: {fault.path} is missing"
    return describe(fault)


_ORDER = tuple(Cause)
"""What has to be mended first comes first; ``Cause`` is written in that order."""


def torchcodec_name(facts: Facts) -> str:
    """``torchcodec 0.13.0``."""
    return f"torchcodec {facts.versions.get('torchcodec', '')}".strip()


def ranked(facts: Facts, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts, the one that the machine nearly has first."""

    def distance(attempt: Attempt) -> tuple[bool, bool, int, int]:
        missing = len(attempt.missing_ffmpeg)
        is_here = attempt.avutil in facts.ffmpeg
        return missing > 0, not is_here, missing, len(attempt.other_faults)

    return sorted(attempts, key=distance)


def describe(fault: Fault) -> str:
    """A fault in the words of the dynamic linker's messages, to be shown to people."""
    return printable(_described(fault))


def _described(fault: Fault) -> str:
    if fault.kind is FaultKind.NOT_FOUND:
        return f"{fault.library} is not found"
    if fault.kind is FaultKind.VERSION_NOT_DEFINED:
        return f"{fault.path or fault.library} has no version {fault.version}"
    if fault.kind is FaultKind.UNDEFINED_SYMBOL:
        return f"{fault.library} wants the symbol {fault.symbol}, which nothing has"
    if fault.kind is FaultKind.WRONG_MACHINE:
        return f"{fault.path or fault.library} is for another kind of machine"
    return f"{fault.path or fault.library} is not a whole ELF file"


def _before_torchcodec(facts: Facts, process: Process) -> Diagnosis | None:
    packages = facts.packages
    if not facts.python_version:
        return Diagnosis(Cause.NO_INTERPRETER, f"{facts.python} is no Python that starts")
    lost = lost_file(facts)
    if lost is not None:
        return Diagnosis(Cause.DAMAGED_FILE, _damaged(facts, lost), None, lost)
    if "torchcodec" not in packages:
        return Diagnosis(Cause.NO_TORCHCODEC, f"torchcodec isn't installed in {facts.prefix}")
    if "torch" not in packages:
        return Diagnosis(Cause.NO_TORCH, f"torch isn't installed in {facts.prefix}")
    if process.faults:
        fault = _by_weight(process.faults)[0]
        verdict = f"torch itself does not load: {describe(fault)}"
        return Diagnosis(Cause.TORCH_FAILS, verdict, None, fault)
    return None


def _by_weight(faults: Sequence[Fault]) -> list[Fault]:
    """The linker maps everything first and looks at versions and symbols then."""
    order = (
        FaultKind.UNREADABLE,
        FaultKind.WRONG_MACHINE,
        FaultKind.NOT_FOUND,
        FaultKind.VERSION_NOT_DEFINED,
        FaultKind.UNDEFINED_SYMBOL,
    )
    return sorted(faults, key=lambda fault: order.index(fault.kind))


def _cause_of(facts: Facts, process: Process, attempt: Attempt, fault: Fault) -> tuple[Cause, str]:
    if fault.kind is FaultKind.UNREADABLE:
        return Cause.DAMAGED_FILE, describe(fault)
    if fault.kind is FaultKind.WRONG_MACHINE:
        return Cause.WRONG_MACHINE, describe(fault)
    if fault.kind is FaultKind.UNDEFINED_SYMBOL:
        return Cause.OTHER_TORCH, _other_torch(facts, fault)
    if fault.kind is FaultKind.VERSION_NOT_DEFINED:
        return _old_version(facts, process, fault)
    return _missing(facts, attempt, fault)


def _missing(facts: Facts, attempt: Attempt, fault: Fault) -> tuple[Cause, str]:
    name, library = torchcodec_name(facts), fault.library
    blocked = _ends_the_search(facts, library)
    if blocked:
        return Cause.DAMAGED_FILE, f"{blocked} can't be opened, which ends the search for it there"
    if is_missing_ffmpeg(fault):
        return _no_ffmpeg(facts, attempt)
    is_of_torch = re.fullmatch(r"lib(torch|c10)\w*\.so", library)
    is_cuda = bool(NVIDIA_NAME.fullmatch(library) or package_of_library(library))
    if library.endswith("_cuda.so") or (is_cuda and _is_of_other_cuda(facts, fault)):
        cuda = facts.torch_cuda
        torch = f"is built for CUDA {cuda}" if cuda else "is a CPU build"
        return Cause.CUDA_WHEEL, (
            f"{name} is built for CUDA (it needs {library}), and torch "
            f"{facts.versions.get('torch', '')} {torch}"
        )
    if is_of_torch:
        return Cause.OTHER_TORCH, f"{name} needs {library}, which this torch doesn't have"
    if is_cuda:
        return Cause.NO_NVIDIA_LIBRARY, f"NVIDIA's {library} is not found{_for(fault)}"
    if library.startswith("libpython"):
        return Cause.NO_LIBPYTHON, f"{name} needs {library}, and it is not found"
    return Cause.NO_LIBRARY, f"{library} is not found{_for(fault)}"


def _ends_the_search(facts: Facts, library: str) -> str:
    """A file on LD_LIBRARY_PATH past which the linker does not look, as a link to itself is."""
    for folder in dict.fromkeys(facts.ld_library_path):
        path = os.path.join(folder, library)
        try:
            os.stat(path)
        except OSError as exc:
            if exc.errno not in GOES_ON_AFTER and os.path.lexists(path):
                return path
    return ""


def _is_of_other_cuda(facts: Facts, fault: Fault) -> bool:
    """Whether torchcodec itself asks for a library of another CUDA than torch's."""
    is_asked_by_torchcodec = len(fault.chain) == 2 and CORE_NAME.fullmatch(fault.chain[0])
    found = re.search(r"\.so\.(\d+)", fault.library)
    if not is_asked_by_torchcodec or found is None:
        return False
    return found[1] != facts.torch_cuda.partition(".")[0]


def _for(fault: Fault) -> str:
    """Who needs the library that is at fault."""
    users = [name for name in fault.chain[:-1] if not CORE_NAME.fullmatch(name)]
    return f" ({users[-1]} needs it)" if users else " (torchcodec needs it)"


def _no_ffmpeg(facts: Facts, attempt: Attempt) -> tuple[Cause, str]:
    name, major = torchcodec_name(facts), attempt.ffmpeg_major
    if attempt.avutil not in attempt.missing_ffmpeg:
        missing = ", ".join(attempt.missing_ffmpeg)
        return Cause.PARTIAL_FFMPEG, f"FFmpeg {major} is here without {missing}"
    if attempt.avutil in facts.ffmpeg:
        folder = os.path.dirname(facts.ffmpeg[attempt.avutil])
        return Cause.NO_FFMPEG, f"FFmpeg {major} is in {folder}, and not on the search path"
    others = [_major_of(soname) for soname in facts.ffmpeg]
    row = known_torchcodec(facts.versions.get("torchcodec", ""))
    wanted = f"FFmpeg {row.ffmpeg_majors[0]} to {row.ffmpeg_majors[-1]}" if row else "another"
    if others:
        here = " and ".join(map(str, sorted(others)))
        return (
            Cause.OTHER_FFMPEG,
            f"{name} is built for {wanted}, and this machine has FFmpeg {here}",
        )
    majors = sorted(torchcodec_majors(facts))
    first, last = (avutil_of_ffmpeg(major) for major in (majors[0], majors[-1]))
    return Cause.NO_FFMPEG, f"{name} finds no FFmpeg: none of {first} to {last}"


def _major_of(avutil: str) -> int:
    return ffmpeg_major_of_avutil(int(avutil.rpartition(".")[2]))


def _other_torch(facts: Facts, fault: Fault) -> str:
    name, torch = torchcodec_name(facts), facts.versions.get("torch", "")
    row = known_torchcodec(facts.versions.get("torchcodec", ""))
    if row is not None and not row.fits(torch=torch, python=""):
        first, last = (".".join(map(str, end[:2])) for end in row.torch)
        is_open = row.torch[1] == (NEWEST,)
        built = f"{first} or newer" if is_open else first if first == last else f"{first} to {last}"
        return f"{name} is built for torch {built}, and torch {torch} is installed"
    return f"{name} does not fit torch {torch}: {describe(fault)}"


def _old_version(facts: Facts, process: Process, fault: Fault) -> tuple[Cause, str]:
    users = " -> ".join(fault.chain[:-1])
    if re.fullmatch(r"GLIBC_[\d.]+", fault.version):
        return Cause.OLD_GLIBC, (
            f"{users} needs {fault.version.replace('_', ' ').lower()}, and this machine has glibc "
            f"{facts.glibc}"
        )
    cause = Cause.OLD_LIBSTDCXX if fault.library == LIBSTDCXX else Cause.OLD_LIBRARY
    who = process.mapped_by.get(fault.path, "")
    first = f"mapped first by {who}, " if who else ""
    needs = fault.chain[-2] if len(fault.chain) > 1 else "torchcodec"
    return cause, f"{fault.path} is {first}too old: {needs} needs {fault.version}"


def _noise(attempts: Sequence[Attempt], chosen: Attempt) -> tuple[str, ...]:
    return tuple(
        f"FFmpeg {attempt.ffmpeg_major}: {describe(_by_weight(attempt.faults)[0])}"
        if attempt.avutil not in attempt.missing_ffmpeg
        else f"FFmpeg {attempt.ffmpeg_major}: {attempt.avutil} is not found"
        for attempt in attempts
        if attempt is not chosen and attempt.faults
    )
