"""A run on a cluster, followed by its journal; what a dead task leaves is given to others."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from reelseek.care.jobs._job import Item
from reelseek.care.jobs._journal import Entry, journal_faults
from reelseek.care.jobs._parts import part_of, split_by_bytes
from reelseek.care.jobs._work import Work
from reelseek.errors import ReelseekError

DEFAULT_TASKS = 32
"""Tasks at most, where nobody says how many."""
QUIET_SECONDS = 60.0
MOST_DEATHS = 2
"""Tasks that may die at an item before it is given up."""


class Cluster(Protocol):
    """What starts tasks elsewhere."""

    def submit(self, parts: Sequence[Path]) -> list[str]:
        """Start a task for each part; their names."""

    def alive(self, tasks: Collection[str]) -> set[str] | None:
        """Those that run or will; None where that can't be found out now."""

    def last_words(self, task: str) -> str:
        """Where a dead task's log is, and how it ends."""

    def avoid(self, task: str) -> None:
        """A task ended that had done nothing: start no more where it was, if that can be said."""

    def cancel(self) -> None:
        """End what was started."""


@dataclass(slots=True)
class Watch:
    """One run on a cluster."""

    work: Work
    """The run."""
    cluster: Cluster
    """Where it is."""
    tasks: int
    """Tasks at most."""
    cpus: int
    """Worker processes of each."""
    say: Callable[[str], None]
    """Is told what a person should know."""
    poll_seconds: float
    """Between two looks into the journal."""
    ask_seconds: float
    """Between two questions which tasks are alive."""
    grace_seconds: float
    """After a task has ended, its last lines may take so long to be seen here."""
    quiet_seconds: float = QUIET_SECONDS
    """So long nothing is said of tasks that don't begin, or can't be asked for."""
    _pending: dict[str, Item] = field(default_factory=dict)
    """Items without a result."""
    _parts: dict[str, str] = field(default_factory=dict)
    """Tasks that are not known to be dead, with the names of their parts."""
    _items: dict[str, list[Item]] = field(default_factory=dict)
    """A part's items."""
    _deaths: Counter[str] = field(default_factory=Counter)
    """How many tasks died at an item."""
    _seen_at: float = 0.0
    """When it was last known which tasks are alive."""
    _told: set[str] = field(default_factory=set)
    """What was said of that which is said once."""
    _has_results: bool = False
    """Whether a task of this run has finished an item."""
    _was_helped: bool = False
    """Whether tasks of an earlier run, still at work, have: then some of this run's have no use."""

    def entries(self) -> Iterator[Entry]:
        """Each item's entry, as they come."""
        self._pending = {item.key: item for item in self.work.todo}
        is_well = False
        try:
            most = min(self.tasks, -(-len(self._pending) // self.cpus))
            self._submit(split_by_bytes(self.work.todo, most))
            yield from self._followed()
            is_well = True
        finally:
            if not is_well or self._was_helped:
                self.cluster.cancel()

    def _followed(self) -> Iterator[Entry]:
        started = asked_at = self._seen_at = time.monotonic()
        while True:
            yield from self._new_entries()
            if not self._pending:
                return
            if time.monotonic() - asked_at >= self.ask_seconds:
                yield from self._look_after_the_dead()
                asked_at = time.monotonic()
                self._say_what_is_amiss(asked_at - started, asked_at - self._seen_at)
            else:
                time.sleep(self.poll_seconds)

    def _new_entries(self) -> Iterator[Entry]:
        """What the journal got, of tasks of an earlier run too, which may still be at work."""
        for entry in self.work.reader.new_entries():
            item = self._pending.get(entry.key)
            is_ours = entry.run == self.work.run
            if item is None or entry.stamp != item.stamp or (entry.error and not is_ours):
                continue
            del self._pending[entry.key]
            self._has_results |= is_ours
            self._was_helped |= not is_ours
            attempts = entry.attempts + self._deaths[entry.key]
            yield dataclasses.replace(entry, attempts=attempts)

    def _look_after_the_dead(self) -> Iterator[Entry]:
        alive = self.cluster.alive(self._parts)
        if alive is None:
            return
        self._seen_at = time.monotonic()
        dead = [task for task in self._parts if task not in alive]
        if any(self._left_by(task) for task in dead):
            time.sleep(self.grace_seconds)
        yield from self._new_entries()  # asked after the tasks had ended: nothing more can come
        again: list[list[Item]] = []
        for task in dead:
            left = self._left_by(task)
            if left:
                yield from self._bury(task, left, again)
            del self._parts[task]
        self._submit(again)

    def _say_what_is_amiss(self, seconds: float, unseen_seconds: float) -> None:
        """Tell a person, who may wait for something that never comes; each thing once."""
        has_begun = self._has_results or any(
            part.startswith(f"{self.work.run}-") for part in self.work.reader.begun.values()
        )
        if unseen_seconds >= self.quiet_seconds:
            text = (
                f"for {unseen_seconds:.0f} s the cluster hasn't said which tasks are alive: "
                "results still count, but a task that dies isn't noticed"
            )
            self._say_once("unseen", text)
        elif seconds >= self.quiet_seconds and not has_begun:
            text = (
                f"after {seconds:.0f} s no task has begun: the cluster is busy, or has no place "
                f"for a task of {self.cpus} CPUs"
            )
            self._say_once("not begun", text)

    def _say_once(self, what: str, text: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self.say(text)

    def _left_by(self, task: str) -> list[Item]:
        """A task's items without a result."""
        return [item for item in self._items[self._parts[task]] if item.key in self._pending]

    def _bury(self, task: str, left: list[Item], again: list[list[Item]]) -> Iterator[Entry]:
        """Share out what a dead task left: what it was at, one by one; the rest together."""
        part = f"{self.work.run}-{self._parts[task]}"
        at_work = [item for item in left if self.work.reader.begun.get(item.key) == part]
        rest = [item for item in left if item not in at_work]
        has_done_nothing = not at_work and len(rest) == len(self._items[self._parts[task]])
        suspects = rest if has_done_nothing else at_work
        self._deaths.update(item.key for item in suspects)
        words = self.cluster.last_words(task)
        if has_done_nothing:
            self.cluster.avoid(task)
        lost = [item for item in suspects if self._deaths[item.key] >= MOST_DEATHS]
        if lost and has_done_nothing and not self._has_results:
            raise ReelseekError(
                "the tasks end before they have begun with anything",
                remedy="See the log; what a task needs has to be on every node",
                detail=words,
            )
        for item in lost:
            del self._pending[item.key]
            text = f"{item.key}: {self._deaths[item.key]} tasks died at it. {words}"
            yield Entry(item.key, item.stamp, self.work.run, None, text, MOST_DEATHS)
        again += [[item] for item in at_work if item not in lost]
        kept = [item for item in rest if item not in lost]
        again += [kept] if kept else []
        self.say(
            f"task {task} ended before its work was done: {len(left) - len(lost)} items are "
            f"given to other tasks, {len(lost)} given up. {words}"
        )

    def _submit(self, groups: list[list[Item]]) -> None:
        if not groups:
            return
        paths = []
        names = [str(len(self._items) + number) for number in range(len(groups))]
        for name, items in zip(names, groups, strict=True):
            path = self.work.run_folder / f"{name}.json"
            with journal_faults(path):
                part_of(self.work, name, items, self.cpus).write(path)
            paths.append(path)
            self._items[name] = items
        self._parts.update(zip(self.cluster.submit(paths), names, strict=True))
