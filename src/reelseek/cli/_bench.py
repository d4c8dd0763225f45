"""``reelseek bench``: measurements on your own data."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reelseek.cli._bench_index import index
from reelseek.cli._bench_loader import loader
from reelseek.cli._bench_preprocess import preprocess
from reelseek.cli._bench_train import train
from reelseek.errors import DependencyError

if TYPE_CHECKING:
    from rich.table import Table

    from reelseek.bench._plan import Plan
    from reelseek.bench._timing import Timing

WIDTH_FOR_NOTES = 140
"""Columns of a terminal from which notes stand in the table; below it they follow it."""
UNTIMED = {"wrong": "DIFFERS", "fails": "fails", "refuses": "refuses", "unavailable": "absent",
           "crashed": "crashes", "timed out": "hangs"}  # fmt: skip
"""What stands in place of the first time."""

app = typer.Typer(no_args_is_help=True, help="Measure decoders on your own data.")


app.command("index")(index)
app.command("loader")(loader)
app.command("preprocess")(preprocess)
app.command("train")(train)


@app.callback()
def _group() -> None:
    """Measure decoders on your own data."""


@app.command("seek")
def seek(
    dataset: Annotated[Path, typer.Argument(help="The folder of a LeRobot or GR00T dataset.")],
    frames: Annotated[int, typer.Option(min=1, help="How many random seeks.")] = 30,
    offsets: Annotated[str, typer.Option(help="Frames of one seek, from its base.")] = "0,16",
    cameras: Annotated[str, typer.Option(help="Keys of cameras, with commas.  [all]")] = "",
    seed: Annotated[int, typer.Option(help="Of the random choice.")] = 0,
    backends: Annotated[
        str, typer.Option(help="Names, with commas.  [all, typical usages, floor]")
    ] = "",
    out: Annotated[Path, typer.Option(help="Where the JSON and the chart go.")] = Path("out"),
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="For each decoder's check.")
    ] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
) -> None:
    """Compare and time random seeks with every decoder, on your own dataset.

    Frames are compared with FFmpeg's own decode first, each decoder in a subprocess; only a
    decoder whose frames are all right is timed. The floor is the codec and the colour conversion
    alone: packets of only the needed units, ready in memory. Writes bench_seek.json and
    bench_seek.png.

    Exit status 0 where a backend could be timed and none returned a wrong frame, else 1.
    """
    from reelseek.bench._readers import reader_names
    from reelseek.bench._report import document, headline
    from reelseek.bench.seek import bench_seek
    from reelseek.cli._console import progress, show, show_json
    from reelseek.cli._options import listed, names_of_backends, whole_numbers
    from reelseek.datasets import open_dataset

    wanted_offsets = whole_numbers(offsets)
    wanted_backends = names_of_backends(backends, reader_names())
    opened = open_dataset(dataset, output="numpy")
    with progress() as tell:
        plan, timings = bench_seek(
            opened,
            seeks=frames,
            offsets=wanted_offsets,
            cameras=listed(cameras) or None,
            backends=wanted_backends,
            seed=seed,
            timeout_seconds=timeout,
            tell=tell,
        )
    measured = document(opened, plan, timings)
    written = _write(out, measured, headline(plan, opened.root), timings)
    if as_json:
        show_json(measured)
    else:
        show(*_rendered(plan, timings, headline(plan, opened.root), measured))
    print(f"written: {', '.join(written)}", file=sys.stderr)
    if _is_bad(timings):
        raise typer.Exit(1)


def _is_bad(timings: Sequence[Timing]) -> bool:
    from reelseek.bench._readers import PLAIN

    own = [timing for timing in timings if timing.name not in PLAIN]
    nothing = not any(timing.is_timed for timing in timings)
    return nothing or any(timing.check.status == "wrong" for timing in own)


def _write(out: Path, measured: dict[str, Any], title: str, timings: Sequence[Timing]) -> list[str]:
    from reelseek.bench._charts import seek_chart

    out.mkdir(parents=True, exist_ok=True)
    document = out / "bench_seek.json"
    document.write_text(json.dumps(measured, indent=1) + "\n")
    chart = out / "bench_seek.png"
    try:
        seek_chart(timings, title, measured, chart)
    except DependencyError as exc:
        print(f"no chart: {exc}", file=sys.stderr)
        return [str(document)]
    return [str(document), str(chart)]


def _rendered(
    plan: Plan, timings: Sequence[Timing], title: str, measured: dict[str, Any]
) -> list[Any]:
    from rich.text import Text

    from reelseek.bench._ratios import ratios
    from reelseek.bench._report import note
    from reelseek.cli._console import output_width

    environment = measured["environment"]
    where = f"milliseconds; {environment['cpu']}, one thread; {measured['settings']['cache_state']}"
    has_room = output_width() >= WIDTH_FOR_NOTES
    said = [
        (timing.name, timing.check.explanation if timing.check.reason else note(timing))
        for timing in timings
        if timing.check.reason or (note(timing) and not has_room)
    ]
    lines = [Text.assemble((f"{name}: ", "bold"), words) for name, words in said]
    compared = [Text(f"{ratio}") for ratio in ratios(timings)]
    lines += [Text("How many times as long:", style="bold"), *compared] if compared else []
    lines += [Text(words, style="dim") for words in measured["settings"]["columns"]]
    table = _table(plan, timings, has_notes=has_room)
    return [Text(title, style="bold"), Text(where), Text(), table, Text(), *lines]


def _table(plan: Plan, timings: Sequence[Timing], *, has_notes: bool) -> Table:
    from rich.text import Text

    from reelseek.bench._floor import NAME as FLOOR
    from reelseek.bench._ratios import versus_floor
    from reelseek.bench._report import note, speedup
    from reelseek.bench._timing import median
    from reelseek.cli._console import new_table

    table = new_table()
    table.add_column("\nbackend", overflow="fold")
    table.add_column("\nversion", no_wrap=True)
    for header in _headers(plan):
        table.add_column(header, justify="right", no_wrap=True)
    if has_notes:
        table.add_column("\nnote")
    medians = [median(timing.seek_ms) for timing in timings]
    best = min(
        (
            value
            for timing, value in zip(timings, medians, strict=True)
            if value is not None and timing.name != FLOOR
        ),
        default=None,
    )
    for timing, own in zip(timings, medians, strict=True):
        ratio = speedup(timing, timings)
        above = versus_floor(timing, timings)
        cells = [*_numbers(plan, timing), "" if above is None else f"{above.middle:.2f}"]
        cells.append("" if ratio is None else f"{ratio:.1f}x")
        words = [Text(note(timing))] if has_notes else []
        table.add_row(timing.name, timing.check.version, *cells, *words, style=_style(own, best))
    return table


def _headers(plan: Plan) -> list[str]:
    frames, cameras = len(plan.offsets), len(plan.cameras)
    per_seek = [f"{frames} frame{'s' * (frames > 1)}\nmedian", "\np95"]
    per_sample = [f"{cameras} cameras\nmedian"] if cameras > 1 else []
    return [
        *per_seek,
        *per_sample,
        "\ncold",
        "first\nread",
        "over\nfloor",
        "speed vs\ntypical pyav",
    ]


def _numbers(plan: Plan, timing: Timing) -> list[str]:
    from reelseek.bench._timing import median, percentile

    values = [median(timing.seek_ms), percentile(timing.seek_ms, 95)]
    values += [median(timing.sample_ms)] if len(plan.cameras) > 1 else []
    values += [median(timing.cold_ms), median(timing.first_read_ms)]
    cells = ["-" if value is None else f"{value:.2f}" for value in values]
    return cells if timing.is_timed else [UNTIMED.get(timing.check.status, "-"), *cells[1:]]


def _style(own: float | None, best: float | None) -> str | None:
    if own is None:
        return "yellow"
    return "bold green" if own == best else None
