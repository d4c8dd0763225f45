"""What a read of some frames costs the indexed engine, without decoding anything."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reelseek.errors import FrameIndexError
from reelseek.index import FrameTable, index_tables
from reelseek.index._gop import GopUnit, find_existing_shown, gop_span, read_units
from reelseek.index._plan import Run, plan_frames
from reelseek.index._units import Pruning, UnitTable
from reelseek.video.backends._indexed import NAME
from reelseek.video.backends._unit_reader import UnitReader

SCHEMA = "reelseek.explain/1"
NEAR_UNITS = 60
"""Groups of pictures that lie no further apart are shown with what lies between them."""
SAMPLED_FRAMES = 500
"""Frames over which a file's means are taken."""
NEEDED_WITH_G2 = 1.5
"""What a random frame needs, on average, with a key frame every 2 frames."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a read costs."""

    on_the_way: int
    """Coded frames from the key frame up to the last frame asked for; over all key frames."""
    needed: int
    """Those of them that are decoded."""
    units_on_the_way: int
    """The same in units: headers that only show a hidden frame count too."""
    units_needed: int
    """The units that are fed to the decoder."""
    bytes_read: int | None
    """Bytes that are read; None where the file isn't readable by units."""
    preads: int | None
    """Calls that read them; None where the file isn't readable by units."""


@dataclass(frozen=True, slots=True)
class FrameCost:
    """What one frame costs when it is read alone."""

    frame: int
    """Its number."""
    key_frame: int | None
    """The frame from which decoding starts; None where that one isn't displayed."""
    cost: Cost
    """Its price."""


@dataclass(frozen=True, slots=True)
class Gop:
    """A group of pictures that the read touches; several where they lie near each other."""

    units: tuple[GopUnit, ...]
    """In decoding order."""
    needed: frozenset[int]
    """Numbers of the units that are decoded."""
    targets: frozenset[int]
    """Numbers of the units that display the frames asked for."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a read costs, and why."""

    path: str
    """The file."""
    table: FrameTable
    """Its frames."""
    units: UnitTable | None
    """Its units; None where it can't be read by them."""
    why_not: str
    """Why it can't be read by units; empty where it can."""
    frames: tuple[FrameCost, ...]
    """Each frame's own cost, in the order asked for."""
    together: Cost
    """All frames read at once: what they share is decoded once."""
    mean_on_the_way: float
    """Coded frames from the key frame to a frame of the file, on average."""
    mean_needed: float
    """Coded frames that a frame of the file needs, on average."""
    gops: tuple[Gop, ...]
    """The groups of pictures that the read touches, in the file's order."""

    @property
    def shared(self) -> int:
        """Coded frames that would be decoded again if each frame were read alone."""
        return sum(one.cost.needed for one in self.frames) - self.together.needed

    @property
    def pruning(self) -> str:
        """How much is left out."""
        return (self.units.pruning if self.units else Pruning.NONE).value

    @property
    def pruning_reason(self) -> str:
        """Why no more is left out; empty where nothing more could be."""
        return self.units.pruning_reason if self.units else self.why_not

    def to_json(self) -> dict[str, Any]:
        """The versioned document."""
        stream = self.table.stream
        return {
            "schema": SCHEMA,
            "path": self.path,
            "codec": stream.codec,
            "width": stream.width,
            "height": stream.height,
            "num_frames": len(self.table),
            "num_key_frames": int(self.table.is_key.sum()),
            "is_readable_by_units": self.units is not None,
            "why_not": self.why_not,
            "pruning": (self.units.pruning if self.units else Pruning.NONE).name.lower(),
            "pruning_reason": self.pruning_reason,
            "frames": [
                {"frame": one.frame, "key_frame": one.key_frame, **asdict(one.cost)}
                for one in self.frames
            ],
            "together": {**asdict(self.together), "shared": self.shared},
            "mean_on_the_way": round(self.mean_on_the_way, 3),
            "mean_needed": round(self.mean_needed, 3),
            "gops": [_gop_json(gop) for gop in self.gops],
            "summary": summary(self),
        }


def explain(path: str | os.PathLike[str], frames: Sequence[int]) -> Explanation:
    """Say what a read of these frames costs.

    Args:
        path: A video file.
        frames: Numbers in display order; negative ones count from the end.

    Raises:
        FrameIndexError: There is no such frame.
        VideoError: The file can't be read.
    """
    path = os.path.abspath(os.fspath(path))
    tables = index_tables(path)
    table, units = tables.frames, tables.units
    wanted = [_checked(path, frame, len(table)) for frame in frames]
    if isinstance(units, str):
        return _by_another_backend(path, table, units, wanted)
    price = _Price(path, table, units)
    runs = plan_frames(units, wanted)
    sample = np.linspace(0, len(table) - 1, min(len(table), SAMPLED_FRAMES)).astype(int).tolist()
    on_the_way, needed = np.mean([price.counts(plan_frames(units, [n])) for n in sample], axis=0)
    return Explanation(
        path=path,
        table=table,
        units=units,
        why_not="",
        frames=tuple(price.of_frame(frame) for frame in wanted),
        together=price.of(runs),
        mean_on_the_way=float(on_the_way),
        mean_needed=float(needed),
        gops=_gops(path, units, runs),
    )


