"""``reelseek info``: what a dataset is, at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reelseek.datasets import DatasetSummary

SCHEMA = "reelseek.info/1"


def info(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's folder.")],
    as_json: Annotated[
        bool, typer.Option("--json", help=f"Print one JSON document ({SCHEMA}).")
    ] = False,
) -> None:
    """Say what a dataset is: format, episodes, cameras, codecs, sizes, and what looks wrong.

    Looks at every file's name and size and indexes a few videos per camera; decodes nothing.

    Exit status 0 where nothing looks wrong, else 1.
    """
    import dataclasses

    import reelseek
    from reelseek.cli._console import show, show_json
    from reelseek.datasets import summarise

    summary = summarise(reelseek.open_dataset(dataset, output="numpy"))
    if as_json:
        show_json({"schema": SCHEMA, "hours": summary.hours, **dataclasses.asdict(summary)})
    else:
        show(*rendered(summary))
    if summary.findings:
        raise typer.Exit(1)


def rendered(summary: DatasetSummary) -> list[RenderableType]:
    """A summary as lines and a table."""
    from rich.text import Text

    from reelseek._sizes import size_text
    from reelseek.cli._console import new_table

    shortest, median, longest = summary.episode_lengths
    table = new_table()
    for header in ("camera", "codec", "size", "pixels"):
        table.add_column(header, no_wrap=True)
    for header in ("a key frame every", "files", "on disk"):
        table.add_column(header, justify="right", no_wrap=True)
    for camera in summary.cameras:
        table.add_row(
            Text(camera.key),
            camera.codec or "unreadable",
            f"{camera.width}x{camera.height}",
            camera.pixel_format,
            f"{camera.mean_gop:.3g} frames" if camera.mean_gop else "",
            str(camera.num_files) if camera.num_files else "",
            size_text(camera.num_bytes) if camera.num_files else "",
        )
    robot = f", robot {summary.robot_type}" if summary.robot_type else ""
    lines: list[RenderableType] = [
        Text(summary.root, style="bold"),
        Text(f"{summary.format}{robot}"),
        Text(
            f"{summary.num_episodes} episodes of {shortest} to {longest} frames (median {median}), "
            f"{summary.num_frames} frames at {summary.fps:g} a second = "
            f"{_duration(summary.hours)}, {size_text(summary.num_bytes)}"
        ),
        Text(f"{len(summary.tasks)} tasks, such as: {summary.tasks[0]}" if summary.tasks else ""),
        Text(_index_text(summary)),
        Text(),
        table,
    ]
    if not summary.findings:
        return [*lines, Text("Nothing looks wrong.", style="green")]
    wrong = [Text(f"- {finding}") for finding in summary.findings]
    return [*lines, Text("What looks wrong:", style="bold yellow"), *wrong]


def _index_text(summary: DatasetSummary) -> str:
    import shlex

    from reelseek._sizes import size_text

    index, command = summary.index, f"reelseek index {shlex.quote(summary.root)}"
    if index.note and not index.path:
        return f"Index: not used: {index.note}"
    if not index.path:
        return f"Index: none, so that each video is indexed at its first read. Make it: {command}"
    text = f"Index: {index.num_fresh} of {index.num_videos} videos, {size_text(index.num_bytes)}"
    if index.num_fresh < index.num_videos:
        return f"{text}; the others are new or changed. Bring it up to date: {command}"
    return f"{text}, {index.path}"


def _duration(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{hours * 60:.1f} minutes"
