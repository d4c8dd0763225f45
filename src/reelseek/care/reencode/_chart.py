"""A picture of what encodings cost: size against the time of a random read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reelseek.bench._figure import new_figure
from reelseek.care.reencode._plan import Measured

COLOURS = {"av1": "#4c72b0", "h264": "#c44e52", "hevc": "#8172b3", "": "#222222"}
NAMES = {"av1": "AV1", "h264": "H.264", "hevc": "HEVC", "": "as it is now"}

LABEL_POINTS = 8.5
DOT = 6
"""Half of a point's width, in pixels."""


def plan_chart(measured: Sequence[Measured], title: str, footer: str, path: Path) -> None:
    """Draw measured encodings: down and to the left is better.

    Args:
        measured: The source and encodings of its frames.
        title: What was measured.
        footer: Where and how.
        path: The PNG file.

    Raises:
        DependencyError: matplotlib isn't installed.
    """
    figure = new_figure(8.6, 5.6)
    axis = figure.subplots()
    figure.suptitle(title, fontsize=11, fontweight="bold", parse_math=False)
    for codec in dict.fromkeys(_codec(one) for one in measured):
        points = [one for one in measured if _codec(one) == codec]
        _draw(axis, points, codec)
    _scale(axis, "x", [one.bytes_per_frame for one in measured])
    _scale(axis, "y", [one.seek_ms.median for one in measured])
    axis.set_xlabel("bytes a frame: left is smaller")
    axis.set_ylabel("two frames at a random place, ms: down is faster")
    axis.grid(which="major", color="#dddddd", lw=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9)
    figure.supxlabel(footer, fontsize=8.5)
    figure.draw_without_rendering()  # places the axes, so that labels can be placed in them
    _place_labels(axis, measured)
    figure.savefig(path, dpi=130)


def _draw(axis: Any, points: Sequence[Measured], codec: str) -> None:
    """One codec's points, with the middle half of the times as whiskers."""
    ordered = sorted(points, key=lambda one: one.bytes_per_frame)
    sizes = [one.bytes_per_frame for one in ordered]
    times = [one.seek_ms.median for one in ordered]
    below = [one.seek_ms.median - one.seek_ms.lower for one in ordered]
    above = [one.seek_ms.upper - one.seek_ms.median for one in ordered]
    axis.errorbar(
        sizes, times, yerr=[below, above], color=COLOURS[codec], label=NAMES[codec], lw=1,
        marker="o" if codec else "*", markersize=7 if codec else 14, capsize=3, alpha=0.9,
        ls=(0, (1, 3)),
    )  # fmt: skip


def _scale(axis: Any, name: str, values: Sequence[float]) -> None:
    """A logarithmic axis with room for labels, marked in plain numbers."""
    getattr(axis, f"set_{name}scale")("log")
    room = 1.9 if name == "x" else 1.5
    getattr(axis, f"set_{name}lim")(min(values) / 1.5, max(values) * room)
    ruler = getattr(axis, f"{name}axis")
    from matplotlib.ticker import LogLocator, NullFormatter

    ruler.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ruler.set_minor_formatter(NullFormatter())
    ruler.set_major_formatter(lambda value, _position: f"{value:g}")


def _place_labels(axis: Any, measured: Sequence[Measured]) -> None:
    """A label beside each point, where it meets no other point and no label before it."""
    at = axis.transData.transform([(one.bytes_per_frame, one.seek_ms.median) for one in measured])
    taken = [Box(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in at]
    scale = axis.figure.dpi / 72
    for one, (x, y) in zip(measured, at, strict=True):
        text = _label(one)
        width, height = len(text) * LABEL_POINTS * 0.6 * scale, LABEL_POINTS * 1.2 * scale
        boxes = [
            Box(x + right, y + up, x + right + width, y + up + height)
            for right in (8 * scale, -8 * scale - width)
            for up in (4 * scale, -4 * scale - height, 18 * scale, -18 * scale - height)
        ]
        box = min(boxes, key=lambda box: sum(box.meets(other) for other in taken))
        taken.append(box)
        axis.annotate(
            text, (one.bytes_per_frame, one.seek_ms.median), color=COLOURS[_codec(one)],
            xytext=((box.left - x) / scale, (box.bottom - y) / scale), fontsize=LABEL_POINTS,
            textcoords="offset points",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
        )  # fmt: skip


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        """True where the two share a place."""
        return (
            self.left < other.right and other.left < self.right
            and self.bottom < other.top and other.bottom < self.top
        )  # fmt: skip


def _codec(one: Measured) -> str:
    return one.encoding.codec if one.encoding else ""


def _label(one: Measured) -> str:
    if one.encoding is None:
        return "as it is"
    gop = "default" if one.encoding.gop is None else f"g={one.encoding.gop}"
    return f"{gop}, {one.psnr_db:.1f} dB"
