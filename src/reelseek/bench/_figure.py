"""An empty picture to draw a chart on."""

from __future__ import annotations

from typing import Any

from reelseek.errors import DependencyError


def new_figure(width: float, height: float) -> Any:
    """A matplotlib figure that lays out its parts by itself, without pyplot's global state.

    Args:
        width: In inches.
        height: In inches.

    Raises:
        DependencyError: matplotlib isn't installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise DependencyError(
            "the chart needs matplotlib, which isn't installed",
            remedy="Run `pip install 'reelseek[bench]'`",
        ) from exc
    return Figure(figsize=(width, height), layout="constrained")
