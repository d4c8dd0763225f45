"""Words for bash, quoted so that it takes them as they are, and shellcheck too."""

from __future__ import annotations

import re
from collections.abc import Iterable

PLAIN = re.compile(r"[A-Za-z0-9_./:@%-]+")
"""What may stand without quotes: fewer characters than bash allows, as ``a=b`` and ``a,b`` in an
array look like mistakes."""


def quoted(word: str) -> str:
    """One word for bash."""
    if PLAIN.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def array(name: str, words: Iterable[str]) -> list[str]:
    """Lines that set an array; the words are quoted already."""
    return [f"{name}=(", *(f"    {word}" for word in words), ")"]
