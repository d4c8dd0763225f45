"""The ``reelseek`` command."""

from reelseek.cli._main import app, main

__all__ = ["app", "main"]
