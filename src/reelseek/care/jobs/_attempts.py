"""Items in worker processes of this machine, tried again where it helps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reelseek.care.jobs._item import DO_ITEM
from reelseek.care.jobs._job import Item
from reelseek.care.jobs._journal import Entry
from reelseek.workers import Answer, WorkerPool

RETRIES = 2
"""How often an item is tried again whose process died, or that failed for an unknown reason."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """How to try a run's items."""

    function: str
    """The job's function."""
    arguments: Mapping[str, Any]
    """Its arguments."""
    run: str
    """The run's name."""
    journal: str = ""
    """Where each item is noted as it is begun; empty for nowhere."""

    def entries(self, items: Sequence[Item], jobs: int) -> Iterator[Entry]:
        """Each item's entry for the journal, as they come.

        Items that have to be tried again are, at the end, one at a time: what they died of may
        have been the memory that the others took.
        """
        again: list[Item] = []
        for item, entry in self._attempt(items, jobs):
            if entry.is_final:
                yield entry
            else:
                again.append(item)
        for item in again:
            yield self._tried_again(item)

    def _tried_again(self, item: Item) -> Entry:
        attempts = 1
        is_final = False
        while not is_final:
            ((_, entry),) = self._attempt([item], 1)
            attempts += 1
            is_final = entry.is_final or attempts > RETRIES
        return dataclasses.replace(entry, attempts=attempts, is_final=True)

    def _attempt(self, items: Sequence[Item], jobs: int) -> Iterator[tuple[Item, Entry]]:
        calls = [
            (self.function, self.arguments, item.key, item.stamp, self.run, self.journal)
            for item in items
        ]
        with WorkerPool(DO_ITEM, calls, jobs) as pool:
            for answer in pool.answers():
                item = items[answer.position]
                yield item, self._entry_of(answer, item)

    def _entry_of(self, answer: Answer, item: Item) -> Entry:
        if not answer.death:
            entry: Entry = answer.value
            return entry
        text = f"{item.key}: the process that worked on it {answer.death}"
        return Entry(item.key, item.stamp, self.run, None, text, is_final=False)
