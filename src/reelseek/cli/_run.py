"""``reelseek run``: start a command so that torchcodec loads in it."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="What to start.")],
    python: Annotated[
        str,
        typer.Option(
            "--python",
            metavar="PATH",
            help="The environment's Python, or its folder.  [the command's, else this one]",
        ),
    ] = "",
) -> None:
    """Start a command under the search path with which torchcodec loads.

    Where none is needed the command simply runs. One line on stderr says what was exported.

    The exit status is the command's; 127 where there is no such command, 1 where no search path
    would make torchcodec load.
    """
    from reelseek.launch import run_command

    run_command(command, python)
