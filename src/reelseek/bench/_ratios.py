"""How decoders compare, from reads that were timed in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reelseek.bench._floor import NAME as FLOOR
from reelseek.bench._timing import Timing

TORCHCODEC_EXACT, TORCHCODEC_APPROXIMATE = "torchcodec (exact)", "torchcodec (approximate)"


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long one takes as another."""

    label: str
    """What is divided by what."""
    middle: float
    """The median over the pairs of reads."""
    low: float
    """The first quartile over the pairs."""
    high: float
    """The third quartile over the pairs."""
    cpu: float
    """The median of the ratios of the processor's times: steadier on a busy machine."""
    pairs: int
    """How many pairs there are."""

    def __str__(self) -> str:
        spread = f"(quartiles {self.low:.2f} to {self.high:.2f})"
        return f"{self.label}: {self.middle:.2f} {spread}; processor time {self.cpu:.2f}"

    def to_json(self) -> dict[str, Any]:
        """For the JSON document."""
        return asdict(self)


Times = tuple[Sequence[float], Sequence[float]]
"""Milliseconds on the wall's clock and on the processor's, of the same reads."""


def paired(label: str, above: Times, below: Times) -> Ratio | None:
    """The ratio of times of the same reads; None where there are none."""
    if not above[0] or len(above[0]) != len(below[0]):
        return None
    walls = np.asarray(above[0]) / np.asarray(below[0])
    low, middle, high = (round(float(value), 4) for value in np.percentile(walls, (25, 50, 75)))
    # The processor's clock may tick too slowly for a short read.
    cpus = np.asarray(above[1]) / np.maximum(np.asarray(below[1]), 1e-3)
    return Ratio(label, middle, low, high, round(float(np.median(cpus)), 4), len(walls))


def _warm(timing: Timing) -> Times:
    return timing.seek_ms, timing.seek_cpu_ms


def _cold(timing: Timing) -> Times:
    return timing.cold_ms, timing.cold_cpu_ms


def versus_floor(timing: Timing, timings: Sequence[Timing]) -> Ratio | None:
    """What one takes for a seek with its file open, over the floor's time for the same seek."""
    floor = _named(timings).get(FLOOR)
    return paired(f"{timing.name} / floor", _warm(timing), _warm(floor)) if floor else None


def ratios(timings: Sequence[Timing]) -> list[Ratio]:
    """The comparisons that say what the indexed engine is worth; those that were measured.

    Args:
        timings: Of reads of one plan.
    """
    known = _named(timings)
    own = known.get("indexed")
    if own is None:
        return []
    peer = known.get(TORCHCODEC_EXACT) or known.get("torchcodec")
    found = [versus_floor(own, timings)]
    if peer:
        found.append(paired(f"{peer.name} / indexed, file open", _warm(peer), _warm(own)))
    for name in (TORCHCODEC_EXACT, TORCHCODEC_APPROXIMATE):
        if name in known:
            found.append(paired(f"{name} / indexed, cold", _cold(known[name]), _cold(own)))
    open_too = own.beside_cold_ms, own.beside_cold_cpu_ms
    found.append(paired("indexed cold / indexed, file open", _cold(own), open_too))
    return [ratio for ratio in found if ratio is not None]


def _named(timings: Sequence[Timing]) -> Mapping[str, Timing]:
    return {timing.name: timing for timing in timings if timing.is_timed}
