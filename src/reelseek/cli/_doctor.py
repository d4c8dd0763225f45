"""``reelseek doctor``: why torchcodec does not load, and the one command that mends it."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from reelseek.launch import SlurmCheck
    from reelseek.native._doctor import Examination
    from reelseek.native._tree import Branch


def doctor(
    pythons: Annotated[
        list[str] | None,
        typer.Option(
            "--python",
            metavar="PATH",
            help="Another environment's Python, or its folder; repeatable.  [this one]",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document (reelseek.doctor/1).")
    ] = False,
    slurm_check: Annotated[
        bool,
        typer.Option("--slurm-check", help="Inside a job: did what was exported reach it?"),
    ] = False,
    prove: Annotated[
        bool,
        typer.Option(help="Import torchcodec and decode a frame, in a process of its own."),
    ] = True,
) -> None:
    """Say why torchcodec does not load, and the one command that mends it.

    Reads the libraries' files and loads nothing of them; other environments need nothing
    installed. The first line is the verdict, the next one the command.

    Exit status 0 where torchcodec loads as things are, else 1.
    """
    from reelseek.cli._console import show, show_json, show_whole
    from reelseek.launch import check_slurm
    from reelseek.native._doctor import examine
    from reelseek.native._document import document

    found = [examine(python, with_proof=prove) for python in (pythons or [""])]
    slurm = [check_slurm(one.facts, one.remedy) for one in found] if slurm_check else []
    if as_json:
        whole = document(found)
        for environment, check in zip(whole["environments"], slurm, strict=False):
            environment["slurm"] = check.to_json()
        show_json(whole)
    else:
        if len(found) > 1:
            show(_table(found), "")
        for number, one in enumerate(found):
            if number:
                show("")
            show_whole(*_head(one, slurm[number] if slurm else None, named=len(found) > 1))
            show("", *_tree(one))
            show_whole(*_decoders(one))
    if not all(one.is_well for one in found) or not all(check.is_well for check in slurm):
        raise typer.Exit(1)


def _table(found: list[Examination]) -> RenderableType:
    from reelseek.cli._console import new_table

    table = new_table()
    for header in ("environment", "python", "torch", "torchcodec", "av", "verdict"):
        table.add_column(header)
    for one in found:
        facts = one.facts
        versions = [facts.versions.get(name, "-") for name in ("torch", "torchcodec", "av")]
        style = "green" if one.is_well else "bold red"
        cells = [facts.prefix, facts.python_version or "-", *versions]
        table.add_row(*map(_text, cells), _text(one.diagnosis.cause.value, style))
    return table


def _head(one: Examination, slurm: SlurmCheck | None, *, named: bool) -> list[Text]:
    """The verdict, the command, and what else is to be known."""
    from reelseek.native._remedy import RemedyKind

    name = f"{one.facts.prefix}: " if named else ""
    diagnosis = _verdict(f"{name}{one.diagnosis.verdict}", one.remedy.command, well=one.is_well)
    job = _verdict(slurm.verdict, slurm.command, well=slurm.is_well) if slurm else []
    remarks = [_text(text) for text in _remarks(one)]
    is_mended_by_a_path = one.remedy.kind in (RemedyKind.NOTHING_NEEDED, RemedyKind.SEARCH_PATH)
    if slurm and not slurm.is_well and is_mended_by_a_path:
        # What the job lost on the way is the cause, and the diagnosis what comes of it.
        return [*job, *diagnosis[:1], *remarks]
    return [*diagnosis, *job[:1], *remarks]


def _verdict(verdict: str, command: str, *, well: bool) -> list[Text]:
    lines = [_text(verdict, "bold green" if well else "bold red")]
    return [*lines, _text(f"run: {command}", "bold")] if command else lines


def _text(text: str, style: str = "") -> Text:
    """One line of output: names of files and versions may hold anything."""
    from rich.text import Text

    from reelseek.native._printable import printable

    return Text(printable(text), style=style)


def _remarks(one: Examination) -> list[str]:
    from reelseek.native._activate import SWITCH, is_switched_off
    from reelseek.native._facts import PATH_WAS_CHANGED
    from reelseek.native._judge import Cause

    facts, proof = one.facts, one.proof
    remarks = []
    if one.remedy.folders:
        other = "" if facts.is_this_process else f"--python {shlex.quote(facts.python)} "
        remarks.append(f"or: reelseek run {other}-- python your_script.py")
        if facts.is_this_process and one.diagnosis.cause in (Cause.NO_FFMPEG, Cause.OTHER_FFMPEG):
            remarks.append(
                f"reelseek.open_video would load this FFmpeg itself, but {SWITCH}=0 turns that off"
                if is_switched_off()
                else "reelseek.open_video needs neither: it loads this FFmpeg itself, as does "
                "reelseek.native.activate() before `import torchcodec`"
            )
    if one.remedy.note:
        remarks.append(one.remedy.note)
    if proof is not None and proof.decodes:
        under = " under it" if one.remedy.folders else ""
        remarks.append(f"proved{under}: a frame was decoded in {proof.seconds:.1f} s")
    remarks += [f"also: {text}" for text in one.diagnosis.also]
    if facts.path_was_changed_inside:
        remarks.append(PATH_WAS_CHANGED)
    if not facts.starts and facts.python_version:
        remarks.append(f"{facts.python} does not start; read from its folders")
    if one.diagnosis.noise:
        remarks.append("torchcodec's message also lists, and it doesn't matter here:")
        remarks += [f"  {text}" for text in one.diagnosis.noise]
    return remarks


def _tree(one: Examination) -> list[RenderableType]:
    from reelseek.native._tree import branches

    attempt = one.diagnosis.attempt
    if attempt is None:
        return []
    found = branches(attempt)
    if sys.stdout.isatty():
        return [_rich_tree(found)]
    return [_text("  " * branch.depth + _label(branch)) for branch in found]


def _rich_tree(found: list[Branch]) -> RenderableType:
    from rich.tree import Tree

    root = Tree("", hide_root=True)
    stack = [root]
    for branch in found:
        style = "bold red" if branch.faults else ""
        del stack[branch.depth + 1 :]
        stack.append(stack[-1].add(_text(_label(branch), style)))
    return root


def _label(branch: Branch) -> str:
    if branch.faults:
        return f"{branch.name}  <- {'; '.join(branch.faults)}"
    return f"{branch.name}  {branch.where}".rstrip()


def _decoders(one: Examination) -> list[Text]:
    lines = []
    for decoder in one.decoders:
        av1 = {True: "AV1", False: "no AV1 decoder", None: "AV1 not known"}[decoder.decodes_av1]
        ffmpeg = f"FFmpeg {decoder.ffmpeg_major}" if decoder.ffmpeg_major else "no FFmpeg"
        said = f"loads, {ffmpeg}, {av1}" if decoder.loads else f"does not load: {decoder.fault}"
        lines.append(_text(f"{decoder.name} {decoder.version}: {said}"))
    return [_text(""), *lines] if lines else []
