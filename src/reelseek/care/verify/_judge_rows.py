"""Parquet files against meta: which rows they hold, how these count, and their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reelseek.care.verify._codes import found
from reelseek.care.verify._findings import Finding
from reelseek.datasets._files import brief
from reelseek.datasets._records import Layout, RowSpan

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """One parquet file, looked into."""

    path: str
    """Relative to the dataset."""
    facts: Facts
    """See ``row_facts``."""
    spans: tuple[tuple[int, RowSpan], ...]
    """The places of the episodes that it should hold, and where; none where meta can't be read."""

    @property
    def is_readable(self) -> bool:
        """True where it could be looked into."""
        return "fault" not in self.facts

    def run_of(self, episode: int, span: RowSpan) -> Facts | None:
        """The run of rows that is an episode's; None where there is none."""
        runs = self.facts.get("episodes", [])
        if span.is_whole_file:
            return runs[0] if len(runs) == 1 else None
        own = [run for run in runs if run["episode"] == episode]
        return own[0] if len(own) == 1 else None


def num_rows(layout: Layout, tables: Mapping[str, Table]) -> list[int]:
    """The rows of each episode: those that are there, else what meta says."""
    rows = [int(length) for length in layout.episodes.lengths]
    for table in tables.values():
        for position, span in table.spans:
            run = table.run_of(int(layout.episodes.indices[position]), span)
            if run is not None:
                rows[position] = run["rows"]
    return rows


def judge_table(table: Table, layout: Layout | None, starts: list[int]) -> Iterator[Finding]:
    """What is wrong with one parquet file.

    Args:
        table: The file.
        layout: The dataset's; None where it can't be read.
        starts: The number of each episode's first row, by place.
    """
    if not table.is_readable:
        fault = table.facts["fault"]
        yield found(fault["code"], fault["what"], remedy=fault["remedy"], path=table.path)
        return
    yield from _values(table)
    is_own = bool(table.spans) and table.spans[0][1].is_whole_file
    for run in table.facts["episodes"]:
        if is_own or run["episode"] is not None:  # else it may be of several episodes
            yield from _own_faults(table, run)
    if layout is not None:
        lost = 0
        for position, span in table.spans:
            yield from _against_meta(table, layout, position, span, starts, lost)
            run = table.run_of(int(layout.episodes.indices[position]), span)
            lost += 0 if run is None else span.length - run["rows"]
        yield from _rows_of_nobody(table, layout)


def _values(table: Table) -> Iterator[Finding]:
    for name, column in table.facts["columns"].items():
        if column["missing"]:
            what = f"{column['missing']} values of {brief(name)} are missing"
            yield found("value-missing", what, path=table.path, camera=name)
        row = column.get("not_finite")
        if row is not None:
            what = f"{brief(name)} holds NaN or infinity, first in row {row}"
            yield found("value-not-finite", what, path=table.path, camera=name, frames=(row, row))


def _own_faults(table: Table, run: Facts) -> Iterator[Finding]:
    """What a run of rows says wrong of itself."""
    where: Facts = {"path": table.path, "episode": run["episode"]}
    row = run["frame_index"]
    if row is not None:
        what = f"frame_index isn't {row} in row {row} of the episode"
        yield found("frame-index", what, frames=(row, row), **where)
    if run["index"] is not None:
        what = f"index doesn't count on in row {run['index']} of the episode"
        yield found("row-index", what, frames=(run["index"],) * 2, **where)
    row = run["time_row"]
    if row is not None:
        what = f"the timestamp of row {row} is {run['time_off']:.4f} s off frame number / fps"
        yield found("rows-off-grid", what, frames=(row, row), **where)
    elif run["time_start"] is not None and abs(run["time_start"]) > 1e-4:
        what = f"the first row is at {run['time_start']:.4f} s"
        yield found("rows-start-late", what, **where)


