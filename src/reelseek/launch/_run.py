"""Starting a command in an environment in which torchcodec loads."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

from reelseek.errors import BackendUnavailableError
from reelseek.launch._words import is_python
from reelseek.native._doctor import examine
from reelseek.native._printable import printable_command
from reelseek.native._remedy import RemedyKind

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit status of a command that could not be started, as a shell gives it."""


def environment_for(python: str = "") -> tuple[dict[str, str], str]:
    """The variables under which torchcodec loads, and what was set in one sentence.

    Nothing is proven here, so that a start costs little: the search path was simulated.

    Raises:
        BackendUnavailableError: No search path mends this environment.
    """
    found = examine(python, with_proof=False, decoders=False)
    if found.remedy.kind is RemedyKind.NOTHING_NEEDED:
        return dict(os.environ), ""
    if found.remedy.kind is not RemedyKind.SEARCH_PATH:
        command = found.remedy.command
        raise BackendUnavailableError(
            found.diagnosis.verdict,
            remedy=f"Run `{command}`" if command else found.remedy.note,
            path=found.facts.prefix,
            backend="torchcodec",
        )
    before = os.environ.get("LD_LIBRARY_PATH", "")
    value = ":".join([*found.remedy.folders, *([before] if before else [])])
    said = f"LD_LIBRARY_PATH={printable_command(shlex.quote(value))} ({found.diagnosis.verdict})"
    return {**os.environ, "LD_LIBRARY_PATH": value}, said


def run_command(command: Sequence[str], python: str = "") -> NoReturn:
    """Become the command, under a search path with which torchcodec loads where it needs one.

    The command takes this process's place, so its exit status, signals and output are its own.

    Args:
        command: The program and its arguments.
        python: The environment; where none is given, the command's own Python if it is one,
            else this one.
    """
    environment, said = environment_for(python or _python_of(command[0]))
    if said:
        print(f"reelseek run: {said}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], list(command), environment)  # noqa: S606  # no shell is wanted
    except FileNotFoundError:
        print(f"reelseek run: there is no command {command[0]!r}", file=sys.stderr)
        sys.exit(NOT_FOUND)
    except OSError as exc:
        print(f"reelseek run: {command[0]!r} can't be started: {exc}", file=sys.stderr)
        sys.exit(NOT_EXECUTABLE)


def _python_of(program: str) -> str:
    """The command's interpreter where the command is one; empty otherwise, or if it is missing."""
    if not is_python(program):
        return ""
    found = shutil.which(program)
    is_this = found is not None and os.path.abspath(found) == sys.executable
    return "" if found is None or is_this else found
