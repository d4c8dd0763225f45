"""Mending, inside the running process, what keeps torchcodec from loading."""

from __future__ import annotations

import copy
import ctypes
import importlib
import importlib.util
import os
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reelseek._fork_lock import ForkLock
from reelseek.errors import BackendUnavailableError, ElfError
from reelseek.native._printable import printable, printable_command

if TYPE_CHECKING:
    from reelseek.native._facts import Facts
    from reelseek.native._linker import Fault
    from reelseek.native._process import Attempt, Process
    from reelseek.native._providers import Providers

SWITCH = "REELSEEK_ACTIVATE"
"""Environment variable; ``0`` turns activation off."""

REFUSAL_SECONDS = 30
"""A refusal holds so long, as ``backend="auto"`` asks again for each file that needs torchcodec."""

_lock = ForkLock()
_done: list[Activation] = []
_refused: list[tuple[float, BackendUnavailableError]] = []


@dataclass(frozen=True, slots=True)
class Activation:
    """What was done to make torchcodec load."""

    did: str
    """One sentence; empty where nothing had to be done."""
    loaded: tuple[str, ...] = ()
    """The libraries that were loaded into this process, in order."""


def activate() -> Activation:
    """Make ``import torchcodec`` work in this process, where that can be done.

    Nothing is done where torchcodec is imported already or would load as things are. Otherwise
    the libraries that it misses are loaded first, by absolute path, from where the environment
    has them: conda's ``lib``, NVIDIA's packages, the FFmpeg inside PyAV's wheel. No environment
    variable is set: setting LD_LIBRARY_PATH in a running process has no effect, as the dynamic
    linker reads it once, when the process starts.

    Returns:
        What was done. Calling it again returns the same; a refusal is looked into again after
        half a minute.

    Raises:
        BackendUnavailableError: torchcodec isn't installed, or can't be made to load in this
            process; the text has the command that mends it.
    """
    with _lock:
        if _done:
            return _done[0]
        if _refused and time.monotonic() < _refused[0][0]:
            raise copy.copy(_refused[0][1])
        try:
            _done.append(_activate())
        except BackendUnavailableError as exc:
            _refused[:] = [(time.monotonic() + REFUSAL_SECONDS, exc)]
            raise
        return _done[0]


def _activate() -> Activation:
    if "torchcodec" in sys.modules:
        return Activation("")
    if importlib.util.find_spec("torchcodec") is None:
        raise BackendUnavailableError(
            "torchcodec isn't installed",
            remedy="Run `pip install 'reelseek[torch]'`",
            backend="torchcodec",
        )
    if is_switched_off():
        return Activation(f"nothing: {SWITCH}=0 turns it off")
    try:
        return _mend()
    except (ElfError, FileNotFoundError) as exc:
        # No ELF, or no /proc: another system than Linux, of which the doctor knows nothing.
        return Activation(f"nothing: this process can't be looked into ({printable(str(exc))})")


def is_switched_off() -> bool:
    """Whether the user wants nothing mended in process."""
    return os.environ.get(SWITCH) == "0"


def _mend() -> Activation:
    # Here, as most processes never need them.
    from reelseek.native._facts import PATH_WAS_CHANGED, collect_facts
    from reelseek.native._judge import damage, lost_file
    from reelseek.native._linker import FaultKind
    from reelseek.native._preload import attempt_in, this_process
    from reelseek.native._process import torchcodec_majors
    from reelseek.native._providers import Providers

    facts = collect_facts()
    if lost_file(facts):
        raise _refusal(facts, Providers(facts), None)
    if not {"torch", "torchcodec"} <= facts.packages.keys():
        return Activation("")  # the import says what is missing
    process = this_process(facts)
    attempts = []
    for major in torchcodec_majors(facts):
        attempts.append(attempt_in(facts, process, major))
        if attempts[-1].loads:
            break
    providers = Providers(facts)
    if damage(facts, attempts):
        raise _refusal(facts, providers, None)
    if attempts and attempts[-1].loads:
        return Activation("")
    paths, stuck_at = _planned(facts, process, attempts, providers)
    if paths:
        done = _preload(paths, providers)
        said = f"{done.did}. {PATH_WAS_CHANGED}" if facts.path_was_changed_inside else done.did
        return replace(done, did=said)
    refusal = _refusal(facts, providers, stuck_at)
    # Opening a file that was cut may end the process, and one that is a pipe may never return.
    is_safe = not any(
        fault.kind is FaultKind.UNREADABLE for one in attempts for fault in one.faults
    )
    # That there is no FFmpeg is certain; importing torch to see it again would take seconds.
    if is_safe and refusal is not providers.wheel_error and _imports_all_the_same():
        return Activation("")
    raise refusal


