"""Options that several subcommands read."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def listed(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def whole_numbers(text: str) -> list[int]:
    """Whole numbers with commas; a usage error where there are none."""
    try:
        found = [int(part) for part in listed(text)]
    except ValueError:
        found = []
    if not found:
        raise typer.BadParameter(f"{text!r}: give whole numbers such as 0,16")
    return found


def names_of_backends(text: str, known: Sequence[str]) -> list[str] | None:
    """Names with commas, None where there are none; a usage error for one that isn't known."""
    names = listed(text)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"no backend {unknown[0]!r}; choose from: {', '.join(known)}")
    return names or None
