"""``reelseek bench``: measurements on your own data."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reelseek.errors import DependencyError

if TYPE_CHECKING:
    from rich.table import Table

    from reelseek.bench._plan import Plan
    from reelseek.bench.seek import Timing

app = typer.Typer(no_args_is_help=True, help="Measure decoders on your own data.")


@app.callback()
def _group() -> None:
    """Measure decoders on your own data."""


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _offsets(text: str) -> list[int]:
    try:
        found = [int(part) for part in _listed(text)]
    except ValueError:
        found = []
    if not found:
        raise typer.BadParameter(f"{text!r}: give whole numbers such as 0,16")
    return found


def _readers(text: str) -> list[str]:
    from reelseek.bench._readers import reader_names

    names = _listed(text)
    unknown = [name for name in names if name not in reader_names()]
    if unknown:
        raise typer.BadParameter(f"no {unknown[0]!r}; choose from: {', '.join(reader_names())}")
    return names


@app.command("seek")
def seek(
    dataset: Annotated[Path, typer.Argument(help="The folder of a LeRobot or GR00T dataset.")],
    frames: Annotated[int, typer.Option(min=1, help="How many random seeks.")] = 30,
    offsets: Annotated[str, typer.Option(help="Frames of one seek, from its base.")] = "0,16",
    cameras: Annotated[str, typer.Option(help="Keys of cameras, with commas.  [all]")] = "",
    seed: Annotated[int, typer.Option(help="Of the random choice.")] = 0,
    backends: Annotated[
        str, typer.Option(help="Names, with commas.  [all, and two typical usages]")
    ] = "",
    out: Annotated[Path, typer.Option(help="Where the JSON and the chart go.")] = Path("out"),
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="For each decoder's check.")
    ] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
) -> None:
    """Compare and time random seeks with every decoder, on your own dataset.

    Frames are compared with FFmpeg's own decode first, each decoder in a subprocess; only a
    decoder whose frames are all right is timed. Writes bench_seek.json and bench_seek.png.

    Exit status 0 where a backend could be timed and none returned a wrong frame, else 1.
    """
    from reelseek.bench._report import document, headline
    from reelseek.bench.seek import bench_seek
    from reelseek.cli._console import progress, show, show_json
    from reelseek.datasets import open_dataset

    wanted_offsets, wanted_backends = _offsets(offsets), _readers(backends)
    opened = open_dataset(dataset, output="numpy")
    with progress() as tell:
        plan, timings = bench_seek(
            opened,
            seeks=frames,
            offsets=wanted_offsets,
            cameras=_listed(cameras) or None,
            backends=wanted_backends or None,
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

    environment = measured["environment"]
    where = f"{environment['cpu']}, one thread; {measured['settings']['cache_state']}"
    reasons = [
        Text.assemble((f"{timing.name}: ", "bold"), timing.check.explanation)
        for timing in timings
        if timing.check.status != "right"
    ]
    gap = [Text()] if reasons else []
    return [Text(title, style="bold"), Text(where), Text(), _table(plan, timings), *gap, *reasons]


def _table(plan: Plan, timings: Sequence[Timing]) -> Table:
    from rich.text import Text

    from reelseek.bench._report import BASELINE, note, speedup
    from reelseek.bench.seek import median, percentile
    from reelseek.cli._console import new_table

    table = new_table()
    table.add_column("backend", no_wrap=True)
    table.add_column("version", no_wrap=True)
    frames, cameras = len(plan.offsets), len(plan.cameras)
    for header in (
        f"{frames} frame{'s' * (frames > 1)}\nmedian ms",
        "\np95 ms",
        f"{cameras} camera{'s' * (cameras > 1)}\nmedian ms",
        "first read\nof a file, ms",
        f"speed vs\n{BASELINE}",
    ):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("\nnote")
    medians = (median(timing.seek_ms) for timing in timings)
    best = min((value for value in medians if value is not None), default=None)
    for timing in timings:
        own, ratio = median(timing.seek_ms), speedup(timing, timings)
        table.add_row(
            timing.name,
            timing.check.version,
            _number(own),
            _number(percentile(timing.seek_ms, 95)),
            _number(median(timing.sample_ms)),
            _number(median(timing.first_read_ms)),
            "" if ratio is None else f"{ratio:.1f}x",
            Text(note(timing)),
            style=_style(own, best),
        )
    return table


def _style(own: float | None, best: float | None) -> str | None:
    if own is None:
        return "yellow"
    return "bold green" if own == best else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
