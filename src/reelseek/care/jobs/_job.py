"""What a job is: a function, the items that it is called for, and where its journal is."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reelseek


@dataclass(frozen=True, slots=True)
class Item:
    """One call of a job's function."""

    key: str
    """Stable and unique in its job, as a video's path relative to the dataset (os.fsdecode'd)."""
    num_bytes: int
    """Its weight: work is split by bytes, and the largest items are begun first."""
    stamp: str = ""
    """Fingerprint of the input; a result in the journal with another stamp is made again."""

    @classmethod
    def of_file(cls, key: str, path: str | os.PathLike[str]) -> Item:
        """An item whose input is one file, which may be missing: no bytes then, and no stamp.

        The stamp holds what a copy with the former's time of change (``cp -p``, ``rsync -a``)
        doesn't keep: when the file became what it is (ctime), and its inode.
        """
        try:
            found = os.stat(path)
        except OSError:
            return cls(key, 0)
        facts = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        return cls(key, found.st_size, "-".join(map(str, facts)))


@dataclass(frozen=True, slots=True)
class Job:
    """A function to call for each item, in other processes or on other machines."""

    name: str
    """Such as "verify": names folders, SLURM jobs and log lines."""
    function: str
    """"module:name" of a function, called as ``function(key, **arguments)``, that returns a
    dictionary which JSON can hold. A ReelseekError that it raises is the item's outcome; after
    any other error, or where its process dies, it is called again (so it may find leftovers of
    the last attempt)."""
    arguments: Mapping[str, Any]
    """What JSON can hold. Part of the journal's identity: with others, everything is done anew."""
    items: tuple[Item, ...]
    """What to call it for."""
    folder: Path
    """The journal's folder, on a file system that all workers see; see ``job_folder``."""
    needs: tuple[str, ...] = ()
    """Folders with something in them: a machine of a cluster that lacks one (its file system isn't
    mounted there) is no place for a task, and says nothing of the items."""

    def __post_init__(self) -> None:
        twice = [
            key for key, count in Counter(item.key for item in self.items).items() if count > 1
        ]
        if twice:
            raise ValueError(f"the key {twice[0]!r} is given twice; keys must be unique in a job")

    @property
    def identity(self) -> str:
        """The same for jobs whose results are interchangeable: 16 hexadecimal digits."""
        facts = [reelseek.__version__, self.name, self.function, dict(self.arguments)]
        text = json.dumps(facts, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an item."""

    key: str
    """The item's key."""
    value: dict[str, Any] | None
    """What the function returned; None where it failed."""
    error: str
    """What is wrong, after the retries; empty where nothing is."""
    attempts: int = 1
    """How often it was tried; 0 where the result is from an earlier run's journal."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did."""

    num_items: int
    """Items in all."""
    num_from_journal: int
    """Those that an earlier run had done."""
    num_retried: int
    """Those that were tried more than once."""
    num_failed: int
    """Those without a result."""
    num_bytes: int
    """The weight of those that were done now."""
    seconds: float
    """How long the run took."""
    logs: str
    """The folder with the workers' logs; empty where there are none."""

    @property
    def bytes_per_second(self) -> float:
        """The weight of what was done now, by the time that it took."""
        return self.num_bytes / self.seconds if self.seconds else 0.0


def stamp_of(path: str | os.PathLike[str]) -> str:
    """A file's fingerprint, as ``Item.of_file`` gives it; empty where it isn't there."""
    return Item.of_file("", path).stamp
