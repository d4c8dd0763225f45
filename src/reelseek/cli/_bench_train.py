"""``reelseek bench train``: does a training step wait for its data?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reelseek.errors import DependencyError

if TYPE_CHECKING:
    from reelseek.bench.train import TrainBench

HEADERS = ("it/s", "slowest to fastest round", "step, ms", "waiting", "preprocessing", "computing",
           "worker busy", "one core feeds")  # fmt: skip


def train(
    dataset: Annotated[Path, typer.Argument(help="The folder of a LeRobot or GR00T dataset.")],
    steps: Annotated[int, typer.Option(min=1, help="Steps counted for each.")] = 30,
    batch_size: Annotated[int, typer.Option(min=1, help="Samples of a step.")] = 4,
    workers: Annotated[int, typer.Option(min=0, help="Processes that read.")] = 1,
    model: Annotated[
        str, typer.Option(help="The encoder: micro, tiny, small, base, so400m.")
    ] = "tiny",
    device: Annotated[str, typer.Option(help="Where it trains: cpu or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="Threads that compute, on a CPU.")] = 1,
    cameras: Annotated[str, typer.Option(help="Keys of cameras, with commas.  [all]")] = "",
    setups: Annotated[str, typer.Option(help="Names, with commas.  [all]")] = "",
    seed: Annotated[int, typer.Option(help="Of the samples and the weights.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the JSON and the chart go.")] = Path("out"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the JSON document (reelseek.bench.train/1).")
    ] = False,
) -> None:
    """Train an inverse-dynamics model for a few steps with each way of reading its frames.

    Frames at a row and 16 rows on, of all cameras, through a SigLIP vision encoder (transformers,
    random weights) to the 16 actions in between. What is read is compared first; then the ways
    take turns on the same samples. Says what part of a step is spent waiting for data,
    preprocessing, and computing. Writes bench_train.json and bench_train.png.

    Several processes: torchrun --nproc-per-node 2 -m reelseek bench train DATASET

    Exit status 0 where at least one could be measured and none read other frames, else 1.
    """
    from reelseek.bench._train_setups import SETUPS
    from reelseek.bench.train import TrainOptions, bench_train
    from reelseek.cli._console import progress, show, show_json
    from reelseek.cli._options import listed, names_of_backends
    from reelseek.datasets import open_dataset

    chosen = names_of_backends(setups, tuple(SETUPS))
    options = TrainOptions(
        steps=steps, batch_size=batch_size, num_workers=workers, model=model, device=device,
        threads=threads, seed=seed,
    )  # fmt: skip
    opened = open_dataset(dataset, cameras=listed(cameras) or None)
    with progress() as tell:
        measured = bench_train(opened, options, setups=chosen, tell=tell)
    if measured.process.rank == 0:
        document = measured.to_json()
        written = _write(out, measured, document)
        if as_json:
            show_json(document)
        else:
            show(*_rendered(measured, document))
        print(f"written: {', '.join(written)}", file=sys.stderr)
    if not measured.is_sound:
        raise typer.Exit(1)


def _write(out: Path, measured: TrainBench, document: dict[str, Any]) -> list[str]:
    from reelseek.bench._train_chart import train_chart

    out.mkdir(parents=True, exist_ok=True)
    target, chart = out / "bench_train.json", out / "bench_train.png"
    target.write_text(json.dumps(document, indent=1) + "\n")
    try:
        train_chart(measured.setups, document, chart)
    except DependencyError as exc:
        print(f"no chart: {exc}", file=sys.stderr)
        return [str(target)]
    return [str(target), str(chart)]


def _rendered(measured: TrainBench, document: dict[str, Any]) -> list[Any]:
    from rich.text import Text

    from reelseek.cli._console import new_table

    table = new_table()
    table.add_column("")
    for header in HEADERS:
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("how it reads and preprocesses")
    for times in measured.setups:
        numbers = ["-"] * 6
        if times.step_ms and times.steps_per_second:
            shares = [f"{share:.0%}" for share in times.shares()]
            spread = f"{min(times.round_rates):.2f} to {max(times.round_rates):.2f}"
            numbers = [f"{times.steps_per_second:.2f}", spread, f"{times.step_ms:.0f}", *shares]
        feeds = "-" if times.core_feeds is None else f"{times.core_feeds:.1f} it/s"
        cells = [*numbers, "-" if times.busy is None else f"{times.busy:.0%}", feeds]
        table.add_row(times.setup.name, *cells, times.why_not or times.setup.usage)
    options, processes = measured.options, measured.process.world_size
    num_cameras = len(measured.dataset.cameras)
    return [
        Text(
            f"{measured.dataset.root.name}: {num_cameras} camera"
            + "s" * (num_cameras != 1)
            + f", frames +0 and "
            f"+{options.horizon}, batch size {options.batch_size}, {options.num_workers} worker"
            + "s" * (options.num_workers != 1)
            + f" for each of {processes} processes" * (processes > 1),
            style="bold",
        ),
        Text(f"{document['environment']['cpu']}; encoder {options.model} on {options.device}"),
        Text(),
        table,
        Text(),
        *_verdict(measured),
    ]


def _verdict(measured: TrainBench) -> list[Any]:
    """Which setups make a step wait."""
    from rich.text import Text

    run = [times for times in measured.setups if times.wait_ms]
    waiting = ", ".join(times.setup.name for times in run if times.waits)
    not_waiting = ", ".join(times.setup.name for times in run if not times.waits)
    return [
        Text(f"workers can't keep up, steps wait for them: {waiting or 'none'}"),
        Text(f"workers keep up: {not_waiting or 'none'}"),
        Text("worker busy: the part of its time that a worker has to read, from processor times; "
             "waiting: as it was, with whatever else the machine did. one core feeds: batches that "
             "a worker reads in a second of its processor's time, files open", style="dim"),
    ]  # fmt: skip
