"""``reelseek explain``: what a read of some frames costs, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from reelseek.bench._explain import Explanation, Gop
    from reelseek.index._gop import GopUnit

CELLS_PER_GROUP = 10
ROW_WIDTHS = ((118, 100), (0, 50))
"""Columns of the terminal from which a row has so many cells."""
ROWS_SHOWN = 8
"""Rows of a group of pictures from which uniform ones are summed up."""
LETTERS = {"KEY": ("K", "white on red3"), "INTER": ("P", "white on dodger_blue3"),
           "DROPPABLE": ("D", "black on grey70"), "HIDDEN": ("H", "white on purple4"),
           "SHOWS_EXISTING": ("S", "black on gold3")}  # fmt: skip
"""Kind to its letter, and how it is drawn where it is needed."""


def explain(
    file: Annotated[Path, typer.Argument(help="A video file.")],
    frames: Annotated[
        list[int],
        typer.Argument(
            metavar="FRAME...", help="Frame numbers; negative ones, after --, count from the end."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the groups of pictures as a PNG.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document (reelseek.explain/1).")
    ] = False,
) -> None:
    """Say what a read of these frames costs, and draw why.

    For each frame: its key frame, the coded frames on the way from it, those that have to be
    decoded, and the bytes and calls that read them. Decodes nothing.

    Exit status 0 where the file could be explained, readable by units or not, else 1.
    """
    from reelseek.bench._explain import explain as explained
    from reelseek.cli._console import show, show_json

    found = explained(file, frames)
    if as_json:
        show_json(found.to_json())
    else:
        show(*_rendered(found))
    if out is not None:
        from reelseek.bench._gop_chart import gop_chart

        gop_chart(found, out)
        print(f"written: {out}", file=sys.stderr)


def _rendered(found: Explanation) -> list[RenderableType]:
    from rich.text import Text

    from reelseek.bench._explain import summary

    stream, keys = found.table.stream, int(found.table.is_key.sum())
    lines: list[RenderableType] = [
        Text(found.path, style="bold"),
        Text(
            f"{stream.codec} {stream.width}x{stream.height}, {len(found.table)} frames, "
            f"a key frame every {len(found.table) / max(1, keys):.3g}"
        ),
    ]
    if found.units is None:
        lines.append(Text(f"Not readable by units: {found.why_not}", style="bold yellow"))
    else:
        reason = f" ({found.pruning_reason})" if found.pruning_reason else ""
        lines.append(Text(f"decoded: {found.pruning}{reason}"))
    lines += [Text(), _table(found), Text()]
    for gop in found.gops:
        lines += [*_picture(gop), Text()]
    if found.gops:
        lines += [_legend(found), Text()]
    return [*lines, Text(summary(found), style="bold")]


def _table(found: Explanation) -> RenderableType:
    from reelseek.bench._explain import Cost
    from reelseek.cli._console import new_table

    table = new_table()
    for header in ("frame", "key frame", "on the way", "decoded", "bytes", "preads"):
        table.add_column(header, justify="right", no_wrap=True)

    def numbers(cost: Cost) -> list[str]:
        values = (cost.on_the_way, cost.needed, cost.bytes_read, cost.preads)
        return ["-" if value is None else f"{value:,}" for value in values]

    for one in found.frames:
        key = "not shown" if one.key_frame is None else f"{one.key_frame}"
        table.add_row(f"{one.frame}", key, *numbers(one.cost))
    if len(found.frames) > 1:
        label = f"together ({found.shared} shared)" if found.shared else "together"
        table.add_row(label, "", *numbers(found.together), style="bold")
    return table


def _picture(gop: Gop) -> list[Text]:
    """One cell for each unit in decoding order, and marks below the frames asked for."""
    from rich.text import Text

    from reelseek.cli._console import output_width

    width = next(cells for columns, cells in ROW_WIDTHS if output_width() >= columns)
    rows = [gop.units[start : start + width] for start in range(0, len(gop.units), width)]
    lines = [Text(_title(gop), style="bold")]
    skipped = 0
    for row in rows:
        if len(rows) > ROWS_SHOWN and _is_uniform(row, gop):
            skipped += len(row)
            continue
        if skipped:
            lines.append(Text(f"       ... {skipped} more of the kind before", style="dim"))
            skipped = 0
        lines += _row(row, gop)
    if skipped:
        lines.append(Text(f"       ... {skipped} more, none of them asked for", style="dim"))
    return lines


def _is_uniform(row: tuple[GopUnit, ...], gop: Gop) -> bool:
    """True where all or none of the units are needed, and none is asked for or a key frame."""
    numbers = {one.unit for one in row}
    needed = numbers & gop.needed
    is_first = row[0].unit == gop.units[0].unit
    return not numbers & gop.targets and needed in (set(), numbers) and not is_first


def _title(gop: Gop) -> str:
    shown = [one.frame for one in gop.units if one.frame is not None]
    return f"frames {min(shown)} to {max(shown)}, {len(gop.units)} units in decoding order"


def _row(row: tuple[GopUnit, ...], gop: Gop) -> list[Text]:
    from rich.text import Text

    cells = Text(f"{row[0].unit:>6} ", style="dim")
    marks = [" "] * (7 + len(row) + len(row) // CELLS_PER_GROUP)
    for number, one in enumerate(row):
        if number and number % CELLS_PER_GROUP == 0:
            cells.append(" ")
        letter, style = LETTERS[one.kind.name]
        is_needed = one.unit in gop.needed
        if one.unit in gop.targets:
            marks[len(cells)] = "^"
        cells.append(letter if is_needed else letter.lower(), style if is_needed else "dim")
    asked = [f"{one.frame}" for one in row if one.unit in gop.targets]
    if not asked:
        return [cells]
    word = "frame" if len(asked) == 1 else "frames"
    below = "".join(marks).rstrip()
    return [cells, Text(f"{below} {word} {', '.join(asked)}", style="bold")]


def _legend(found: Explanation) -> Text:
    """The letters that occur."""
    from rich.text import Text

    from reelseek.index._gop import UnitKind

    occurring = {one.kind for gop in found.gops for one in gop.units}
    legend = Text("       ")
    for kind in UnitKind:
        if kind in occurring:
            letter, style = LETTERS[kind.name]
            legend.append(letter, style)
            legend.append(f" {kind.value}   ")
    return legend.append("small letters: not decoded for this read   ^ asked for")
