"""A picture of groups of pictures: frames as boxes, references as arcs, what is needed in full."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from reelseek.bench._explain import Explanation, Gop, summary
from reelseek.bench._figure import new_figure
from reelseek.index._gop import GopUnit, UnitKind

MAX_GOPS = 4
"""Groups of pictures that are drawn."""
MAX_FRAMES = 120
"""Frames of one group that are drawn."""
INCHES_PER_FRAME, LEAST_INCHES, LEAST_FRAMES = 0.16, 9.0, 20
ARC_INCHES_PER_FRAME, MOST_ARC_INCHES = 0.045, 2.6
SHOWN_ROW, HIDDEN_ROW = 0.0, -1.15
COLORS = {
    UnitKind.KEY: "#c0392b",
    UnitKind.INTER: "#2e6fb7",
    UnitKind.DROPPABLE: "#8a8f98",
    UnitKind.HIDDEN: "#7d3c98",
    UnitKind.SHOWS_EXISTING: "#d9a514",
}
FAINT, FAINT_ARC, TARGET, INK = 0.25, 0.6, "#111111", "#333333"
DENSE_ARCS = 150
"""References from which arcs are drawn thinner."""


def gop_chart(found: Explanation, path: Path) -> None:
    """Draw the groups of pictures that a read touches.

    Args:
        found: What the read costs.
        path: The PNG file.

    Raises:
        DependencyError: matplotlib isn't installed.
    """
    windows = [_window(gop) for gop in found.gops[:MAX_GOPS]]
    spans = [_span(units) for units in windows]
    widest = max((end - start for start, end in spans), default=1)
    widest = max(widest, LEAST_FRAMES)
    heights = [_height(units, gop) for units, gop in zip(windows, found.gops, strict=False)]
    width = max(LEAST_INCHES, widest * INCHES_PER_FRAME + 0.8)
    figure = new_figure(width, 1.5 + sum(heights))
    figure.suptitle(
        "\n".join(textwrap.wrap(f"{Path(found.path).name}: {summary(found)}", int(width * 9.5))),
        fontsize=11,
        fontweight="bold",
    )
    if windows:
        axes = figure.subplots(len(windows), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axis, gop, units in zip(axes, found.gops, windows, strict=False):
            _draw(axis, gop, units, widest)
        axes[-1].set_xlabel(f"{axes[-1].get_xlabel()}; {_notes(found, windows)}")
        _legend(figure, windows, width)
    else:
        figure.supxlabel(f"no picture: {found.why_not}", fontsize=10)
    figure.savefig(path, dpi=110)


def _window(gop: Gop) -> list[GopUnit]:
    """The units that are drawn: of a long group those around what is needed."""
    start, end = _span(gop.units)
    if end - start <= MAX_FRAMES:
        return list(gop.units)
    last = max(one.place for one in gop.units if one.unit in gop.targets)
    start = max(start, min(last + MAX_FRAMES / 8, end) - MAX_FRAMES)
    return [one for one in gop.units if start <= one.place <= start + MAX_FRAMES]


def _span(units: list[GopUnit] | tuple[GopUnit, ...]) -> tuple[float, float]:
    places = [one.place for one in units]
    return min(places), max(places) + 1


def _longest_arc(units: list[GopUnit]) -> float:
    place = {one.unit: one.place for one in units}
    every = (
        abs(one.place - place[other]) for one in units for other in one.references if other in place
    )
    return max(every, default=0.0)


def _height(units: list[GopUnit], gop: Gop) -> float:
    """The inches that a panel takes."""
    rows = 2.2 if any(one.kind is UnitKind.HIDDEN for one in gop.units) else 1.4
    return rows + min(MOST_ARC_INCHES, 0.5 + _longest_arc(units) * ARC_INCHES_PER_FRAME)


def _draw(axis: Any, gop: Gop, units: list[GopUnit], frames: float) -> None:
    start, end = _span(units)
    for one in units:
        _box(axis, one, gop)
    highest = _arcs(axis, gop, units)
    has_hidden = any(one.kind is UnitKind.HIDDEN for one in units)
    axis.set_xlim(start - 1, start + frames + 0.5)
    axis.set_ylim(HIDDEN_ROW - 0.6 if has_hidden else -0.75, highest + 0.4)
    axis.set_xticks([n for n in range(int(start), int(end)) if n % 10 == 0])
    rows = [(SHOWN_ROW, "displayed")] + [(HIDDEN_ROW, "hidden")] * has_hidden
    axis.set_yticks([row for row, _label in rows], [label for _row, label in rows])
    axis.tick_params(length=0, labelsize=8)
    axis.spines[["top", "right", "left", "bottom"]].set_visible(False)
    cut = "" if len(units) == len(gop.units) else f"; {len(units)} of {len(gop.units)} units drawn"
    axis.set_xlabel(f"frame, in display order{cut}", fontsize=8, loc="left")


def _box(axis: Any, one: GopUnit, gop: Gop) -> None:
    """A frame: in full colour with its turn in decoding where it is needed."""
    from matplotlib.patches import Rectangle

    is_needed, is_target = one.unit in gop.needed, one.unit in gop.targets
    row = HIDDEN_ROW if one.kind is UnitKind.HIDDEN else SHOWN_ROW
    if one.kind is UnitKind.HIDDEN:  # its references are drawn from above its place
        axis.plot((one.place, one.place), (HIDDEN_ROW + 0.4, SHOWN_ROW + 0.42), color=INK, zorder=1,
                  lw=1.1 if is_needed else 0.4, alpha=1 if is_needed else FAINT)  # fmt: skip
    axis.add_patch(
        Rectangle(
            (one.place - 0.42, row - 0.4), 0.84, 0.8,
            facecolor=COLORS[one.kind], alpha=1.0 if is_needed else FAINT, lw=0, zorder=2,
        )
    )  # fmt: skip
    if is_needed:
        turn = sum(unit <= one.unit for unit in gop.needed)
        axis.text(one.place, row, f"{turn}", color="white", fontsize=6 if turn < 100 else 4.5,
                  ha="center", va="center", fontweight="bold", zorder=5)  # fmt: skip
    if is_target:
        axis.add_patch(
            Rectangle((one.place - 0.5, row - 0.5), 1.0, 1.0, fill=False, edgecolor=TARGET,
                      lw=2, zorder=6)
        )  # fmt: skip
        axis.annotate(f"{one.frame}", (one.place, row - 0.5), xytext=(0, -2),
                      textcoords="offset points", ha="center", va="top", fontsize=8,
                      fontweight="bold", zorder=7,
                      bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"})  # fmt: skip


def _arcs(axis: Any, gop: Gop, units: list[GopUnit]) -> float:
    """References as arcs; those that the read uses in ink. The height of the highest."""
    from matplotlib.patches import Arc

    by_unit = {one.unit: one for one in units}
    longest = max(1.0, _longest_arc(units))
    inches = min(MOST_ARC_INCHES, 0.5 + longest * ARC_INCHES_PER_FRAME)
    per_frame = 2 * inches / longest  # a row is half an inch high
    highest = 0.5
    is_dense = sum(len(one.references) for one in units if one.unit in gop.needed) > DENSE_ARCS
    for one in units:
        for other in (by_unit[unit] for unit in one.references if unit in by_unit):
            is_used = one.unit in gop.needed and other.unit in gop.needed
            ends = sorted((one.place, other.place))
            height = max(0.5, (ends[1] - ends[0]) * per_frame)
            highest = max(highest, 0.4 + height)
            if ends[0] == ends[1]:  # a hidden frame and what displays it
                continue
            axis.add_patch(
                Arc(((ends[0] + ends[1]) / 2, SHOWN_ROW + 0.42), ends[1] - ends[0], 2 * height,
                    theta1=0, theta2=180, lw=(0.6 if is_dense else 1.2) if is_used else 0.4,
                    color=INK if is_used else "#9aa3ad", alpha=0.9 if is_used else FAINT_ARC,
                    zorder=4 if is_used else 1)
            )  # fmt: skip
    return highest


def _legend(figure: Any, windows: list[list[GopUnit]], width: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    occurring = {one.kind for units in windows for one in units}
    handles: list[Any] = [Patch(color=COLORS[k], label=k.value) for k in UnitKind if k in occurring]
    handles.append(Patch(fill=False, ec=TARGET, lw=2, label="asked for"))
    if _has_arcs(windows):
        handles.append(Line2D([], [], color=INK, lw=1.2, label="reference that is used"))
    handles.append(Patch(color="#999999", alpha=FAINT, label="pale: not decoded"))
    figure.legend(handles=handles, loc="outside lower left", ncols=int(width / 1.5), fontsize=8,
                  frameon=False)  # fmt: skip


def _has_arcs(windows: list[list[GopUnit]]) -> bool:
    return any(one.references for units in windows for one in units)


def _notes(found: Explanation, windows: list[list[GopUnit]]) -> str:
    notes = ["numbers: turn in decoding"]
    if not _has_arcs(windows) and found.pruning_reason:
        notes.append(f"no arcs: {found.pruning_reason}")
    if len(found.gops) > MAX_GOPS:
        notes.append(f"{MAX_GOPS} of {len(found.gops)} groups of pictures drawn")
    return "; ".join(notes)
