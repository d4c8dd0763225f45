"""Names that come out of other people's files, as text that may be shown to people.

A DT_NEEDED, a folder's name and an interpreter's answer may hold anything: a line break, after
which the next line looks like the doctor's own, or ESC, which commands a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ESCAPED = re.compile(r"[^ -~]+")
"""All but ASCII's printable characters; of these, what Python calls printable is left."""
BYTE_OF_NO_TEXT = range(0xDC80, 0xDD00)
"""What stands for a byte that is no UTF-8 (PEP 383)."""


def printable(text: str) -> str:
    r"""The text on one line, as Python would write it: ``\n``, ``\x1b``, ``\u202e``."""
    return ESCAPED.sub(lambda found: "".join(map(_escaped, found[0])), text)


def printable_lines(texts: Iterable[str]) -> tuple[str, ...]:
    """The same for each of several texts."""
    return tuple(map(printable, texts))


def printable_command(command: str) -> str:
    r"""A command on one line that still means the same to a shell that knows ``$'\x0a'``.

    Those are bash, zsh, ksh and POSIX 2024. What is escaped has to stand in single quotes, where
    ``shlex.quote`` puts all that isn't ASCII or is no letter.
    """
    return ESCAPED.sub(
        lambda found: found[0] if found[0].isprintable() else _in_shell(found[0]), command
    )


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    if ord(character) in BYTE_OF_NO_TEXT:
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def _in_shell(characters: str) -> str:
    data = characters.encode("utf-8", "surrogateescape")
    return "'$'" + "".join(f"\\x{byte:02x}" for byte in data) + "''"
