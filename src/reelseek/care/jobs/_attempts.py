"""Items in worker processes of this machine, tried again where it helps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reelseek.care.jobs._item import DO_ITEM
from reelseek.care.jobs._job import Item
from reelseek.care.jobs._journal import Entry
from reelseek.workers import Answer, WorkerPool

RETRIES = 2
"""How often an item is tried again whose process died, or that failed for an unknown reason."""


def entries_of(
    function: str, arguments: Mapping[str, Any], items: Sequence[Item], run: str, jobs: int
) -> Iterator[Entry]:
    """Each item's entry for the journal, as they come.

    Items that have to be tried again are, at the end, one at a time: what they died of may have
    been the memory that the others took.
    """
    again: list[Item] = []
    for item, entry in _attempt(function, arguments, items, run, jobs):
        if entry.is_final:
            yield entry
        else:
            again.append(item)
    for item in again:
        yield _tried_again(function, arguments, item, run)


def _tried_again(function: str, arguments: Mapping[str, Any], item: Item, run: str) -> Entry:
    attempts = 1
    is_final = False
    while not is_final:
        ((_, entry),) = _attempt(function, arguments, [item], run, 1)
        attempts += 1
        is_final = entry.is_final or attempts > RETRIES
    return dataclasses.replace(entry, attempts=attempts, is_final=True)


def _attempt(
    function: str, arguments: Mapping[str, Any], items: Sequence[Item], run: str, jobs: int
) -> Iterator[tuple[Item, Entry]]:
    calls = [(function, dict(arguments), item.key, item.stamp, run) for item in items]
    with WorkerPool(DO_ITEM, calls, jobs) as pool:
        for answer in pool.answers():
            item = items[answer.position]
            yield item, _entry_of(answer, item, run)


def _entry_of(answer: Answer, item: Item, run: str) -> Entry:
    if not answer.death:
        entry: Entry = answer.value
        return entry
    text = f"{item.key}: the process that worked on it {answer.death}"
    return Entry(item.key, item.stamp, run, None, text, is_final=False)
