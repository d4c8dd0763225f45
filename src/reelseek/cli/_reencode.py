"""``reelseek reencode``: a dataset written again so that its videos are fast to read at random."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reelseek.cli._executor import Where, summary_line, takes_executor

if TYPE_CHECKING:
    from reelseek.care.reencode import Encoding, Measured, ReencodeReport, Spread

PLAN_SCHEMA = "reelseek.reencode.plan/1"
PLAN_PANEL = "With --plan"
MIN_PSNR = 30.0
"""dB; what ``reelseek.care.reencode.MIN_PSNR_DB`` is, which takes long to import."""
OF_PLAN = ("frames", "reads", "chart")
OF_ENCODER = ("codec", "gop", "crf", "preset", "pix_fmt", "b_frames", "depth_maps", "min_psnr")
OF_WRITING = ("copy", "restamp", "follow_links", *(one.name for one in dataclasses.fields(Where)))
"""Options by what they are for."""
LINES_SHOWN = 20
"""Failures and notes that are shown, of each."""


class CodecName(str, Enum):
    """Codecs that are written."""

    AV1 = "av1"
    H264 = "h264"
    HEVC = "hevc"


@takes_executor
def reencode(
    dataset: Annotated[Path, typer.Argument(help="The folder of a LeRobot or GR00T dataset.")],
    where: Where,
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Argument(help="The new dataset's folder; not needed with --plan.")
    ] = None,
    codec: Annotated[CodecName, typer.Option(help="The codec.")] = CodecName.AV1,
    gop: Annotated[
        int, typer.Option(min=0, help="Frames from key frame to key frame; 0: the encoder's own.")
    ] = 2,
    crf: Annotated[
        int | None,
        typer.Option(help="Quality, lower is better: 30 (AV1), 23 (H.264) or 26 (HEVC) if not "
                     "given.", show_default=False),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Effort: 0 to 13 (AV1; 8), placebo to ultrafast (the others; medium).",
                     show_default=False),
    ] = None,
    size: Annotated[
        str, typer.Option(metavar="WxH", help="Scale all pictures, as 224x224.")
    ] = "",
    pix_fmt: Annotated[
        str, typer.Option(help="yuv420p; yuv422p or yuv444p (H.264, HEVC).")
    ] = "yuv420p",
    b_frames: Annotated[
        bool, typer.Option("--b-frames", help="Predict from later frames too (H.264, HEVC): "
                           "smaller; frames are stored out of order.")
    ] = False,
    copy: Annotated[
        bool, typer.Option("--copy", help="Keep the coded frames; write new containers only: "
                           "index first, frame i at i/fps, from 0.")
    ] = False,
    restamp: Annotated[
        bool, typer.Option("--restamp", help="Put every episode's frame i at i/fps of info.json, "
                           "whatever its time was.")
    ] = False,
    depth_maps: Annotated[
        bool, typer.Option("--depth-maps", help="Encode depth maps too, whose values then change.")
    ] = False,
    min_psnr: Annotated[
        float, typer.Option(help="The least PSNR of a video in dB; 10 less for a single frame.")
    ] = MIN_PSNR,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow links out of the dataset, as into a "
                           "hub's cache.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only measure encodings on a sample of the dataset's "
                           "frames: size, seek cost, quality.")
    ] = False,
    frames: Annotated[
        int, typer.Option(min=2, rich_help_panel=PLAN_PANEL, help="Frames of each clip.")
    ] = 300,
    reads: Annotated[
        int, typer.Option(min=1, rich_help_panel=PLAN_PANEL, help="Timed reads of each clip.")
    ] = 40,
    chart: Annotated[
        Path, typer.Option(rich_help_panel=PLAN_PANEL, help="Where the chart goes (PNG).")
    ] = Path("out/reencode_plan.png"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document (reelseek.reencode/1, or "
                           f"{PLAN_SCHEMA}).")
    ] = False,
) -> None:  # fmt: skip
    """Write a dataset again beside it, with videos that are fast to read at random.

    The new dataset is complete and of the same format. Each new video is checked frame by frame
    (number, times, size, PSNR; read at random as FFmpeg decodes it) before it counts. OUT.partial
    holds what is done so far: stopped or killed, the same command goes on from there.

    Run it with --plan first: it says what each encoding would take, on your own frames.

    Exit status 0 where all is done, 1 where a video can't be made or is below the floor.
    """
    if plan:
        _refuse(context, (*OF_ENCODER, *OF_WRITING), "is for the command that --plan ends with")
        _plan(dataset, out, _asked_size(size), frames, reads, chart, as_json)
        return
    _refuse(context, OF_PLAN, "is for --plan")
    if out is None:
        raise typer.BadParameter("give the new dataset's folder, or --plan")
    if copy:
        _refuse(
            context, (*OF_ENCODER, "size"), "changes nothing with --copy, which encodes nothing"
        )
    encoding = None if copy else _encoding(codec.value, gop, crf, preset, pix_fmt, size, b_frames)
    from reelseek.care.reencode import reencode_dataset
    from reelseek.cli._console import counted_bar, show, show_json

    with counted_bar("copying" if copy else "encoding") as tell:
        report = reencode_dataset(
            dataset, out, encoding, restamp=restamp, depth_maps=depth_maps, min_psnr_db=min_psnr,
            follow_links=follow_links, executor=where.make(), tell=tell,
        )  # fmt: skip
    if as_json:
        show_json(report.document())
    else:
        show(*_rendered(report))
    if report.failures:
        raise typer.Exit(1)


def _refuse(context: typer.Context, names: Iterable[str], why: str) -> None:
    """A usage error where one of these options was given."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--{name.replace('_', '-')} {why}")


