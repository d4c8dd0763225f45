"""``reelseek index``: where every frame's bytes are, found once and kept in a file."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reelseek.cli._executor import Name, Where, summary_line, takes_executor

if TYPE_CHECKING:
    from reelseek.bench._verify import Verdict
    from reelseek.care.jobs import Summary
    from reelseek.index import IndexReport

SCHEMA = "reelseek.index/1"
FRAMES_NAMED = 20
"""Numbers of differing frames that a line names."""


@takes_executor
def index(
    path: Annotated[
        str, typer.Argument(metavar="DATASET_OR_VIDEO", help="A dataset's folder, or a video.")
    ],
    where: Where,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Decode every file in sequence and by its index, and compare."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help=f"Print one JSON document ({SCHEMA}).")
    ] = False,
) -> None:
    """Index a dataset's videos, so that the first read of a file costs no more than the next.

    Looks only into videos that are new or changed since the last time. The index is written into
    the dataset (meta/reelseek/index.bin), beside a single video (<video>.reelseek), or, where that
    is read-only, into the cache folder (REELSEEK_CACHE). It can be stopped and goes on from there.

    With --executor slurm or ray the tasks of a cluster look into the videos, which they find under
    the same path; this process waits for them and writes the index.

    Exit status 0 where all videos are indexed and, with --verify, all frames are equal, else 1.
    """
    from reelseek.cli._console import show_json
    from reelseek.workers import num_cpus

    workers = where.jobs or num_cpus()
    report, summary = _indexed(path, where, workers)
    verdicts = _verified(path, report, workers) if verify else []
    if as_json:
        show_json(_document(report, verdicts if verify else None, summary))
    else:
        _show(report, verdicts if verify else None, summary)
    if report.failures or not all(verdict.is_right for verdict in verdicts):
        raise typer.Exit(1)


def _indexed(path: str, where: Where, workers: int) -> tuple[IndexReport, Summary | None]:
    from reelseek.cli._console import counted_bar

    if where.executor is Name.LOCAL or not Path(path).is_dir():
        from reelseek.index import build_index

        with counted_bar("indexing") as tell:
            report = build_index(path, jobs=workers, tell=tell, tell_waiting=_say_waiting)
        return report, None
    from reelseek.care._index import index_dataset

    executor = where.make()
    with counted_bar("indexing") as tell:
        return index_dataset(path, executor, tell=tell, tell_waiting=_say_waiting)


def _verified(path: str, report: IndexReport, workers: int) -> list[Verdict]:
    """Compare the frames of every file in the index with FFmpeg's decode."""
    from reelseek.bench._verify import Verdict, verify_file
    from reelseek.cli._console import counted_bar
    from reelseek.index import Sidecar

    path = os.path.abspath(path)
    folder = path if Path(path).is_dir() else str(Path(path).parent)
    sidecar = Sidecar(report.path, folder)
    files = [os.path.join(folder, os.fsdecode(head.path)) for head, _record in sidecar.records()]

    def one(file: str) -> Verdict:
        tables = sidecar.lookup(file)
        if tables is None:
            return Verdict(file, "", 0, (), "it was changed after it was indexed")
        return verify_file(file, tables)

    verdicts = []
    with ThreadPoolExecutor(workers) as pool, counted_bar("verifying") as tell:
        for verdict in pool.map(one, sorted(files)):
            verdicts.append(verdict)
            tell(len(verdicts), len(files))
    return verdicts


def _show(report: IndexReport, verdicts: list[Verdict] | None, summary: Summary | None) -> None:
    from rich.text import Text

    from reelseek._sizes import size_text
    from reelseek.cli._console import show

    rate = report.num_indexed / report.seconds if report.seconds else 0.0
    kept = report.num_files - report.num_indexed
    show(
        Text(report.path, style="bold"),
        Text(
            f"{report.num_files} files, {report.num_frames} frames, {size_text(report.num_bytes)}: "
            f"{report.bytes_per_frame:.1f} bytes a frame"
        ),
        Text(
            f"{report.num_indexed} files indexed in {report.seconds:.2f} s, {rate:.0f} a second; "
            f"{kept} were up to date, {report.num_dropped} are gone"
        ),
    )
    if summary is not None:
        show(summary_line(summary))
    for failure in report.failures:
        show(Text(f"FAILED {failure.path}: {failure.message}", style="red"))
    if verdicts is not None:
        show(*_verdict_lines(verdicts))


def _verdict_lines(verdicts: list[Verdict]) -> Iterator[Any]:
    from rich.text import Text

    frames = sum(verdict.num_frames for verdict in verdicts)
    wrong = [verdict for verdict in verdicts if not verdict.is_right]
    for verdict in wrong:
        numbers = ", ".join(map(str, verdict.differing[:FRAMES_NAMED]))
        more = len(verdict.differing) - FRAMES_NAMED
        listed = f"frames {numbers}{f' and {more} more' if more > 0 else ''}" if numbers else ""
        text = ": ".join(filter(None, (f"DIFFERS {verdict.path}", listed, verdict.message)))
        yield Text(text, style="bold red")
    style = "green" if not wrong else "red"
    yield Text(
        f"{frames} frames of {len(verdicts)} files compared with FFmpeg's decode from the start: "
        + (f"{len(wrong)} files differ" if wrong else "all are equal, bit for bit"),
        style=style,
    )


def _document(
    report: IndexReport, verdicts: list[Verdict] | None, summary: Summary | None
) -> dict[str, Any]:
    document = {
        "schema": SCHEMA,
        **dataclasses.asdict(report),
        "bytes_per_frame": report.bytes_per_frame,
        "verified": None,
        "job": None if summary is None else dataclasses.asdict(summary),
    }
    if verdicts is not None:
        document["verified"] = [dataclasses.asdict(verdict) for verdict in verdicts]
    return document


def _say_waiting() -> None:
    print("another build of this index is running: waiting for it", file=sys.stderr, flush=True)
