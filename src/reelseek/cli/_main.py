"""The command line's frame: subcommands, global options, and how errors are shown."""

from __future__ import annotations

import errno
import os
import select
import sys
from typing import IO, Annotated, Any

import typer
from typer.core import TyperGroup

from reelseek.cli import (
    _bench,
    _demo,
    _doctor,
    _env,
    _explain,
    _index,
    _info,
    _probe,
    _reencode,
    _report,
    _run,
    _slurm,
    _verify,
)
from reelseek.errors import ReelseekError

DEBUG = "REELSEEK_DEBUG"
"""Environment variable; ``1`` shows the traceback of an error."""

HELP = """Read exactly the frames that a robot-learning sample needs.

Results go to stdout, progress to stderr.

Exit status: 0 all is well; 1 a check found something wrong, or the data can't be read;
2 the command was not understood.
"""


class _Commands(TyperGroup):
    """The subcommands. Typer would end in silence whatever pipe broke, also one to a worker."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as exc:
            if _is_broken(sys.stdout) or _is_broken(sys.stderr):
                raise
            raise ReelseekError(
                "a process that this command works with has ended",
                remedy=f"Run it again; {DEBUG}=1 shows where it was",
                detail=exc.strerror or str(exc),
            ) from exc


app = typer.Typer(
    name="reelseek",
    cls=_Commands,
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# One line for each subcommand, one file for each in this folder.
app.command("demo")(_demo.demo)
app.command("doctor")(_doctor.doctor)
app.command("env")(_env.env)
app.command("explain")(_explain.explain)
app.command("index")(_index.index)
app.command("info")(_info.info)
app.command("probe")(_probe.probe)
app.command("reencode")(_reencode.reencode)
app.command("report")(_report.report)
app.command("run", context_settings={"allow_interspersed_args": False})(_run.run)
app.command("verify")(_verify.verify)
app.add_typer(_bench.app, name="bench")
app.add_typer(_slurm.app, name="slurm")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        import reelseek

        print(f"reelseek {reelseek.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help=f"Show the traceback of an error ({DEBUG}=1 too).")
    ] = False,
) -> None:
    """Options that stand before the subcommand."""
    if debug:
        os.environ[DEBUG] = "1"


def _is_broken(stream: IO[str]) -> bool:
    """Whether nobody reads a pipe any more."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)  # that the other end is closed is told always
        return bool(poll.poll(0))
    except (OSError, ValueError):  # no file, as in tests; or closed
        return False


def main() -> None:
    """Run the command, and end the process with its exit status."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except ReelseekError as exc:
        if os.environ.get(DEBUG, "") not in ("", "0"):
            raise
        from reelseek.native._printable import printable

        print(f"error: {printable(' '.join(str(exc).split()))}", file=sys.stderr)
        sys.exit(1)
    except OSError as exc:
        if exc.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EPIPE):
            raise
        if exc.errno != errno.EPIPE:
            print(f"error: the output can't be written: {exc}", file=sys.stderr)
        # The reader of a pipe (`| head`) has what it wanted; Python's last flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
