"""Frozen, repeating and black stretches, told from a robot that stands still.

In a still scene a decoder may well return equal pictures, so these count only where the robot's
own state moves: more than half of the numbers that vary in the dataset have to pass through a
tenth of their range. A camera that sees only one of two arms is thus not taken for frozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.care.verify._findings import Finding
from reelseek.care.verify._judge_videos import Video
from reelseek.care.verify._windows import Placed
from reelseek.datasets._records import Layout
from reelseek.errors import ReelseekError

STATE, ACTION = "observation.state", "action"
LEAST_SECONDS = 1.0
"""Of a frozen or black stretch."""
MOVED = 0.1
"""Share of its range in the dataset through which a number has to pass to have moved."""
MOVING = 0.5
"""Share of the numbers that vary; more than that have to move."""
REPEATED = 0.4
"""Share of the frames during which the robot moves that are equal to the one before: half of them
are at half the rate. AV1 with a key frame every other frame makes a fifth of a slow robot's so."""
FEWEST = 10
"""Frames on which such a share may rest."""


@dataclass(slots=True)
class Motion:
    """How much a robot moves in some rows of an episode."""

    layout: Layout
    """Where rows are."""
    column: str
    """A column of vectors: its state, or its actions."""
    least: NDArray[np.float64]
    """The least value of each element in the dataset."""
    most: NDArray[np.float64]
    """The greatest."""
    _kept: dict[int, NDArray[np.float64] | None] = field(default_factory=dict)

    def moves(self, episode: int, first: int, last: int) -> bool:
        """True where the robot moves from one row of an episode to another."""
        values = self._values(episode)
        if values is None:
            return False
        part = values[first : last + 1]
        span = self.most - self.least
        varies = span > 0
        if len(part) < 2 or not varies.any():
            return False
        passed = (part.max(axis=0) - part.min(axis=0))[varies] / span[varies]
        return bool(np.mean(passed >= MOVED) > MOVING)

    def _values(self, episode: int) -> NDArray[np.float64] | None:
        if episode not in self._kept:
            self._kept.clear()
            self._kept[episode] = self._read(episode)
        return self._kept[episode]

    def _read(self, episode: int) -> NDArray[np.float64] | None:
        from reelseek.datasets._parquet import column_names, read_rows

        position = self.layout.episodes.position_of(episode)
        if position is None:
            return None
        try:
            span = self.layout.rows_of(position)
            unused = frozenset(column_names(span.path)) - {self.column}
            values = read_rows(span, episode, unused)[self.column]
        except (ReelseekError, KeyError):
            return None  # a finding of its own
        flat = np.asarray(values.reshape(len(values), -1), np.float64)
        return flat if flat.shape[1] == len(self.least) else None


def motion_of(layout: Layout | None, columns: Mapping[str, Any]) -> Motion | None:
    """The motion of a dataset; None where it has neither state nor actions.

    Args:
        layout: The dataset's.
        columns: The least and greatest values of each column in the dataset.
    """
    for name in (STATE, *sorted(n for n in columns if n.startswith(f"{STATE}.")), ACTION):
        ranges = columns.get(name)
        if layout is not None and ranges is not None:
            return Motion(layout, name, np.array(ranges[0], float), np.array(ranges[1], float))
    return None


def judge_pictures(video: Video, motion: Motion | None) -> Iterator[Finding]:
    """What is wrong with a decoded video's pictures."""
    decoded = video.facts.get("decoded")
    if not decoded or video.fps is None:
        return
    yield from _black(video, decoded, video.fps)
    if motion is not None:
        for one in video.placed():
            frozen = list(_frozen(video, one, decoded, motion, video.fps))
            yield from frozen
            if not frozen:
                yield from _repeated(video, one, decoded, motion, video.fps)


def _black(video: Video, decoded: Any, fps: float) -> Iterator[Finding]:
    for first, last in decoded["black"]:
        if last + 1 - first >= LEAST_SECONDS * fps:
            what = f"black for {(last + 1 - first) / fps:.1f} s"
            yield video.found("frames-black", what, frames=(first, last))


def _frozen(
    video: Video, one: Placed, decoded: Any, motion: Motion, fps: float
) -> Iterator[Finding]:
    for first, last in _inside(decoded["still"], one):
        is_long = last + 1 - first >= LEAST_SECONDS * fps
        if not is_long or _overlaps(decoded["black"], first, last):
            continue
        if motion.moves(one.part.episode, first - one.first, last - one.first):
            what = f"one picture for {(last + 1 - first) / fps:.1f} s while {motion.column} moves"
            yield video.found("frames-frozen", what, frames=(first, last), episode=one.part.episode)


def _repeated(
    video: Video, one: Placed, decoded: Any, motion: Motion, fps: float
) -> Iterator[Finding]:
    """Look at a second at a time: of those in which the robot moves, how many frames repeat?"""
    equal = np.zeros(one.count, np.bool_)
    for first, last in _inside(decoded["equal"], one):
        if not _overlaps(decoded["black"], first, last):
            equal[first - one.first : last + 1 - one.first] = True
    if equal.sum() < REPEATED * FEWEST:
        return
    second = max(2, round(fps))
    moving = [
        slice(start, start + second)
        for start in range(0, one.count - second + 1, second)
        if motion.moves(one.part.episode, start, start + second - 1)
    ]
    frames = sum(len(equal[part]) for part in moving)
    repeats = int(sum(equal[part].sum() for part in moving))
    if frames >= FEWEST and repeats >= REPEATED * frames:
        what = f"{repeats} of {frames} frames repeat the one before them while {motion.column} "
        span = (one.first + moving[0].start, one.first + moving[-1].stop - 1)
        yield video.found("frames-repeated", f"{what}moves", frames=span, episode=one.part.episode)


def _inside(runs: list[list[int]], one: Placed) -> Iterator[tuple[int, int]]:
    """The parts of runs that are an episode's."""
    for first, last in runs:
        if first < one.end and last >= one.first:
            yield max(first, one.first), min(last, one.end - 1)


def _overlaps(runs: list[list[int]], first: int, last: int) -> bool:
    return any(start <= last and end >= first for start, end in runs)
