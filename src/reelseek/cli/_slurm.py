"""``reelseek slurm``: the batch script of a training job, and what is wrong in one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.text import Text

    from reelseek.launch import ScriptCheck

SCHEMA = "reelseek.slurm-check/1"
app = typer.Typer(
    no_args_is_help=True, help="Make the SLURM script of a training job, or check one."
)


@app.command(context_settings={"allow_interspersed_args": False})
def train(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="What to start on the nodes.")
    ],
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of each node.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes.")] = 1,
    env: Annotated[
        str,
        typer.Option(metavar="PREFIX", help="The environment's folder, on each node.  [this one]"),
    ] = "",
    tasks: Annotated[
        str, typer.Option(metavar="node|gpu", help="Start the command once a node, or once a GPU.")
    ] = "node",
    dataset: Annotated[
        str, typer.Option(metavar="DATASET", help="Each node decodes a frame of it first.")
    ] = "",
    out: Annotated[
        str, typer.Option("-o", "--out", metavar="FILE", help="Write the script.  [stdout]")
    ] = "",
    is_submitted: Annotated[
        bool, typer.Option("--submit", help="Submit it, and print the job's id.")
    ] = False,
    name: Annotated[str, typer.Option(help="The job's name.  [the script's]")] = "",
    cpus: Annotated[int, typer.Option(min=0, help="CPUs of each node.  [the cluster's]")] = 0,
    memory: Annotated[str, typer.Option("--mem", help="Of each node, such as 200G.")] = "",
    time: Annotated[str, typer.Option(help="Such as 1-00:00:00.")] = "",
    partition: Annotated[str, typer.Option(help="Where to queue.")] = "",
    account: Annotated[str, typer.Option(help="Whom to charge.")] = "",
    gpu_type: Annotated[str, typer.Option(help="Such as h100.")] = "",
    uses_gres: Annotated[
        bool, typer.Option("--gres", help="Ask with --gres=gpu:N, not --gpus-per-node.")
    ] = False,
    logs: Annotated[str, typer.Option(metavar="FOLDER", help="For logs.")] = ".",
    requeues: Annotated[int, typer.Option(min=0, help="How often it may start again.")] = 3,
    signal_seconds: Annotated[
        int, typer.Option("--signal", min=1, help="Seconds before its time is up to save in.")
    ] = 120,
    preflight_seconds: Annotated[
        int, typer.Option("--preflight", min=0, help="Seconds for all nodes' checks; 0: none.")
    ] = 300,
    is_with_torchcodec: Annotated[
        bool, typer.Option("--torchcodec/--no-torchcodec", help="Make it load, and check that.")
    ] = True,
    more: Annotated[
        list[str] | None,
        typer.Option("--sbatch", metavar="OPTION", help="Another option of sbatch; repeatable."),
    ] = None,
) -> None:
    """Make the sbatch script that starts a command on SLURM's nodes.

    It exports what torchcodec needs, tried first; checks each node before the program starts;
    tells torchrun where its nodes meet; and lets the program save before its time is up, to be
    started again.

    Exit status 0 where the script was made (and submitted), else 1.
    """
    from reelseek.launch import TrainJob, default_name, submit, train_script, write_script

    if tasks not in ("node", "gpu"):
        raise typer.BadParameter(f"{tasks!r}: choose from: node, gpu", param_hint="--tasks")
    job = TrainJob(
        tuple(command), os.path.abspath(env or sys.prefix), name or default_name(tuple(command)),
        gpus=gpus, nodes=nodes, tasks="gpu" if tasks == "gpu" else "node", cpus=cpus,
        memory=memory, time=time, partition=partition, account=account, gpu_type=gpu_type,
        uses_gres=uses_gres, logs=logs, dataset=os.path.abspath(dataset) if dataset else "",
        is_with_torchcodec=is_with_torchcodec, requeues=requeues, signal_seconds=signal_seconds,
        preflight_seconds=preflight_seconds, more=tuple(more or ()),
    )  # fmt: skip
    script = train_script(job)
    if out:
        write_script(script, logs, out)
    if is_submitted:
        print(submit(script, logs, out))
    elif not out:
        # Quoted words may hold anything, so nothing wraps, trims or decodes these lines.
        sys.stdout.flush()
        sys.stdout.buffer.write(os.fsencode(script))


@app.command()
def check(
    scripts: Annotated[list[str], typer.Argument(metavar="SCRIPT...", help="sbatch scripts.")],
    as_json: Annotated[
        bool, typer.Option("--json", help=f"Print one JSON document ({SCHEMA}).")
    ] = False,
) -> None:
    """Say what is wrong in batch scripts, with the corrected lines; they are read and never run.

    Exit status 0 where there are only notes, else 1.
    """
    from reelseek.cli._console import show_json, show_whole
    from reelseek.launch import check_script

    checks = [check_script(script) for script in scripts]
    if as_json:
        show_json({"schema": SCHEMA, "scripts": [_document(one) for one in checks]})
    else:
        for one in checks:
            show_whole(*_lines(one))
    if not all(one.is_well for one in checks):
        raise typer.Exit(1)


def _document(check: ScriptCheck) -> dict[str, Any]:
    problems = [
        {
            "line": problem.line, "code": problem.code, "severity": problem.severity.value,
            "what": problem.what, "mend": problem.mend,
        }
        for problem in check.problems
    ]  # fmt: skip
    return {"path": check.path, "is_well": check.is_well, "problems": problems}


def _lines(check: ScriptCheck) -> Iterator[Text]:
    from rich.text import Text

    from reelseek.native._printable import printable

    styles = {"error": "bold red", "warning": "yellow", "note": "dim"}
    for problem in check.problems:
        severity = problem.severity.value
        where = f"{check.path}:{problem.line}" if problem.line else check.path
        line = f"{where}: {severity}: {problem.what} [{problem.code}]"
        yield Text(printable(line), style=styles[severity])
        yield Text(f"    {printable(problem.mend)}")
    if check.is_well:
        yield Text(printable(f"{check.path}: nothing is wrong"), style="bold green")


@app.command(hidden=True)
def preflight(
    dataset: Annotated[str, typer.Option(help="Decode a frame of each of its cameras.")] = "",
    gpus: Annotated[int, typer.Option(min=0, help="How many torch has to see.")] = 0,
    is_with_torchcodec: Annotated[
        bool, typer.Option("--torchcodec/--no-torchcodec", help="Whether it has to load.")
    ] = True,
) -> None:
    """Say in one line whether this node can train; what a job's script runs on each node.

    Exit status 0 where it can, else 1.
    """
    from reelseek.launch import preflight as look

    is_well, line = look(dataset, gpus, torchcodec=is_with_torchcodec)
    print(line)
    if not is_well:
        raise typer.Exit(1)
