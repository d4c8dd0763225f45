"""Where a script starts Python, and under which exports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reelseek.launch._shell_records import Assignment, Command, Place, Script
from reelseek.launch._words import base, is_python

LD = "LD_LIBRARY_PATH"
LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
SMALL_MODULES = frozenset({"pip", "venv", "site", "ensurepip", "compileall"})
BEHIND = frozenset({
    "srun", "mpirun", "mpiexec", "env", "exec", "time", "nice", "nohup", "timeout", "numactl",
    "command", "stdbuf",
})  # fmt: skip
"""Programs that start another one, named among their arguments."""
RUNNERS = frozenset({"uv", "conda", "mamba", "micromamba", "poetry", "pixi", "pdm", "pipenv"})
"""Programs whose subcommand ``run`` does so."""
HARMLESS = frozenset({
    "echo", "printf", "cd", "pwd", "exit", "return", "trap", "wait", "set", "unset", "shift",
    "test", "true", "false", ":", "read", "ulimit", "umask", "kill", "type", "module", "ml",
    "date", "hostname", "sleep", "mkdir", "ls", "cat", "cp", "mv", "rm", "touch", "tee", "grep",
    "nvidia-smi", "scontrol", "squeue",
})  # fmt: skip
"""Commands that surely start no Python."""


@dataclass(frozen=True, slots=True)
class Start:
    """A command that starts Python for more than a question."""

    command: Command
    program_at: int
    """Where the program stands among the command's words."""

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return self.command.words[self.program_at :]

    @property
    def runs_in_srun(self) -> bool:
        """Whether srun starts it."""
        return any(base(word) == "srun" for word in self.command.words[: self.program_at])


def program_of(command: Command) -> int | None:
    """Where Python or a launcher of it stands among a command's words."""
    for at, word in enumerate(command.words):
        if is_python(word) or base(word) in LAUNCHERS:
            return at if at == 0 or _starts_another(command.words[:at]) else None
    return None


def _starts_another(before: tuple[str, ...]) -> bool:
    first = base(before[0])
    return first in BEHIND or (first in RUNNERS and "run" in before)


def last_unknown(script: Script) -> int:
    """The number of the last command that may start Python in a way that can't be seen here."""
    seen = HARMLESS | {command.function for command in script.commands}
    unknown = (
        command.at
        for command in script.commands
        if command.name and command.name not in seen
        and not _is_asked(command) and program_of(command) is None
    )  # fmt: skip
    return max(unknown, default=0)


def _is_asked(command: Command) -> bool:
    """Whether the script only takes its answer."""
    return any(shell.startswith("substitution") for shell in command.place)


def starts(script: Script) -> Iterator[Start]:
    """The commands that start Python, in order; questions such as ``python -V`` left out."""
    for command in sorted(script.commands, key=lambda command: command.at):
        at = program_of(command)
        if at is not None and not _is_asked(command) and not _is_small(command.words[at + 1 :]):
            yield Start(command, at)


def _is_small(arguments: tuple[str, ...]) -> bool:
    for number, word in enumerate(arguments):
        if word in ("-V", "-VV", "--version", "-c"):
            return True
        if word == "-m":
            return bool(SMALL_MODULES.intersection(arguments[number + 1 : number + 2]))
        if not word.startswith("-"):
            return False
    return False


def reaches(place: Place, other: Place) -> bool:
    """Whether what is exported in one place holds in the other."""
    return other[: len(place)] == place


def exports(script: Script) -> list[Assignment]:
    """The places where LD_LIBRARY_PATH gets its value and is exported, then or before."""
    found, is_exported = [], _exports_all(script)
    for made in sorted(script.assignments, key=lambda made: made.at):
        if made.name == LD:
            is_exported = is_exported or made.is_exported
            if is_exported:
                found.append(made)
    return found


def _exports_all(script: Script) -> bool:
    return any(
        command.name == "set" and re.search(r"(^| )-\w*a", " ".join(command.words[1:]))
        for command in script.commands
    )


def before(assignments: Iterable[Assignment], start: Start) -> list[Assignment]:
    """Those that hold when a command starts, its own included."""
    command = start.command
    own = [made for made in command.assignments if made.name == LD]
    return own + [
        made for made in assignments if made.at < command.at and reaches(made.place, command.place)
    ]