def _asked_size(text: str) -> tuple[int, int] | None:
    try:
        return _size(text)
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from exc


def _encoding(
    codec: str, gop: int, crf: int | None, preset: str | None, pixel_format: str, size: str,
    b_frames: bool,
) -> Encoding:  # fmt: skip
    """What was asked for; a usage error where it can't be."""
    from reelseek.care.reencode import Encoding

    try:
        return Encoding(codec, gop or None, crf, preset, pixel_format, _size(size), b_frames)
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from exc


def _size(text: str) -> tuple[int, int] | None:
    width, _, height = text.partition("x")
    if not text:
        return None
    if not (width.isdecimal() and height.isdecimal()):
        raise ValueError(f"size {text!r}: give WIDTHxHEIGHT such as 224x224")
    return int(width), int(height)


def _rendered(report: ReencodeReport) -> Iterator[Any]:
    from rich.text import Text

    from reelseek.native._printable import printable

    if report.files:
        yield _table(report)
        yield Text(printable(_proof_line(report)))
    yield Text(printable(summary_line(report.job).plain))
    notes = [(file.key, file.note) for file in report.files if file.note]
    yield from _lines("note", notes, "yellow")
    failures = [(failure.key, failure.message) for failure in report.failures]
    yield from _lines("FAILED", failures, "red")
    if failures:
        text = f"unfinished: {len(failures)} of {len(failures) + len(report.files)} videos failed; "
        yield Text(text + "mend them and run the same command again", style="bold red")
    else:
        yield Text(printable(f"written: {report.out}"), style="bold green")


def _table(report: ReencodeReport) -> Any:
    """Before and after."""
    from reelseek._sizes import size_text
    from reelseek.cli._console import new_table

    table = new_table()
    for header in ("", "videos", "bytes a frame", "key frame every", "2 frames, ms (quartiles)",
                   "PSNR, dB"):  # fmt: skip
        table.add_column(header, justify="right" if header else "left", no_wrap=True)
    count, psnr = report.num_frames, report.psnr_db
    before = sum(file.num_key_frames_before for file in report.files)
    after = sum(file.num_key_frames for file in report.files)
    for name, size, keys, seek, quality in (
        ("before", report.bytes_before, before, report.seek_ms_before, ""),
        ("after", report.bytes_after, after, report.seek_ms_after,
         "the same frames" if psnr is None else f"{psnr:.1f}"),
    ):  # fmt: skip
        table.add_row(
            name, size_text(size), f"{size / count:.0f}", f"{count / max(keys, 1):.1f} frames",
            "" if seek is None else _quartiles(seek), quality,
        )  # fmt: skip
    return table


def _quartiles(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.lower:.2f}-{spread.upper:.2f})"


def _proof_line(report: ReencodeReport) -> str:
    text = f"{len(report.files)} videos, {report.num_frames} frames: each one checked"
    if (worst := report.worst) is not None:
        text += (
            f"; the frame furthest from its source has {worst.worst_psnr_db:.1f} dB "
            f"(frame {worst.worst_frame} of {worst.key})"
        )
    return text


def _lines(label: str, found: Sequence[tuple[str, str]], style: str) -> Iterator[Any]:
    from rich.text import Text

    from reelseek.native._printable import printable

    for key, message in found[:LINES_SHOWN]:
        text = message if key in message else f"{key}: {message}"
        yield Text(printable(f"{label} {text}"), style=style)
    if len(found) > LINES_SHOWN:
        yield Text(f"{label} and {len(found) - LINES_SHOWN} more", style=style)


