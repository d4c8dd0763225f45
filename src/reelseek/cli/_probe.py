"""``reelseek probe``: which decoders read this file, and do they return the right frames."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reelseek.bench import FileProbe
    from reelseek.bench._child import ReadReport
    from reelseek.bench.probe import BackendProbe

MARKS = {"right": "green", "wrong": "bold red", "fails": "red", "refuses": "yellow",
         "unavailable": "dim", "crashed": "bold red", "timed out": "bold red"}  # fmt: skip


def probe(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Video files.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document (reelseek.probe/1).")
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="For each decoder.")
    ] = 120.0,
    backends: Annotated[str, typer.Option(help="Names, with commas.  [all]")] = "",
    seed: Annotated[int, typer.Option(help="Of the order in which frames are read.")] = 0,
) -> None:
    """Try every decoder on a file, and compare its frames with FFmpeg's own decode.

    Each decoder runs in a subprocess, so that a crash or a hang is reported and harms nothing.
    The first columns show it behind reelseek, which refuses rather than return a neighbouring
    frame; "used raw" shows the same frames read with the library's plain documented call.

    Exit status 0 where every file is whole and at least one backend reads it exactly, else 1.
    """
    from reelseek.bench.probe import document, probe_file
    from reelseek.cli._console import progress, show, show_json
    from reelseek.cli._options import names_of_backends
    from reelseek.video.backends import backend_names

    chosen = names_of_backends(backends, backend_names())
    with progress() as tell:
        probes = [
            probe_file(file, backends=chosen, timeout_seconds=timeout, seed=seed, tell=tell)
            for file in files
        ]
    for found in probes:
        if found.error:
            print(f"error: {found.error['message']}", file=sys.stderr)
        elif not as_json:
            show(*_rendered(found))
    if as_json:
        show_json(document(probes, timeout_seconds=timeout))
    if not all(found.is_readable for found in probes):
        raise typer.Exit(1)


def _rendered(probe: FileProbe) -> list[RenderableType]:
    from rich.markup import escape
    from rich.text import Text

    from reelseek.cli._console import new_table

    table = new_table()
    for header in ("backend", "version", "through reelseek"):
        table.add_column(header, no_wrap=True)
    table.add_column("ms per seek", justify="right", no_wrap=True)
    table.add_column("used raw")
    for backend in probe.backends:
        table.add_row(
            backend.name,
            backend.adapter.version,
            Text(_verdict(backend.adapter), style=MARKS[backend.adapter.status]),
            "" if backend.median_seek_ms is None else f"{backend.median_seek_ms:.2f}",
            Text(backend.plain_verdict, style=_plain_style(backend)),
        )
    lines: list[RenderableType] = [f"[bold]{escape(probe.path)}[/bold]", escape(_facts(probe))]
    lines += [Text(f"note: {note}") for note in probe.video["notes"]]
    lines += [Text(text, style="bold red") for text in _faults(probe)]
    reasons = [Text.assemble((f"{name}: ", "bold"), text) for name, text in _reasons(probe)]
    legend = [Text(text, style="dim")] if (text := _legend(probe)) else []
    return [*lines, Text(), table, *legend, *([Text()] if reasons else []), *reasons]


def _facts(probe: FileProbe) -> str:
    video = probe.video
    gop = video["num_frames"] / max(1, video["num_key_frames"])
    return (
        f"{video['codec']} {video['width']}x{video['height']} {video['pixel_format']}, "
        f"{video['num_frames']} frames, a key frame every {gop:.3g}; "
        f"{len(probe.frames)} reads compared with FFmpeg's decode from the start"
    )


def _faults(probe: FileProbe) -> list[str]:
    """What is wrong with the file itself."""
    video, found = probe.video, []
    if probe.is_damaged:
        found.append(
            f"DAMAGED: FFmpeg's own decode ends after {video['num_frames_decoded']} of "
            f"{video['num_frames']} frames, and only those are compared. Copy the file again "
            "from its source"
        )
    if video["num_frames_of_another_size"]:
        found.append(
            f"SIZE CHANGES: {video['num_frames_of_another_size']} frames are not "
            f"{video['width']}x{video['height']}, and are not compared. Re-encode it to one size"
        )
    return found


def _verdict(report: ReadReport) -> str:
    if report.status == "right":
        if report.max_difference:
            return f"same frames, colours within {report.max_difference}"
        return "same frames"
    if report.status == "wrong":
        return f"{report.wrong} of {report.reads} DIFFER"
    if report.status == "fails" and report.reads:
        return f"{report.failed} of {report.reads} fail"
    words = {"refuses": "refused", "unavailable": "not available", "fails": "fails to open"}
    return words.get(report.status, report.status)


def _plain_style(backend: BackendProbe) -> str:
    return "" if backend.plain is None else MARKS[backend.plain.status]


def _legend(probe: FileProbe) -> str:
    """What each plain call is."""
    from reelseek.bench._readers import PLAIN

    calls = [
        f"{backend.name} {PLAIN[backend.plain.reader].usage}"
        for backend in probe.backends
        if backend.plain and backend.plain_verdict
    ]
    return f"raw: {'; '.join(calls)}" if calls else ""


def _reasons(probe: FileProbe) -> list[tuple[str, str]]:
    """One line for each failure: the decoder's own words and what to do."""
    found = []
    for backend in probe.backends:
        if backend.adapter.status != "right":
            found.append((backend.name, backend.adapter.explanation))
        plain = backend.plain
        # Where the plain call can't read at all, the adapter has said why.
        if plain is not None and (plain.wrong or plain.status in ("crashed", "timed out")):
            found.append((plain.reader, plain.explanation))
    return found
