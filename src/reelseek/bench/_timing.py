"""What reads took with each decoder, and how decoders compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reelseek.bench._child import ReadReport
from reelseek.bench._readers import usage_of


@dataclass(frozen=True, slots=True)
class Timing:
    """What one backend's reads took. All times in milliseconds."""

    check: ReadReport
    """What came of comparing its frames."""
    seek_ms: list[float] = field(default_factory=list)
    """One camera's frames of one seek, its file open: for each seek, each camera in turn."""
    seek_cpu_ms: list[float] = field(default_factory=list)
    """The processor's time for the same, over all threads: it doesn't count other processes."""
    sample_ms: list[float] = field(default_factory=list)
    """All cameras of one seek, one after another."""
    cold_ms: list[float] = field(default_factory=list)
    """The first touch of each file: open, read, close. Backends have the index; plain calls find
    frames in their own way."""
    cold_cpu_ms: list[float] = field(default_factory=list)
    """The processor's time for the same."""
    beside_cold_ms: list[float] = field(default_factory=list)
    """After each of these, the same frames once more, the file open."""
    beside_cold_cpu_ms: list[float] = field(default_factory=list)
    """The processor's time for the same."""
    first_read_ms: list[float] = field(default_factory=list)
    """Opening a file without an index, and one read."""

    @property
    def name(self) -> str:
        """The backend's name, or the plain call's."""
        return self.check.reader

    @property
    def is_timed(self) -> bool:
        """True where there are times: all frames were right."""
        return bool(self.seek_ms)

    @property
    def usage(self) -> str:
        """How it is used."""
        return usage_of(self.name)

    def to_json(self) -> dict[str, Any]:
        """For the JSON document: all raw times, and their summary."""
        return {
            "name": self.name,
            "version": self.check.version,
            "usage": self.usage,
            "is_timed": self.is_timed,
            "seek_median_ms": median(self.seek_ms),
            "seek_p95_ms": percentile(self.seek_ms, 95),
            "sample_median_ms": median(self.sample_ms),
            "cold_median_ms": median(self.cold_ms),
            "first_read_median_ms": median(self.first_read_ms),
            "seek_cpu_median_ms": median(self.seek_cpu_ms),
            "cold_cpu_median_ms": median(self.cold_cpu_ms),
            "seek_ms": self.seek_ms,
            "seek_cpu_ms": self.seek_cpu_ms,
            "sample_ms": self.sample_ms,
            "cold_ms": self.cold_ms,
            "cold_cpu_ms": self.cold_cpu_ms,
            "beside_cold_ms": self.beside_cold_ms,
            "beside_cold_cpu_ms": self.beside_cold_cpu_ms,
            "first_read_ms": self.first_read_ms,
            "check": self.check.to_json(),
        }


def percentile(values: Sequence[float], percent: float) -> float | None:
    """A percentile in the values' unit; None of no values."""
    return round(float(np.percentile(values, percent)), 4) if values else None


def median(values: Sequence[float]) -> float | None:
    """The median; None of no values."""
    return percentile(values, 50)
