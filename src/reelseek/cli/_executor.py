"""Where a subcommand's work is done: the options that all of them share."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.text import Text

    from reelseek.care.jobs import Executor, Summary

PANEL = "On a cluster"
OWN = ("array", "cpus-per-task", "error", "job-name", "output", "parsable", "wrap")
"""Options of sbatch by which the tasks are told apart, found and followed."""


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, show_default=False, **more)


class Name(str, Enum):
    """The executors."""

    LOCAL = "local"
    SLURM = "slurm"
    RAY = "ray"


@dataclass(frozen=True, slots=True)
class Where:
    """What was said of where to work."""

    executor: Annotated[
        Name, _option("--executor", help="Where to work; local is processes of this machine.")
    ] = Name.LOCAL
    jobs: Annotated[
        int, _option("--jobs", min=0, help="local: processes; 0 takes one for each CPU.")
    ] = 0
    tasks: Annotated[
        int,
        _option("--tasks", min=0, rich_help_panel=PANEL, help="slurm, ray: tasks at most (32)."),
    ] = 0
    cpus: Annotated[
        int,
        _option(
            "--cpus", min=1, rich_help_panel=PANEL, help="slurm, ray: CPUs of each task, all used."
        ),
    ] = 1
    partition: Annotated[
        str, _option("--partition", rich_help_panel=PANEL, help="slurm: the partition.")
    ] = ""
    time: Annotated[
        str,
        _option("--time", rich_help_panel=PANEL, help="slurm: a task's time limit, as 2:00:00."),
    ] = ""
    account: Annotated[
        str, _option("--account", rich_help_panel=PANEL, help="slurm: the account.")
    ] = ""
    sbatch: Annotated[
        list[str],
        _option(
            "--sbatch",
            rich_help_panel=PANEL,
            metavar="NAME[=VALUE]",
            help="slurm: another option of sbatch, as mem=8G or exclusive; can be repeated.",
        ),
    ] = dataclasses.field(default_factory=list)
    ray_address: Annotated[
        str,
        _option(
            "--ray-address",
            rich_help_panel=PANEL,
            metavar="HOST:PORT",
            help="ray: a running cluster (RAY_ADDRESS); without, one is started here.",
        ),
    ] = ""

    def make(self) -> Executor:
        """The executor; what it says goes to stderr."""
        from reelseek.care.jobs import executor_from_options

        return executor_from_options(
            self.executor.value,
            jobs=self.jobs,
            cpus=self.cpus,
            tasks=self.tasks,
            partition=self.partition,
            time=self.time,
            account=self.account,
            parameters=_parameters(self.sbatch),
            setup=_lines_for_torchcodec,
            ray_address=self.ray_address,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )


def takes_executor(command: Callable[..., None]) -> Callable[..., None]:
    """Give a subcommand the options of ``Where``, which it gets as one argument, ``where``."""
    own = [
        parameter
        for name, parameter in inspect.signature(command, eval_str=True).parameters.items()
        if name != "where"
    ]
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default_of(field),
            annotation=_ANNOTATIONS[field.name],
        )
        for field in dataclasses.fields(Where)
    ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        where = Where(**{parameter.name: values.pop(parameter.name) for parameter in shared})
        command(where=where, **values)

    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    del run.__wrapped__
    run.__signature__ = inspect.Signature([*parameters, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {
        parameter.name: parameter.annotation for parameter in [*parameters, *shared]
    }
    return run


def summary_line(summary: Summary) -> Text:
    """A job's summary for people."""
    from rich.text import Text

    from reelseek._sizes import size_text

    done = summary.num_items - summary.num_from_journal
    text = (
        f"{done} items done in {summary.seconds:.1f} s, "
        f"{size_text(int(summary.bytes_per_second))} a second; {summary.num_from_journal} were "
        f"done before, {summary.num_retried} tried again, {summary.num_failed} failed"
    )
    return Text(text + (f"; logs in {summary.logs}" if summary.logs else ""))


_ANNOTATIONS = inspect.get_annotations(Where, eval_str=True)


def _default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _parameters(given: list[str]) -> dict[str, str | bool]:
    """Options of sbatch by name, True for one without a value; a usage error for those of ours."""
    found: dict[str, str | bool] = {}
    for text in given:
        name, _, value = text.lstrip("-").partition("=")
        if not name:
            raise typer.BadParameter(f"--sbatch {text!r}: give NAME=VALUE such as mem=8G, or NAME")
        if name in OWN:
            raise typer.BadParameter(f"--sbatch {text!r}: reelseek sets {name} itself")
        found[name] = value or True
    return found


def _lines_for_torchcodec() -> tuple[str, ...]:
    """What a batch script exports where torchcodec needs it; nothing where no export helps."""
    from reelseek.errors import BackendUnavailableError
    from reelseek.launch import proven_export

    try:
        return tuple(proven_export("slurm").text.splitlines())
    except BackendUnavailableError:
        return ()
