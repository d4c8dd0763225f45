"""How decoders compare, from reads that were timed in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reelseek.bench._floor import NAME as FLOOR
from reelseek.bench._timing import Timing, median

TORCHCODEC_EXACT, TORCHCODEC_APPROXIMATE = "torchcodec (exact)", "torchcodec (approximate)"


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long one takes as another."""

    label: str
    """What is divided by what."""
    middle: float
    """The median over the pairs of reads; of two medians where reads aren't paired."""
    low: float | None
    """The first quartile over the pairs; None without pairs."""
    high: float | None
    """The third quartile over the pairs; None without pairs."""
    pairs: int
    """How many pairs there are."""

    def __str__(self) -> str:
        spread = f" (quartiles {self.low:.2f} to {self.high:.2f})" if self.low is not None else ""
        return f"{self.label}: {self.middle:.2f}{spread}"

    def to_json(self) -> dict[str, Any]:
        """For the JSON document."""
        return {name: getattr(self, name) for name in ("label", "middle", "low", "high", "pairs")}


def paired(label: str, above: Sequence[float], below: Sequence[float]) -> Ratio | None:
    """The ratio of times of the same reads; None where there are none."""
    if not above or len(above) != len(below):
        return None
    every = np.asarray(above) / np.asarray(below)
    low, middle, high = (round(float(value), 4) for value in np.percentile(every, (25, 50, 75)))
    return Ratio(label, middle, low, high, len(every))


def versus_floor(timing: Timing, timings: Sequence[Timing]) -> Ratio | None:
    """What one takes for a seek with its file open, over the floor's time for the same seek."""
    floor = _named(timings).get(FLOOR)
    return paired(f"{timing.name} / floor", timing.seek_ms, floor.seek_ms) if floor else None


def ratios(timings: Sequence[Timing]) -> list[Ratio]:
    """The comparisons that say what the indexed engine is worth; those that were measured."""
    known = _named(timings)
    own = known.get("indexed")
    if own is None:
        return []
    peer = known.get(TORCHCODEC_EXACT) or known.get("torchcodec")
    found = [versus_floor(own, timings)]
    if peer:
        found.append(paired(f"{peer.name} / indexed, file open", peer.seek_ms, own.seek_ms))
    for name in (TORCHCODEC_EXACT, TORCHCODEC_APPROXIMATE):
        if name in known:
            found.append(paired(f"{name} / indexed, cold", known[name].cold_ms, own.cold_ms))
    cold, warm = median(own.cold_ms), median(own.seek_ms)
    if cold and warm:
        found.append(Ratio("indexed cold / indexed, file open", cold / warm, None, None, 0))
    return [ratio for ratio in found if ratio is not None]


def _named(timings: Sequence[Timing]) -> Mapping[str, Timing]:
    return {timing.name: timing for timing in timings if timing.is_timed}
