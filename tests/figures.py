"""What the tests measured, shown at the end of a run, in however many processes they ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import reelseek

compared: Counter[str] = Counter()
"""(file, frame) pairs that were found equal to the oracle's, by backend; others fail a test."""
refused: Counter[str] = Counter()
"""Files refused, by backend."""
lines: list[str] = []
"""What single tests measured."""


def handed_over() -> dict[str, Any]:
    """All of it, as plain values for another process."""
    return {"compared": dict(compared), "refused": dict(refused), "lines": lines}


def take_over(figures: dict[str, Any]) -> None:
    """Add what another process handed over."""
    compared.update(figures["compared"])
    refused.update(figures["refused"])
    lines.extend(figures["lines"])


def comparisons() -> Iterator[str]:
    """One line per backend that was tested."""
    for name in reelseek.backend_names():
        if compared[name]:
            yield (
                f"{name}: {compared[name]:,} (file, frame) pairs equal to it, "
                f"{refused[name]} files refused"
            )
