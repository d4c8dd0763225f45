"""Bar charts of measurements, as PNG files."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reelseek.bench._figure import new_figure
from reelseek.bench._floor import NAME as FLOOR
from reelseek.bench._report import note
from reelseek.bench._timing import Timing, median, percentile

LOG_FROM_RATIO = 25
"""The scale is logarithmic where the slowest takes this many times as long as the fastest."""
TIMED, FASTEST, REFUSED, UNREACHED = "#4c72b0", "#2a9d5c", "#a05a00", "#b5b5b5"


def seek_chart(timings: Sequence[Timing], title: str, measured: dict[str, Any], path: Path) -> None:
    """Draw a seek benchmark: medians as bars, the 95th percentile as a whisker.

    Args:
        timings: In the order in which they are drawn, from the top.
        title: What was measured.
        measured: The JSON document, for the line on where it was measured.
        path: The PNG file.

    Raises:
        DependencyError: matplotlib isn't installed.
    """
    settings = measured["settings"]
    frames, cameras = len(settings["offsets"]), len(settings["cameras"])
    panels = [
        (f"{frames} frame{'s' * (frames > 1)} of one camera, file open", "seek_ms"),
        (f"all {cameras} cameras, files open", "sample_ms"),
        ("first touch of a file, index known", "cold_ms"),
    ]
    if cameras == 1:
        del panels[1]
    figure = new_figure(5.2 * len(panels), 1.9 + 0.5 * len(timings))
    figure.suptitle(textwrap.fill(title, 50 * len(panels)), fontsize=11, fontweight="bold")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for number, (axis, (label, name)) in enumerate(zip(axes, panels, strict=True)):
        _draw(axis, timings, label, [getattr(timing, name) for timing in timings], number == 0)
    environment = measured["environment"]
    figure.supxlabel(
        "milliseconds: the median, with a whisker to the 95th percentile; shorter is better\n"
        f"{environment['cpu']}, one thread, reelseek {environment['reelseek']}, "
        f"{settings['cache_state'].partition(':')[0]}",
        fontsize=9,
    )
    figure.savefig(path, dpi=130)


def _draw(
    axis: Any, timings: Sequence[Timing], label: str, values: Sequence[list[float]], says_why: bool
) -> None:
    medians = [median(times) for times in values]
    known = [value for value in medians if value is not None]
    highest = max((percentile(times, 95) or 0 for times in values), default=0) or 1
    is_log = bool(known) and max(known) / min(known) > LOG_FROM_RATIO
    fastest = min(
        (value for timing, value in zip(timings, medians, strict=True)
         if value is not None and timing.name != FLOOR), default=None
    )  # fmt: skip
    for row, (timing, times, middle) in enumerate(zip(timings, values, medians, strict=True)):
        if middle is None:
            if says_why and note(timing):
                axis.text(0.01, row, textwrap.fill(note(timing), 52), va="center", fontsize=8,
                          color=REFUSED, transform=axis.get_yaxis_transform(), zorder=4,
                          backgroundcolor="white")  # fmt: skip
            continue
        above = max(0.0, (percentile(times, 95) or middle) - middle)
        if timing.name == FLOOR:
            axis.barh(row, middle, height=0.62, color=UNREACHED, hatch="///", edgecolor="white")
            axis.axvline(middle, color="#555555", lw=1, ls=(0, (4, 3)), zorder=3)
        else:
            axis.barh(row, middle, height=0.62, color=FASTEST if middle == fastest else TIMED)
        axis.errorbar(middle, row, xerr=[[0], [above]], color="#333333", capsize=3, lw=1)
        value = f"{middle:.2f}  (p95 {middle + above:.2f})"
        axis.annotate(value, (middle + above, row), xytext=(5, 0),
                      textcoords="offset points", va="center", fontsize=9)  # fmt: skip
    axis.set_title(label + ", logarithmic" * is_log, fontsize=10)
    axis.set_yticks(range(len(timings)), [_label(timing) for timing in timings])
    axis.set_ylim(len(timings) - 0.4, -0.6)
    if is_log:
        axis.set_xscale("log")
        axis.set_xlim(min(known) / 3, highest * 30)
        axis.xaxis.set_major_formatter(lambda value, _position: f"{value:g}")
    else:
        axis.set_xlim(0, highest * 1.6)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="#dddddd", lw=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def _label(timing: Timing) -> str:
    below = "only codec and conversion" if timing.name == FLOOR else timing.check.version
    return f"{timing.name}\n{below}".strip()
