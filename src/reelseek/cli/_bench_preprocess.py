"""``reelseek bench preprocess``: SigLIP's preprocessing, by Hugging Face and by reelseek."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reelseek.bench.preprocess import PreprocessBench


def preprocess(
    dataset: Annotated[Path, typer.Argument(help="The folder of a LeRobot or GR00T dataset.")],
    frames: Annotated[int, typer.Option(min=1, help="Frames in the batch.")] = 24,
    size: Annotated[int, typer.Option(min=1, help="Side of the model's input, pixels.")] = 224,
    rounds: Annotated[int, typer.Option(min=1, help="How often each runs.")] = 15,
    seed: Annotated[int, typer.Option(help="Of the choice of frames.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("out"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the JSON document (reelseek.bench.preprocess/1).")
    ] = False,
) -> None:
    """Time SigLIP's resize and normalisation: Hugging Face's processors and reelseek.preprocess.

    On decoded frames, one thread each, in turn. Results are compared first, and only those within
    2 of 255 levels of SiglipImageProcessor's are timed. Writes bench_preprocess.json.

    Exit status 0 where reelseek's results are that near, else 1.
    """
    from reelseek.bench.preprocess import bench_preprocess
    from reelseek.cli._console import progress, show, show_json
    from reelseek.datasets import open_dataset

    with progress() as tell:
        measured = bench_preprocess(
            open_dataset(dataset), frames=frames, size=size, rounds=rounds, seed=seed, tell=tell
        )
    document = measured.to_json()
    out.mkdir(parents=True, exist_ok=True)
    target = out / "bench_preprocess.json"
    target.write_text(json.dumps(document, indent=1) + "\n")
    if as_json:
        show_json(document)
    else:
        show(*_rendered(measured, document))
    print(f"written: {target}", file=sys.stderr)
    if not all(one.is_right for one in measured.measured):
        raise typer.Exit(1)


def _rendered(measured: PreprocessBench, document: dict[str, Any]) -> list[Any]:
    from rich.text import Text

    from reelseek.bench._timing import median
    from reelseek.cli._console import new_table

    count, height, width = measured.shape
    table = new_table()
    table.add_column("")
    for header in ("frames/s", "ms a frame", "levels off"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("what is timed")
    for one in measured.measured:
        rate, middle = measured.frames_per_second(one), median(one.batch_ms)
        table.add_row(
            one.way.name,
            "DIFFERS" if rate is None else f"{rate:,.0f}",
            "-" if middle is None else f"{middle / count:.3f}",
            "-" if one.levels is None else f"{one.levels:.2f}",
            one.way.usage,
        )
    lines = [Text(f"{ratio}") for ratio in measured.ratios()]
    return [
        Text(f"{count} frames of {width}x{height} to {measured.size}x{measured.size}"),
        Text(f"{document['environment']['cpu']}, one thread; levels of 255 from "
             "SiglipImageProcessor, the largest"),
        Text(),
        table,
        Text(),
        *([Text("How many times as long:", style="bold"), *lines] if lines else []),
        *[Text(f"{one.name}: {one.why}") for one in measured.absent],
    ]  # fmt: skip