def _planned(
    facts: Facts, process: Process, attempts: Sequence[Attempt], providers: Providers
) -> tuple[tuple[str, ...], Fault | None]:
    """What to load first; else what nothing in this process mends."""
    from reelseek.native._judge import ranked
    from reelseek.native._preload import plan_preloads

    stuck_at = None
    for _ in range(2):
        for attempt in ranked(facts, attempts):
            plan = plan_preloads(facts, process, attempt.ffmpeg_major, providers)
            if plan.stuck_at is None:
                return plan.paths, None
            stuck_at = stuck_at or plan.stuck_at
        # Only then PyAV's FFmpeg, as copies of it have to be made.
        if providers.wheel_folder or not providers.add_wheel_ffmpeg():
            break
    return (), stuck_at


def _preload(paths: Sequence[str], providers: Providers) -> Activation:
    for path in paths:
        try:
            # Local: PyAV's own copy must keep its symbols to itself, and so must this one.
            ctypes.CDLL(path, ctypes.RTLD_LOCAL)
        except OSError as exc:
            folder = os.path.dirname(path)
            is_copy = folder == providers.wheel_folder
            raise BackendUnavailableError(
                "a library that torchcodec needs doesn't load",
                remedy=f"Delete {folder} and try again, or install FFmpeg 7"
                if is_copy
                else "Run `reelseek doctor`",
                path=path,
                backend="torchcodec",
                detail=printable(str(exc)),
            ) from exc
    others = [path for path in paths if os.path.dirname(path) != providers.wheel_folder]
    said = []
    if len(others) < len(paths):
        said.append("no FFmpeg on this system, so PyAV's was loaded")
    if others:
        said.append(printable(f"loaded what torchcodec misses: {', '.join(others)}"))
    return Activation("; ".join(said), tuple(paths))


def _imports_all_the_same() -> bool:
    """The last word is the dynamic linker's own: nothing that works is refused."""
    try:
        importlib.import_module("torchcodec")
    except Exception:  # noqa: BLE001  # a foreign package's import may raise anything
        return False
    return True


def _refusal(facts: Facts, providers: Providers, stuck_at: Fault | None) -> BackendUnavailableError:
    """What can't be mended here, with the command that mends it."""
    from reelseek.native._facts import PATH_WAS_CHANGED
    from reelseek.native._judge import Cause, describe, judge
    from reelseek.native._process import torch_is_imported, try_all
    from reelseek.native._remedy import RemedyKind, find_remedy

    fresh = torch_is_imported(facts, facts.ld_library_path)
    found = try_all(facts, fresh)
    diagnosis = judge(facts, fresh, found)
    remedy = find_remedy(facts, diagnosis, found, providers)
    refused = providers.wheel_error
    is_about_ffmpeg = diagnosis.cause in (Cause.NO_FFMPEG, Cause.OTHER_FFMPEG)
    if remedy.kind is not RemedyKind.SEARCH_PATH and refused and is_about_ffmpeg:
        return refused
    details = [f"in this process: {describe(stuck_at)}"] if stuck_at else []
    if facts.path_was_changed_inside:
        details.append(PATH_WAS_CHANGED)
    detail = "; ".join(details)
    if remedy.kind is RemedyKind.SEARCH_PATH:
        return BackendUnavailableError(
            f"{diagnosis.verdict}; a running process can't mend that",
            remedy=f"Start it with `reelseek run -- {_command_line()}`, or in the shell: "
            f"{remedy.command}",
            backend="torchcodec",
            detail=detail,
        )
    if diagnosis.cause is Cause.OK:  # only this process is in the way
        return BackendUnavailableError(
            "torchcodec would load in a new process, and not in this one, which has mapped other "
            "libraries",
            remedy="Import torchcodec first, before the packages that bring their own",
            backend="torchcodec",
            detail=detail,
        )
    return BackendUnavailableError(
        diagnosis.verdict,
        remedy=f"Run `{remedy.command}`" if remedy.command else remedy.note,
        backend="torchcodec",
        detail=detail,
    )


def _command_line() -> str:
    """The command that started this process, where it is a script's."""
    is_script = bool(sys.argv and sys.argv[0]) and os.path.isfile(sys.argv[0])
    return printable_command(shlex.join(sys.orig_argv)) if is_script else "python your_script.py"
