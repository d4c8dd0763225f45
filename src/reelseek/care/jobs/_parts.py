"""Parts of a run, each for one task of a cluster: about equal in bytes, as files."""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reelseek.care.jobs._job import Item
from reelseek.care.jobs._work import Work


@dataclass(frozen=True, slots=True)
class Part:
    """What one task of a cluster does."""

    function: str
    """The job's function."""
    arguments: dict[str, Any]
    """Its arguments."""
    run: str
    """The run's name."""
    journal: str
    """The journal file that the task appends to."""
    log: str
    """Where the task may write what its workers say."""
    cpus: int
    """Worker processes."""
    items: tuple[Item, ...]
    """The largest first."""
    needs: tuple[str, ...] = ()
    """Folders that the job needs."""

    def write(self, path: Path) -> None:
        """Write it, and an empty journal: who looks for that later finds it at once, on NFS too."""
        path.parent.mkdir(parents=True, exist_ok=True)
        Path(self.log).parent.mkdir(parents=True, exist_ok=True)
        Path(self.journal).touch()
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Part:
        """Read what ``write`` wrote."""
        fields = json.loads(path.read_text())
        fields["items"] = tuple(Item(**item) for item in fields["items"])
        return cls(**{**fields, "needs": tuple(fields["needs"])})


def part_of(work: Work, name: str, items: Sequence[Item], cpus: int) -> Part:
    """These items of a run as a part."""
    return Part(
        function=work.job.function,
        arguments=dict(work.job.arguments),
        run=work.run,
        journal=str(work.results(name)),
        log=str(work.run_folder / "logs" / f"{name}.log"),
        cpus=cpus,
        items=tuple(items),
        needs=work.job.needs,
    )


def split_by_bytes(items: Sequence[Item], most: int) -> list[list[Item]]:
    """At most so many parts of about equal bytes: the largest items are dealt first.

    Each goes to the part that has least so far (longest processing time first: Graham 1969, at
    most 4/3 of the best possible). An item counts as one byte at least.
    """
    parts: list[list[Item]] = [[] for _ in range(min(most, len(items)))]
    weights = [(0, number) for number in range(len(parts))]
    for item in sorted(items, key=lambda item: -item.num_bytes):
        weight, number = heapq.heappop(weights)
        parts[number].append(item)
        heapq.heappush(weights, (weight + max(1, item.num_bytes), number))
    return parts
