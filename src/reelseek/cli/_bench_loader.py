"""``reelseek bench loader``: what a training gets from its data loader."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reelseek.errors import DependencyError

if TYPE_CHECKING:
    from reelseek.bench.loader import LoaderBench


def loader(
    dataset: Annotated[Path, typer.Argument(help="The folder of a LeRobot or GR00T dataset.")],
    workers: Annotated[int, typer.Option(min=0, help="Worker processes.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1, help="Samples in a batch.")] = 16,
    offsets: Annotated[str, typer.Option(help="Frames of a sample, from its base.")] = "0,16",
    actions: Annotated[int, typer.Option(min=1, help="Actions of a sample.")] = 16,
    ways: Annotated[str, typer.Option(help="Names, with semicolons.  [all]")] = "",
    lerobot_root: Annotated[
        Path | None, typer.Option(help="The same data in the version that LeRobot reads.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds after the first, cold one.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.1, help="Of one way's turn in a round.")] = 4.0,
    samples: Annotated[int, typer.Option(min=0, help="Single samples, cold and warm.")] = 30,
    seed: Annotated[int, typer.Option(help="Of the order.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the JSON and the chart go.")] = Path("out"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
) -> None:
    """Compare data loaders: reelseek's, LeRobot's and GR00T's calls, on your own dataset.

    Each in a process of its own; their samples are compared first, and they are timed in turn.
    Also times single samples, warm and cold. Index the dataset before (`reelseek index`), for the
    first read of a file to cost no more than the next. Writes bench_loader.json and
    bench_loader.png.

    Exit status 0 where reelseek's loader could be timed, else 1.
    """
    from reelseek.bench._loader_ways import OURS, WAYS, Job, open_ours
    from reelseek.bench.loader import bench_loader
    from reelseek.cli._console import progress, show, show_json
    from reelseek.cli._options import whole_numbers

    job = Job(
        root=str(dataset.absolute()),
        lerobot_root=str((lerobot_root or dataset).absolute()),
        offsets=tuple(whole_numbers(offsets)),
        action_steps=actions,
        batch_size=batch_size,
        num_workers=workers,
    )
    names = [name.strip() for name in ways.split(";") if name.strip()]
    if unknown := [name for name in names if name not in WAYS]:
        raise typer.BadParameter(f"no way {unknown[0]!r}; choose from: {'; '.join(WAYS)}")
    opened = open_ours(job)
    with progress() as tell:
        measured = bench_loader(
            opened, job, ways=names or None, rounds=rounds, seconds=seconds,
            smoke_samples=samples, seed=seed, tell=tell,
        )  # fmt: skip
    document = measured.to_json()
    written = _write(out, measured, document)
    if as_json:
        show_json(document)
    else:
        show(*_rendered(measured, document))
    print(f"written: {', '.join(written)}", file=sys.stderr)
    if not any(t.name == OURS and t.samples_per_second for t in measured.timings):
        raise typer.Exit(1)


def _write(out: Path, measured: LoaderBench, document: dict[str, Any]) -> list[str]:
    from reelseek.bench._loader_chart import loader_chart

    out.mkdir(parents=True, exist_ok=True)
    target = out / "bench_loader.json"
    target.write_text(json.dumps(document, indent=1) + "\n")
    chart = out / "bench_loader.png"
    try:
        loader_chart(measured, document, chart)
    except DependencyError as exc:
        print(f"no chart: {exc}", file=sys.stderr)
        return [str(target)]
    return [str(target), str(chart)]


def _rendered(measured: LoaderBench, document: dict[str, Any]) -> list[Any]:
    from rich.text import Text

    from reelseek.bench._loader_ways import OURS, OURS_BY_GOP
    from reelseek.bench.loader import headline

    environment = document["environment"]
    lines = [
        f"{name}, {of}: {', '.join(f'{ratio:.1f}x {other}' for other, ratio in ratios.items())}"
        for of, compared in (("samples/s", measured.ratios), ("CPU time", measured.cpu_ratios))
        for name in (OURS, OURS_BY_GOP)
        if (ratios := compared(name))
    ]
    orders = [
        f"order of {name}: {found.episodes_per_batch:.1f} episodes a batch, travels "
        f"{found.travel:.2f} of the epoch, neighbours {found.neighbour_distance:.2f} apart, "
        f"correlation {found.correlation:.2f}, {found.near_in_batch:.0%} with a near one in the "
        "batch"
        for name, found in measured.randomness.items()
    ]
    why_not = [f"{t.name}: {t.why_not}" for t in measured.timings if t.why_not]
    why_not += [f"{t.name}: {t.why_not}" for t in measured.smoke if t.why_not]
    return [
        Text(headline(measured), style="bold"),
        Text(f"{environment['cpu']}; {document['settings']['cache_state']}"),
        Text(),
        _loaders(measured),
        Text(),
        *map(Text, [*lines, *orders]),
        *([Text(), _single_samples(measured)] if measured.smoke else []),
        *map(Text, why_not),
    ]


def _loaders(measured: LoaderBench) -> Any:
    from reelseek.bench._timing import median
    from reelseek.cli._console import new_table

    table = new_table()
    table.add_column("\nloader")
    for header in ("samples/s\nmedian", "\nlowest", "\nhighest", "\ncold", "first\nbatch, s",
                   "worker CPU,\nms a sample", "worker, MB\nfirst", "\nlast"):  # fmt: skip
        table.add_column(header, justify="right", no_wrap=True)
    for timing in measured.timings:
        rates = timing.samples_per_second
        memory = timing.worker_megabytes
        cells = [
            (timing.rate, 0), (min(rates, default=None), 0), (max(rates, default=None), 0),
            (timing.cold_samples_per_second, 0), (timing.first_batch_seconds, 2),
            (median(timing.cpu_ms_per_sample), 2),
            (next(iter(memory), None), 0), (memory[-1] if memory else None, 0),
        ]  # fmt: skip
        table.add_row(timing.name, *(_cell(value, digits) for value, digits in cells))
    return table


def _single_samples(measured: LoaderBench) -> Any:
    from reelseek.bench._timing import median
    from reelseek.cli._console import new_table

    table = new_table()
    table.add_column("one sample")
    for header in ("warm, ms", "cold, ms", "cold / warm"):
        table.add_column(header, justify="right", no_wrap=True)
    for timing in measured.smoke:
        cells = [(median(timing.warm_ms), 2), (median(timing.cold_ms), 2), (timing.cold_to_warm, 2)]
        table.add_row(timing.name, *(_cell(value, digits) for value, digits in cells))
    return table


def _cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
