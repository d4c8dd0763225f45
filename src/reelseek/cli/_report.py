"""``reelseek report``: one page on a dataset, to look at, print and send."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reelseek.care.report import Report

SCHEMA = "reelseek.report/1"


class Level(str, Enum):
    """How a dataset is verified."""

    NONE = "none"
    QUICK = "quick"
    DECODE = "decode"


def report(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's folder.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="HTML", help="The page.", dir_okay=False)
    ] = Path("report.html"),
    level: Annotated[
        Level,
        typer.Option(
            help="How it is verified: quick reads metadata and indexes, decode every frame."
        ),
    ] = Level.QUICK,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Measure other encodings on its own frames; takes minutes."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help=f"Print one JSON document ({SCHEMA}).")
    ] = False,
) -> None:
    """Write one HTML page that shows what a dataset is, and what is wrong with it.

    Counts and tasks, pictures of each camera, verify's findings, how videos are coded and what
    random access costs, episode lengths, ranges of states and actions, and the environment. The
    page loads nothing and runs no script. Of a large dataset samples are looked at.

    Exit status 0 where the dataset can be opened and no error was found, else 1; the page is
    written all the same.
    """
    from reelseek.care.report import write_report
    from reelseek.cli._console import progress, show, show_json

    _check_folder(out)
    with progress() as tell:
        made = write_report(dataset, out, level=level.value, with_plan=plan, tell=tell)
    document = _document(made, out)
    if as_json:
        show_json(document)
    else:
        show(*_lines(made, document))
    if not made.is_sound:
        raise typer.Exit(1)


def _check_folder(out: Path) -> None:
    """A usage error where the page can't be written: better now than after minutes of work."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise typer.BadParameter(f"{out.parent} can't be made: {exc.strerror}") from exc
    if not os.access(out.parent, os.W_OK):
        raise typer.BadParameter(f"{out.parent} can't be written to")


def _document(made: Report, out: Path) -> dict[str, Any]:
    from reelseek.care.verify import Severity

    findings = made.findings.value
    return {
        "schema": SCHEMA,
        "root": made.root,
        "page": os.path.abspath(out),
        "num_bytes": out.stat().st_size,
        "seconds": round(made.seconds, 3),
        "is_sound": made.is_sound,
        "findings": findings and {one.value: findings.count(one.value) for one in Severity},
        "faults": made.faults,
    }


def _lines(made: Report, document: dict[str, Any]) -> list[RenderableType]:
    """What was written, and the verdict."""
    from rich.text import Text

    from reelseek._sizes import size_text
    from reelseek.native._printable import printable

    seconds, size = document["seconds"], size_text(document["num_bytes"])
    counts = document["findings"]
    said = "not verified"
    if counts:
        said = ", ".join(f"{count} {name}s" for name, count in counts.items())
    style = "green" if made.is_sound else "bold red"
    lines: list[RenderableType] = [
        Text(f"{document['page']}: {size}, made in {seconds:.1f} s"),
        Text(said, style=style),
    ]
    faults = [f"{name}: {fault}" for name, fault in made.faults.items()]
    return lines + [Text(printable(f"can't be shown: {text}"), style="yellow") for text in faults]
