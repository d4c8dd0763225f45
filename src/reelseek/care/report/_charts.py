"""The page's charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from reelseek.care.report._svg import (
    ACCENT,
    DROPPABLE,
    EXISTING,
    FAINT,
    HIDDEN,
    INK,
    INTER,
    KEY,
    SECOND,
    inline_svg,
    new_figure,
)

WIDTH, HEIGHT = 340, 190
"""Of a histogram, in pixels: two stand side by side on a laptop, one fits a telephone. The page's
style sheet knows these widths too."""
STRIP_WIDTH, STRIP_HEIGHT = 460, 150
SMALL_WIDTH, SMALL_HEIGHT = 150, 40
EDGE = 0.007
"""Lines of a small picture keep so far from its border, as a part of its width."""
BINS = 30
LEAST_WHOLE_BINS, MOST_WHOLE_BINS = 6, 40
"""Whole numbers below the second get a bar each; the axis reaches to the first at least."""

KIND_COLORS = {
    "key frame": KEY,
    "inter frame": INTER,
    "droppable frame": DROPPABLE,
    "hidden frame": HIDDEN,
    "shows a hidden frame": EXISTING,
}


def histogram(
    name: str,
    alt: str,
    values: NDArray[Any],
    label: str,
    *,
    counted: str,
    mark: tuple[float, str] | None = None,
) -> Markup:
    """How often values occur.

    Args:
        name: Of this chart only; see ``inline_svg``.
        alt: What it shows, in words.
        values: At least one.
        label: What the values are, with their unit.
        counted: What the bars count.
        mark: A value to draw a line at, and what it is.
    """
    figure = new_figure(WIDTH, HEIGHT)
    axis = figure.subplots()
    edges = _edges(values, mark[0] if mark else None)
    counts, _edges_again = np.histogram(np.minimum(values, edges[-1]), edges)
    axis.add_patch(_bars(edges[:-1], np.diff(edges), counts, ACCENT))
    if mark:
        axis.axvline(mark[0], color=SECOND, lw=2)
        axis.set_title(mark[1], color=SECOND, fontsize=9, loc="left")
    axis.set_xlim(edges[0], edges[-1])
    axis.set_ylim(0, max(1, counts.max()) * 1.08)
    axis.set_xlabel(label)
    axis.set_ylabel(counted, fontsize=9)
    _use_few_ticks(axis, are_whole=values.dtype.kind == "i")
    return inline_svg(figure, name, alt)


def unit_strip(name: str, alt: str, units: Sequence[tuple[str, int]]) -> Markup:
    """Bytes of coded frames, one after the other, in the colour of their kind."""
    figure = new_figure(STRIP_WIDTH, STRIP_HEIGHT)
    axis = figure.subplots()
    places = np.arange(len(units))
    sizes = np.array([size for _kind, size in units], np.float64) / 1000
    for kind, color in KIND_COLORS.items():
        chosen = np.array([one == kind for one, _size in units], bool)
        if chosen.any():
            width = np.full(chosen.sum(), 0.8)
            axis.add_patch(_bars(places[chosen] + 0.1, width, sizes[chosen], color))
    axis.set_xlim(0, max(24, len(units)))
    axis.set_ylim(0, sizes.max() * 1.05 or 1)
    axis.set_xlabel("coded frames in decoding order")
    axis.set_ylabel("kB")
    return inline_svg(figure, name, alt)


def distribution(name: str, alt: str, counts: NDArray[np.int64], marks: Sequence[float]) -> Markup:
    """The small picture of one element of a vector: bars without axes, and lines at quantiles.

    Args:
        name: Of this chart only.
        alt: What it shows, in words.
        counts: Of equal bins, from the minimum to the maximum.
        marks: Places of the quantiles, from 0 (the minimum) to 1 (the maximum).
    """
    from matplotlib.lines import Line2D

    figure = new_figure(SMALL_WIDTH, SMALL_HEIGHT, lays_out=False)
    places = np.arange(len(counts)) / len(counts)
    heights = np.sqrt(counts / counts.max())
    figure.add_artist(_bars(places, np.full(len(counts), 1 / len(counts)), heights, ACCENT))
    for mark, is_median in zip(marks, (False, True, False), strict=True):
        color, width = (INK, 2.0) if is_median else (FAINT, 1.0)
        place = min(max(mark, EDGE), 1 - EDGE)
        figure.add_artist(Line2D((place, place), (0, 1), color=color, lw=width))
    return inline_svg(figure, name, alt)


def _edges(values: NDArray[Any], mark: float | None) -> NDArray[Any]:
    """The borders of a histogram's bars, which hold the mark too."""
    high = float(values.max())
    if values.dtype.kind != "i":
        high = float(np.quantile(values, 0.95)) * 1.2 if len(values) > 20 else high
        return np.linspace(0, max(high, mark or 0, 1e-9), BINS + 1)
    high = max(high, mark or 0, LEAST_WHOLE_BINS)
    step = int(np.ceil((high + 1) / BINS)) if high >= MOST_WHOLE_BINS else 1
    return np.arange(0, high + step + 1, step) - 0.5


def _bars(left: NDArray[Any], width: NDArray[Any], height: NDArray[Any], color: str) -> Any:
    """Bars as one path: a page holds thousands of them."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    is_drawn = height > 0
    left, right, height = left[is_drawn], (left + width)[is_drawn], height[is_drawn]
    zero = np.zeros(len(height))
    corners = [(left, zero), (left, height), (right, height), (right, zero), (left, zero)]
    vertices = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1).reshape(-1, 2)
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(height)
    return PathPatch(Path(vertices, codes), facecolor=color, lw=0)


def _use_few_ticks(axis: Any, *, are_whole: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=are_whole))
