"""Where output goes: results to stdout, never cut; progress to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 10_000
"""Columns where stdout is no terminal: as many as a line needs."""


def new_table(*, title: str | None = None) -> Table:
    """A table in the house style: lines on a terminal, plain columns in a pipe."""
    style = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    return Table(
        title=title, box=style, title_justify="left", title_style="bold", header_style="bold",
        pad_edge=False, show_edge=False,
    )  # fmt: skip


def show(*renderables: RenderableType) -> None:
    """Print results to stdout: as wide as the terminal, or uncut where there is none."""
    if sys.stdout.isatty():
        console = Console(highlight=False)
        for renderable in renderables:
            console.print(renderable)
        return
    console = Console(
        width=PIPED_WIDTH, highlight=False, color_system=None, force_terminal=False, soft_wrap=True
    )
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable)
    for line in capture.get().splitlines():
        print(line.rstrip())


def show_whole(*lines: Text) -> None:
    """Print lines that must stay whole, to be copied: only the terminal itself wraps them."""
    if sys.stdout.isatty():
        console = Console(highlight=False)
        for line in lines:
            console.print(line, soft_wrap=True)
        return
    for line in lines:
        print(line.plain)


def output_width() -> int:
    """Columns that a line of results may take."""
    return Console().width if sys.stdout.isatty() else PIPED_WIDTH


def show_json(document: dict[str, Any]) -> None:
    """Print one JSON document to stdout, in ASCII: a path in it may be no UTF-8."""
    print(json.dumps(document, indent=2))


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function that is told how much is done: a bar on a terminal, lines in a log."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _log_lines(label, total)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def counted_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A function that is told how much is done of how much; see ``progress_bar``."""
    with ExitStack() as stack:
        advance: list[Callable[[int], None]] = []

        def tell(done: int, total: int) -> None:
            if not advance:
                advance.append(stack.enter_context(progress_bar(label, total)))
            advance[0](done)

        yield tell


def _log_lines(label: str, total: int) -> Callable[[int], None]:
    """Prints a line at each tenth of the way."""
    tenths = [0]

    def advance(done: int) -> None:
        if total and done * 10 // total > tenths[0]:
            tenths[0] = done * 10 // total
            print(f"{label}: {done} of {total}", file=sys.stderr, flush=True)

    return advance


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that shows what is being done: one changing line, or a line each in a log."""
    from reelseek.native._printable import printable

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda text: print(printable(text), file=sys.stderr, flush=True)
        return
    with console.status("") as status:
        yield lambda text: status.update(Text(printable(text)))  # not markup, as a name may be
