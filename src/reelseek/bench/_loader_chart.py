"""A chart of data loaders: samples a second, and a worker's memory."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reelseek.bench._figure import new_figure
from reelseek.bench._loader_ways import OURS, OURS_BY_GOP

if TYPE_CHECKING:
    from reelseek.bench.loader import LoaderBench, LoaderTiming

OWN, OTHER, REFUSED = "#2a9d5c", "#4c72b0", "#a05a00"
LOG_FROM_RATIO = 25
"""The scale is logarithmic where the fastest has this many times the rate of the slowest."""


def loader_chart(measured: LoaderBench, document: dict[str, Any], path: Path) -> None:
    """Draw a measurement of data loaders.

    Args:
        measured: The measurement.
        document: Its JSON document, for the line on where it was measured.
        path: The PNG file.

    Raises:
        DependencyError: matplotlib isn't installed.
    """
    from reelseek.bench.loader import headline

    timings = measured.timings
    figure = new_figure(12, 1.9 + 0.55 * len(timings))
    figure.suptitle(textwrap.fill(headline(measured), 100), fontsize=11, fontweight="bold")
    speed, memory = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    _draw_rates(speed, timings)
    _draw_memory(memory, timings)
    environment = document["environment"]
    figure.supxlabel(
        "samples a second: the median of rounds, with a whisker from the lowest to the highest; "
        f"longer is better\n{environment['cpu']}, reelseek {environment['reelseek']}, page cache "
        "warm",
        fontsize=9,
    )
    figure.savefig(path, dpi=130)


def _draw_rates(axis: Any, timings: tuple[LoaderTiming, ...]) -> None:
    rates = [timing.rate for timing in timings if timing.rate]
    highest = max((max(timing.samples_per_second, default=0) for timing in timings), default=0)
    is_log = bool(rates) and max(rates) / min(rates) > LOG_FROM_RATIO
    for row, timing in enumerate(timings):
        rate = timing.rate
        if rate is None:
            axis.text(0.01, row, textwrap.shorten(timing.why_not, 90), va="center", fontsize=8,
                      color=REFUSED, transform=axis.get_yaxis_transform())  # fmt: skip
            continue
        low, high = min(rate, *timing.samples_per_second), max(rate, *timing.samples_per_second)
        axis.barh(row, rate, height=0.6, color=_colour(timing))
        axis.errorbar(rate, row, xerr=[[rate - low], [high - rate]], color="#333333", capsize=3)
        axis.annotate(f"{rate:.0f}", (high, row), xytext=(6, 0), textcoords="offset points",
                      va="center", fontsize=9)  # fmt: skip
    axis.set_title("samples a second" + ", logarithmic" * is_log, fontsize=10)
    axis.set_yticks(range(len(timings)), [timing.name for timing in timings])
    axis.set_ylim(len(timings) - 0.4, -0.6)
    if is_log:
        axis.set_xscale("log")
        axis.set_xlim(min(rates) / 3, highest * 4)
        axis.xaxis.set_major_formatter(lambda value, _position: f"{value:g}")
    elif rates:
        axis.set_xlim(0, highest * 1.2)
    _plain(axis)


def _draw_memory(axis: Any, timings: tuple[LoaderTiming, ...]) -> None:
    for row, timing in enumerate(timings):
        if timing.worker_megabytes:
            size = timing.worker_megabytes[-1]
            axis.barh(row, size, height=0.6, color=_colour(timing))
            axis.annotate(f"{size:.0f}", (size, row), xytext=(6, 0), textcoords="offset points",
                          va="center", fontsize=9)  # fmt: skip
    axis.set_title("memory of a worker at the end, MB", fontsize=10)
    axis.margins(x=0.2)
    _plain(axis)


def _colour(timing: LoaderTiming) -> str:
    return OWN if timing.name in (OURS, OURS_BY_GOP) else OTHER


def _plain(axis: Any) -> None:
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="#dddddd", lw=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