def _against_meta(
    table: Table, layout: Layout, position: int, span: RowSpan, starts: list[int], lost: int
) -> Iterator[Finding]:
    """An episode's rows; those before it in the file lack so many, which is their own fault."""
    episode, length = layout.episodes[position].index, layout.episodes[position].length
    where: Facts = {"path": table.path, "episode": episode}
    run = table.run_of(episode, span)
    if run is None and _is_untold(table):
        return
    if run is None or (run["episode"] is not None and run["episode"] != episode):
        yield _misnamed(table, episode, span, length)
        return
    if run["rows"] != length:
        what = f"{run['rows']} rows, and meta says {length}"
        yield found("rows-length", what, **where)
    elif not span.is_whole_file and run["first"] not in (span.first, span.first - lost):
        what = f"its rows start at row {run['first']} of the file, and meta says {span.first}"
        yield found("rows-length", what, **where)
    # By the rows that are there, or as meta lists them, where an earlier episode lacks some.
    fits = (None, starts[position], int(layout.episodes.starts[position]))
    if run["index"] is None and run["index_start"] not in fits:
        what = f"index starts at {run['index_start']}, and {starts[position]} rows come before"
        yield found("row-index", what, **where)
    yield from _tasks(layout, position, run, where)


def _is_untold(table: Table) -> bool:
    """True where not all rows say which episode they are of, which is a finding of its own."""
    column = table.facts["columns"].get("episode_index", {})
    return bool(column.get("missing")) or column.get("not_finite") is not None


def _misnamed(table: Table, episode: int, span: RowSpan, length: int) -> Finding:
    where: Facts = {"path": table.path, "episode": episode}
    runs = table.facts["episodes"]
    first, end = (0, table.facts["num_rows"]) if span.is_whole_file else (
        span.first, span.first + length)  # fmt: skip
    others = sorted({
        run["episode"] for run in runs
        if run["first"] < end and run["first"] + run["rows"] > first and run["episode"] != episode
    })  # fmt: skip
    if not others:
        what = f"{table.facts['num_rows']} rows, none of them the episode's {length}"
        return found("rows-length", what, **where)
    named = ", ".join(map(str, others[:3])) + (", ..." if len(others) > 3 else "")
    return found("episode-index", f"its rows name episode {named}", **where)


def _rows_of_nobody(table: Table, layout: Layout) -> Iterator[Finding]:
    """Rows past those of the file's episodes."""
    known = {int(layout.episodes.indices[position]) for position, _span in table.spans}
    if not known or table.spans[0][1].is_whole_file:
        return
    placed = sum(layout.episodes[position].length for position, _span in table.spans)
    for run in table.facts["episodes"]:
        # Rows under a wrong name in an episode's place are that episode's fault.
        if run["episode"] not in known and run["first"] >= placed:
            what = f"{run['rows']} rows of episode {run['episode']}, which meta has elsewhere or "
            yield found("rows-length", f"{what}not at all", path=table.path, episode=run["episode"])


def _tasks(layout: Layout, position: int, run: Facts, where: Facts) -> Iterator[Finding]:
    numbers = run["tasks"] or []
    unknown = [number for number in numbers if number not in layout.tasks]
    for number in unknown[:3]:
        yield found("task-unknown", f"task_index {number} isn't among the tasks", **where)
    texts = layout.episodes[position].tasks
    lacking = [n for n in numbers if n in layout.tasks and layout.tasks[n] not in texts]
    if texts and lacking:
        what = f"its rows have the task {brief(layout.tasks[lacking[0]])}, and meta lists "
        yield found("episode-tasks", what + brief(list(texts)), **where)


def value_ranges(tables: Mapping[str, Table]) -> dict[str, tuple[list[float], list[float]]]:
    """The least and greatest value of each element of each column in the dataset."""
    ranges: dict[str, tuple[list[float], list[float]]] = {}
    uneven: set[str] = set()
    for table in tables.values():
        for name, column in table.facts.get("columns", {}).items():
            least, most = column.get("least"), column.get("most")
            if least is None or most is None:
                continue
            before = ranges.get(name, (least, most))
            if len(before[0]) != len(least):
                uneven.add(name)
                continue
            ranges[name] = (
                np.minimum(before[0], least).tolist(),
                np.maximum(before[1], most).tolist(),
            )
    return {name: values for name, values in ranges.items() if name not in uneven}


def judge_constants(ranges: Mapping[str, Any], rows: int) -> Iterator[Finding]:
    """Numbers that are the same in all rows."""
    for name, (least, most) in sorted(ranges.items()):
        if name.endswith("_index") or name == "index" or rows < 2:
            continue
        same = [place for place, (a, b) in enumerate(zip(least, most, strict=True)) if a == b]
        if not same:
            continue
        if len(least) == 1:
            what = f"{brief(name)} is {least[0]:g} in all rows"
        else:
            places = ", ".join(map(str, same[:8])) + (", ..." if len(same) > 8 else "")
            what = f"{len(same)} of {len(least)} elements of {brief(name)} never change: {places}"
        yield found("value-constant", what, camera=name)
