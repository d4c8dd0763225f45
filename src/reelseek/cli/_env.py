"""``reelseek env``: what to put into a shell or a batch script so that torchcodec loads."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer


def env(
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="sh, slurm, conda, docker or json.")
    ] = "sh",
    python: Annotated[
        str,
        typer.Option(
            "--python", metavar="PATH", help="The environment's Python, or its folder.  [this one]"
        ),
    ] = "",
) -> None:
    """Print the lines that let torchcodec load; they are tried first.

    sh is for `eval "$(reelseek env)"`; slurm for an sbatch script; conda writes activate.d and
    deactivate.d scripts into the environment; docker is an ENV instruction.

    Exit status 0 where the lines were proven or nothing has to be set, else 1.
    """
    from reelseek.launch import FORMATS, proven_export

    if form not in FORMATS:
        raise typer.BadParameter(f"{form!r}: choose from: {', '.join(FORMATS)}")
    export = proven_export(form, python)
    if export.proof is not None:
        print(f"proved: a frame was decoded in {export.proof.seconds:.1f} s", file=sys.stderr)
    # Quoted paths may hold anything, so nothing wraps, trims or decodes these lines.
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode(export.text))
