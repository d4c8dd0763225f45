"""What reads at random places cost: coded frames by the index, and time by the clock."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reelseek.care.reencode._seek import SECOND_FRAME
from reelseek.care.report._coding import KnownVideo
from reelseek.care.report._records import CameraSeeks, Sampled
from reelseek.care.report._source import READ_ERRORS, Source, fault_text
from reelseek.index import FrameTable
from reelseek.index._gop import find_existing_shown
from reelseek.index._plan import plan_frames
from reelseek.index._units import UnitTable
from reelseek.video._open import open_with_tables

OFFSETS = (0, SECOND_FRAME)
"""The frames of one read, from its base: those that plan_encodings times too."""
COUNTED_READS = 240
"""Reads of each camera whose frames are counted."""
TIMED_READS = 80
"""Reads of each camera that are timed, at most."""
MAX_TIMED_SECONDS = 3.0
"""For the timed reads of a camera, shared out between its videos."""
BETTER_GROUP = 2
"""The key-frame interval that is compared with: the finest that saves bytes at all."""

Read = tuple[int, ...]
"""Numbers of frames of one video."""


@dataclass(frozen=True, slots=True)
class _VideoReads:
    """Reads of one video."""

    video: KnownVideo
    reads: list[Read]


def seeks_of(
    source: Source,
    camera: str,
    videos: Sequence[KnownVideo],
    sample: Sampled,
    faults: Sequence[str],
) -> CameraSeeks:
    """Count and time reads at random places of these videos."""
    chosen = random.Random(0)  # noqa: S311 - a choice, not a secret; the same one each time
    share = -(-COUNTED_READS // max(1, len(videos)))
    every = [
        _VideoReads(video, [_random_read(chosen, len(video.tables.frames)) for _ in range(share)])
        for video in videos
    ]
    counted = np.concatenate([np.zeros((0, 2), np.int64), *map(_counts, every)])
    ideal = [_if_reencoded(read) for one in every for read in one.reads]
    milliseconds, backend, wrong = _timed(source, every)
    return CameraSeeks(
        key=camera,
        needed=counted[:, 1],
        on_the_way=counted[:, 0],
        if_reencoded=np.array(ideal, np.int64),
        milliseconds=np.array(milliseconds, np.float64),
        backend=backend,
        sample=sample,
        faults=(*faults, *wrong),
    )


def _random_read(chosen: random.Random, count: int) -> Read:
    """A base from which all offsets are inside the video, where it is long enough."""
    base = chosen.randint(0, max(0, count - 1 - max(OFFSETS)))
    return tuple(dict.fromkeys(min(base + offset, count - 1) for offset in OFFSETS))


def _counts(one: _VideoReads) -> NDArray[np.int64]:
    """(R, 2) coded frames on the way to each read, and those of them that are decoded."""
    units = one.video.tables.units
    if isinstance(units, str):
        table = one.video.tables.frames
        ways = [_packets_on_the_way(table, read) for read in one.reads]
        return np.array([(way, way) for way in ways], np.int64).reshape(-1, 2)
    is_coded = ~find_existing_shown(one.video.path, units)
    before = np.concatenate(([0], np.cumsum(is_coded)))
    counts = [_counts_of_read(units, is_coded, before, read) for read in one.reads]
    return np.array(counts, np.int64).reshape(-1, 2)


def _counts_of_read(
    units: UnitTable, is_coded: NDArray[np.bool_], before: NDArray[np.int64], read: Read
) -> tuple[int, int]:
    runs = plan_frames(units, read)
    entries = [entry for entry, _ in units.spans_of([run.frames[0] for run in runs])]
    ways = [
        before[max(run.targets) + 1] - before[entry]
        for run, entry in zip(runs, entries, strict=True)
    ]
    return int(sum(ways)), int(sum(is_coded[run.units].sum() for run in runs))


def _packets_on_the_way(table: FrameTable, read: Read) -> int:
    """For a video that isn't readable by units: all packets from the key frames on."""
    furthest: dict[int, int] = {}
    for frame in read:
        entry, position = int(table.entry[frame]), int(table.decode_position[frame])
        entry, position = max(entry, 0), position if position >= 0 else frame
        furthest[entry] = max(furthest.get(entry, 0), position - entry + 1)
    return sum(furthest.values())


def _if_reencoded(read: Read) -> int:
    """Coded frames with a key frame every BETTER_GROUP frames and no reordering."""
    furthest: dict[int, int] = {}
    for frame in read:
        group, place = divmod(frame, BETTER_GROUP)
        furthest[group] = max(furthest.get(group, 0), place + 1)
    return sum(furthest.values())


def _timed(source: Source, every: Sequence[_VideoReads]) -> tuple[list[float], str, list[str]]:
    """Milliseconds of some reads, the backend that made them, and what went wrong."""
    found: list[float] = []
    faults: list[str] = []
    backend = ""
    seconds = MAX_TIMED_SECONDS / max(1, len(every))
    share = -(-TIMED_READS // max(1, len(every)))
    for one in every:
        try:
            with open_with_tables(one.video.path, one.video.tables) as video:
                backend = backend or video.info.backend
                video.get_frames_at(one.reads[-1])  # the first read also makes the decoder
                end = time.monotonic() + seconds
                for read in one.reads[:share]:
                    start = time.perf_counter()
                    video.get_frames_at(read)
                    found.append((time.perf_counter() - start) * 1000)
                    if time.monotonic() > end:
                        break
        except READ_ERRORS as exc:
            faults.append(fault_text(source.root, exc))
    return found, backend, faults
