"""The plan: for any set of frames of one file, the units to feed and the outputs to keep.

Minimal, and shared between the frames: a unit that two frames need is fed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reelseek.index._columns import impossible
from reelseek.index._units import Pruning, UnitFlag, UnitTable

LEADING = int(UnitFlag.LEADING)


class Run(NamedTuple):
    """Units to feed, one after the other, to a decoder that has been reset."""

    units: list[int]
    """Numbers of units, in decoding order."""
    targets: dict[int, int]
    """Which of them are kept: unit to the number of the frame that it displays."""

    @property
    def frames(self) -> tuple[int, ...]:
        """Numbers of the frames to keep, in display order."""
        return tuple(sorted(self.targets.values()))


def plan_frames(table: UnitTable, frames: Iterable[int]) -> list[Run]:
    """The runs that give these frames.

    Args:
        table: The file's units.
        frames: Numbers in display order; in any order, repeated or not.

    Returns:
        Runs in the order of the file. Frames whose needs don't meet come in runs of their own.

    Raises:
        IndexFileError: The table comes from an index file and says what can't be.
    """
    by_entry: dict[int, dict[int, int]] = {}
    wanted = list(frames)
    for frame, (entry, unit) in zip(wanted, table.spans_of(wanted), strict=True):
        if entry > unit:
            raise impossible(IndexError(f"unit {entry} is the entry of unit {unit}"))
        by_entry.setdefault(entry, {})[unit] = frame
    find = _by_slots if table.pruning is Pruning.SLOTS else _from_entry
    return [Run(find(table, entry, by_entry[entry]), by_entry[entry]) for entry in sorted(by_entry)]


def _by_slots(table: UnitTable, entry: int, targets: Mapping[int, int]) -> list[int]:
    """The closure over reference slots, walking back from the last target to the entry.

    ``wanted`` holds the slots whose content, at this point of the stream, a later unit reads. A
    unit that writes one of them is needed; then the slots that it reads are wanted instead.
    """
    last = max(targets)
    if last == entry:
        return [entry]
    reads, writes = table.slots_between(entry, last + 1)
    needed: list[int] = []
    wanted = 0
    for unit in range(last, entry - 1, -1):
        written = writes[unit - entry]
        if unit in targets or written & wanted:
            needed.append(unit)
            wanted = (wanted & ~written) | reads[unit - entry]
    needed.reverse()
    return needed


def _from_entry(table: UnitTable, entry: int, targets: Mapping[int, int]) -> list[int]:
    """All units from the entry on, without those that nothing reads.

    Leading pictures, which follow the entry and are shown before it, belong to an earlier entry;
    nothing that is shown after the entry refers to them (H.265 3.76, "leading picture").
    """
    can_drop = int(UnitFlag.DROPPABLE) if table.pruning is Pruning.DROPPABLE else 0
    flags = table.flags_between(entry, max(targets) + 1)
    # Only of leading pictures it is asked which entry is theirs: it may be a later one than this.
    return [
        unit
        for unit, flag in enumerate(flags, entry)
        if unit in targets
        or not (flag & can_drop or (flag & LEADING and table.entry_of_unit[unit] < entry))
    ]