def summary(found: Explanation) -> str:
    """What it means for random access, in one sentence."""
    together, mean = found.together, found.mean_needed
    frames = f"{len(found.frames)} frames" if len(found.frames) > 1 else "this frame"
    if found.units is None:
        return (
            f"Not readable by units ({found.why_not}): another backend decodes all "
            f"{together.on_the_way} packets on the way to {frames}."
        )
    said = f"Decodes {together.needed} of {together.on_the_way} coded frames on the way to {frames}"
    if together.on_the_way > 1.05 * together.needed:
        said += f": pruning saves {together.on_the_way / together.needed:.1f}x"
    said += f". A random frame of this file needs {mean:.1f} of {found.mean_on_the_way:.1f}"
    if mean > 1.1 * NEEDED_WITH_G2:
        return f"{said}; re-encoded with a key frame every 2 frames, {NEEDED_WITH_G2}."
    return f"{said}: random access can hardly be cheaper."


class _Price:
    """Counts what the engine would read."""

    def __init__(self, path: str, table: FrameTable, units: UnitTable) -> None:
        self._units = units
        coded = ~find_existing_shown(path, units)
        self._coded_before = np.concatenate(([0], np.cumsum(coded)))
        self._is_coded = coded.item
        self._reader = _DryReader(path)
        self._frame_of = dict(zip(units.of_frame.tolist(), range(len(table)), strict=True))

    def of(self, runs: Sequence[Run]) -> Cost:
        """What these runs cost."""
        sizes = self._reader.sizes
        sizes.clear()
        for run in runs:
            for _data in self._reader.read(self._units.places_of(run.units)):
                pass
        on_the_way, needed = self.counts(runs)
        return Cost(
            on_the_way=on_the_way,
            needed=needed,
            units_on_the_way=sum(stop - start for start, stop in map(self._way, runs)),
            units_needed=sum(len(run.units) for run in runs),
            bytes_read=sum(sizes),
            preads=len(sizes),
        )

    def counts(self, runs: Sequence[Run]) -> tuple[int, int]:
        """Coded frames on the way, and those needed."""
        ways = [self._coded_before[list(self._way(run))].tolist() for run in runs]
        needed = sum(self._is_coded(unit) for run in runs for unit in run.units)
        return sum(stop - start for start, stop in ways), needed

    def _way(self, run: Run) -> tuple[int, int]:
        """From the entry to after the last target."""
        frame = next(iter(run.targets.values()))
        return int(self._units.entry_of_frame[frame]), max(run.targets) + 1

    def of_frame(self, frame: int) -> FrameCost:
        """What one frame costs alone."""
        entry = int(self._units.entry_of_frame[frame])
        cost = self.of(plan_frames(self._units, [frame]))
        return FrameCost(frame, self._frame_of.get(entry), cost)


class _DryReader(UnitReader):
    """The engine's own reads, counted and not made."""

    def __init__(self, path: str) -> None:
        super().__init__(path, NAME, None)
        self.sizes: list[int] = []

    def _read_bytes(self, _offset: int, size: int) -> bytes:
        self.sizes.append(size)
        return b""


def _gops(path: str, units: UnitTable, runs: Sequence[Run]) -> tuple[Gop, ...]:
    """What the runs touch, in the file's order."""
    spans: list[range] = []
    for unit in sorted(unit for run in runs for unit in (run.units[0], max(run.targets))):
        span = gop_span(units, unit)
        if spans and span.start - spans[-1].stop <= NEAR_UNITS:
            span = range(spans.pop().start, span.stop)
        spans.append(span)
    needed = frozenset(unit for run in runs for unit in run.units)
    targets = frozenset(unit for run in runs for unit in run.targets)
    return tuple(
        Gop(read_units(path, units, span), needed & set(span), targets & set(span))
        for span in spans
    )


def _checked(path: str, frame: int, count: int) -> int:
    if not -count <= frame < count:
        raise FrameIndexError(
            f"no frame {frame}",
            remedy=f"Its {count} frames are 0 to {count - 1}, or -{count} to -1 from the end",
            path=path,
            frame=frame,
        )
    return frame % count


def _by_another_backend(
    path: str, table: FrameTable, why_not: str, wanted: Sequence[int]
) -> Explanation:
    """A file that isn't readable by units: all packets on the way are decoded."""
    # Where packets can't be told apart, frames stand in for them.
    position = np.where(table.decode_position >= 0, table.decode_position, np.arange(len(table)))
    start = np.maximum(table.entry, 0)
    ways = position - start + 1
    frame_at = dict(zip(position.tolist(), range(len(table)), strict=True))
    frames = tuple(
        FrameCost(frame, frame_at.get(int(start[frame])), _all_of(int(ways[frame])))
        for frame in wanted
    )
    furthest: dict[int, int] = {}
    for frame in wanted:
        first = int(start[frame])
        furthest[first] = max(furthest.get(first, 0), int(ways[frame]))
    total, mean = sum(furthest.values()), float(ways.mean())
    return Explanation(path, table, None, why_not, frames, _all_of(total), mean, mean, ())


def _all_of(packets: int) -> Cost:
    return Cost(packets, packets, packets, packets, None, None)


def _gop_json(gop: Gop) -> list[dict[str, Any]]:
    return [
        {
            "unit": one.unit,
            "kind": one.kind.name.lower(),
            "frame": one.frame,
            "num_bytes": one.num_bytes,
            "references": list(one.references),
            "is_needed": one.unit in gop.needed,
            "is_target": one.unit in gop.targets,
        }
        for one in gop.units
    ]