def _plan(
    dataset: Path, out: Path | None, size: tuple[int, int] | None, frames: int, reads: int,
    chart: Path, as_json: bool,
) -> None:  # fmt: skip
    from reelseek.care.reencode import plan_encodings
    from reelseek.care.reencode._plan import balanced
    from reelseek.cli._console import counted_bar, show, show_json, show_whole
    from reelseek.native._printable import printable_command

    _check_folder(chart)
    encodings = _to_measure(size)
    with counted_bar("measuring") as tell:
        measured = plan_encodings(dataset, encodings, num_frames=frames, num_reads=reads, tell=tell)
    best = balanced(measured)
    assert best.encoding is not None
    root = os.path.abspath(dataset)
    command = shlex.join(["reelseek", "reencode", str(dataset), str(out or f"{root}_fast")])
    command += f" {best.encoding.command_options()}"
    if as_json:
        show_json({
            "schema": PLAN_SCHEMA, "root": root, "command": command,
            "measured": [one.document() for one in measured],
        })  # fmt: skip
    else:
        show(*_plan_rendered(dataset, measured, best))
        from rich.text import Text

        show_whole(Text(printable_command(command), style="bold"))
    _draw(dataset, measured, chart)


def _to_measure(size: tuple[int, int] | None) -> Sequence[Encoding]:
    """The encodings to measure, of pictures of one size; a usage error where none takes it."""
    from reelseek.care.reencode import DEFAULT_ENCODINGS

    try:
        return [dataclasses.replace(one, size=size) for one in DEFAULT_ENCODINGS]
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from exc


def _check_folder(chart: Path) -> None:
    """A usage error where the chart can't be written: better now than after minutes of work."""
    try:
        chart.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise typer.BadParameter(f"{chart.parent} can't be made: {exc.strerror}") from exc
    if not os.access(chart.parent, os.W_OK) or chart.is_dir():
        raise typer.BadParameter(f"{chart} can't be written")


def _plan_rendered(dataset: Path, measured: Sequence[Measured], best: Measured) -> Iterator[Any]:
    from rich.text import Text

    from reelseek._sizes import size_text
    from reelseek.cli._console import new_table

    yield Text(
        f"{_name(dataset)}: {measured[0].num_frames} of its frames, encoded each way",
        style="bold",
    )
    table = new_table()
    for header in ("", "bytes a frame", "all videos", "2 frames, ms (quartiles)", "PSNR", "SSIM",
                   "frames/s"):  # fmt: skip
        table.add_column(header, justify="right" if header else "left", no_wrap=True)
    table.add_column("options")
    for one in measured:
        options = one.encoding.command_options() if one.encoding else ""
        table.add_row(
            "as it is" if one.encoding is None else str(one.encoding),
            f"{one.bytes_per_frame:.0f}", size_text(one.dataset_bytes),
            _quartiles(one.seek_ms), *_cells(one), options, style="bold" if one is best else "",
        )  # fmt: skip
    yield table
    yield Text(
        "2 frames: read at a random place, 16 apart, warm, on one thread; frames/s: encoded on "
        "one thread; PSNR (dB) and SSIM against the frames as they are"
    )
    yield Text(
        "To take the one where seek time squared times size is least (or another's options):"
    )


def _name(dataset: Path) -> str:
    """A dataset's name, to be shown."""
    from reelseek.native._printable import printable

    return printable(Path(os.path.abspath(dataset)).name)


def _cells(one: Measured) -> tuple[str, str, str]:
    if one.psnr_db is None or one.ssim is None or one.encode_frames_per_second is None:
        return "", "", ""
    return f"{one.psnr_db:.1f}", f"{one.ssim:.4f}", f"{one.encode_frames_per_second:.0f}"


def _draw(dataset: Path, measured: Sequence[Measured], chart: Path) -> None:
    """Draw the chart; a line on stderr says where it is, or why there is none."""
    from reelseek.bench._environment import cpu_model
    from reelseek.care.reencode._chart import plan_chart
    from reelseek.errors import DependencyError
    from reelseek.native._printable import printable

    title = f"{_name(dataset)}: {measured[0].num_frames} frames, encoded each way"
    footer = f"{cpu_model()}, one thread; points: medians, whiskers: quartiles; dB: PSNR"
    try:
        plan_chart(measured, title, footer, chart)
    except DependencyError as exc:
        print(printable(f"no chart: {exc}"), file=sys.stderr)
    else:
        print(printable(f"written: {chart}"), file=sys.stderr)
