"""Words of a command: quoted so that bash takes them as they are, and shellcheck too; a Python."""

from __future__ import annotations

import re
from collections.abc import Iterable

PLAIN = re.compile(r"[A-Za-z0-9_./:@%-]+")
"""What may stand without quotes: fewer characters than bash allows, as ``a=b`` and ``a,b`` in an
array look like mistakes."""

PYTHON = re.compile(r"python(3(\.\d+)?)?")


def base(word: str) -> str:
    """A path's last part."""
    return word.rpartition("/")[2]


def is_python(word: str) -> bool:
    """Whether this starts a Python interpreter."""
    return PYTHON.fullmatch(base(word)) is not None


def quoted(word: str) -> str:
    """One word for bash."""
    if PLAIN.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def array(name: str, words: Iterable[str]) -> list[str]:
    """Lines that set an array; the words are quoted already."""
    return [f"{name}=(", *(f"    {word}" for word in words), ")"]
