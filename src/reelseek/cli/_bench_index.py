"""``reelseek bench index``: what indexing files costs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reelseek.bench.index import IndexBench


def index(
    dataset: Annotated[Path, typer.Argument(help="The folder of a LeRobot or GR00T dataset.")],
    files: Annotated[int, typer.Option(min=1, help="How many files at most.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the choice of files.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("out"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the JSON document (reelseek.bench.index/2).")
    ] = False,
) -> None:
    """Time the indexing of a dataset's files, against torchcodec's scan of the same files.

    Both in one process and in turn, file by file. Also says what the index takes in memory and on
    disk, and what opening it and looking a file up takes. Writes bench_index.json; leaves the
    dataset as it is.

    Exit status 0 where all files could be indexed, else 1.
    """
    from reelseek.bench.index import bench_index
    from reelseek.cli._console import progress, show, show_json
    from reelseek.datasets import open_dataset

    opened = open_dataset(dataset, output="numpy")
    with progress() as tell:
        measured = bench_index(opened, files=files, seed=seed, tell=tell)
    document = measured.to_json()
    out.mkdir(parents=True, exist_ok=True)
    target = out / "bench_index.json"
    target.write_text(json.dumps(document, indent=1) + "\n")
    if as_json:
        show_json(document)
    else:
        show(*_rendered(measured, document))
    print(f"written: {target}", file=sys.stderr)


def _rendered(measured: IndexBench, document: dict[str, Any]) -> list[Any]:
    from rich.text import Text

    from reelseek.bench._timing import median, percentile
    from reelseek.bench.index import USAGE
    from reelseek.cli._console import new_table

    table = new_table()
    table.add_column("")
    for header in ("files/s", "ms per file", "p95"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("what it does")
    for timing in measured.timings:
        values = (timing.files_per_second, median(timing.file_ms), percentile(timing.file_ms, 95))
        cells = [
            "-" if value is None else f"{value:.{digits}f}"
            for value, digits in zip(values, (0, 2, 2), strict=True)
        ]
        table.add_row(timing.name, *cells, timing.why_not or USAGE[timing.name])
    ratio = measured.ratio
    return [
        Text(
            f"{measured.root.name}: {'/'.join(measured.codecs)}, {len(measured.paths)} files, "
            f"{measured.num_frames} frames",
            style="bold",
        ),
        Text(f"{document['environment']['cpu']}, one thread; {document['cache_state']}"),
        Text(),
        table,
        Text(),
        *([] if ratio is None else [Text(f"How many times as long: {ratio}")]),
        Text(f"in memory: {document['memory_bytes_per_frame']:.1f} bytes a frame"),
        Text(
            f"index file: {document['sidecar_bytes_per_frame']:.1f} bytes a frame; opened in "
            f"{document['sidecar_open_median_ms']:.2f} ms, a file looked up in "
            f"{document['sidecar_lookup_median_ms']:.2f} ms"
        ),
    ]
