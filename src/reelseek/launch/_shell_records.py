"""What a bash script consists of: commands, assignments, and uses of variables."""

from __future__ import annotations

from dataclasses import dataclass, field

from reelseek.launch._words import base

Place = tuple[str, ...]
"""The shells that a command runs in, the script's own left out: an export in one of them ends
with it."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """``name=value``, as a command of its own, an argument of ``export``, or before a command."""

    name: str
    value: str
    """As it stands, without its quotes; empty for ``export name``."""
    expanded: str
    """With the variables that the script gives a plain value."""
    line: int
    place: Place
    is_exported: bool
    has_value: bool
    at: int
    """Its number among the script's commands and assignments."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command with its arguments."""

    words: tuple[str, ...]
    """Without quotes; arrays that the script sets are taken apart."""
    line: int
    place: Place
    assignments: tuple[Assignment, ...]
    """That stand before it."""
    text_given: str
    """What a here-document or here-string gives it on stdin."""
    text_line: int
    function: str
    """The function whose body it is in."""
    is_conditional: bool
    """Whether it is in a branch of ``if`` or ``case``."""
    at: int
    last_line: int
    """Where it ends: a command may be written over several lines."""

    @property
    def name(self) -> str:
        """The program's name without its folder."""
        return base(self.words[0]) if self.words else ""


@dataclass(slots=True)
class Script:
    """What was read."""

    lines: list[str]
    commands: list[Command] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    bare_uses: list[tuple[str, int, int]] = field(default_factory=list)
    """``$NAME`` and ``${NAME}``, which fail where NAME is unset: name, line, ``at``. Those behind a
    question whether it is set are left out."""
    defaults: list[tuple[str, int]] = field(default_factory=list)
    """``${NAME:=...}``, after which NAME is set: name, ``at``."""
    sbatch: list[tuple[int, str]] = field(default_factory=list)
    """The #SBATCH lines above the first command: number and options."""
    text_lines: set[int] = field(default_factory=set)
    """Lines inside here-documents and strings."""
    not_understood: list[int] = field(default_factory=list)
    """Lines."""

    def line(self, number: int) -> str:
        """A line without the space around it."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""
