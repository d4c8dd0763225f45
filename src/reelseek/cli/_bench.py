"""``reelseek bench``: measurements on your own data."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, help="Measure decoders on your own data.")


@app.callback()
def _group() -> None:
    """Measure decoders on your own data."""
