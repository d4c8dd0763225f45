"""Where a training step's time goes, as a stacked bar chart."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reelseek.bench._figure import new_figure

if TYPE_CHECKING:
    from reelseek.bench._train_steps import SetupTimes

PARTS = (
    ("waiting for data", "#c44e52"),
    ("preprocessing", "#dd8452"),
    ("computing", "#4c72b0"),
)
REFUSED = "#a05a00"


def train_chart(setups: tuple[SetupTimes, ...], measured: dict[str, Any], path: Path) -> None:
    """Draw the mean step of each setup, and its three parts.

    Args:
        setups: In the order in which they are drawn, from the top.
        measured: The JSON document, for the line on where it was measured.
        path: The PNG file.

    Raises:
        DependencyError: matplotlib isn't installed.
    """
    figure = new_figure(9, 1.9 + 0.55 * len(setups))
    axis = figure.subplots()
    longest = max((setup.step_ms or 0 for setup in setups), default=0) or 1
    for row, setup in enumerate(setups):
        _draw(axis, row, setup, longest)
    axis.set_yticks(range(len(setups)), [setup.setup.name for setup in setups])
    axis.set_ylim(len(setups) - 0.4, -0.6)
    axis.set_xlim(0, longest * 1.28)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="#dddddd", lw=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    handles: list[Any] = [axis.barh(0, 0, color=colour) for _label, colour in PARTS]
    labels = [label for label, _colour in PARTS]
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel(_caption(measured), fontsize=9)
    figure.savefig(path, dpi=130)


def _draw(axis: Any, row: int, setup: SetupTimes, longest: float) -> None:
    if setup.step_ms is None or setup.steps_per_second is None:
        why = textwrap.shorten(setup.why_not, 100)
        axis.text(longest * 0.01, row, why, va="center", fontsize=8, color=REFUSED)
        return
    left = 0.0
    for (_label, colour), share in zip(PARTS, setup.shares(), strict=True):
        width = share * setup.step_ms
        axis.barh(row, width, left=left, height=0.62, color=colour)
        if width > longest * 0.07:
            axis.text(left + width / 2, row, f"{share:.0%}", ha="center", va="center",
                      fontsize=8, color="white")  # fmt: skip
        left += width
    axis.annotate(f"{setup.steps_per_second:.2f} it/s", (left, row), xytext=(5, 0),
                  textcoords="offset points", va="center", fontsize=9)  # fmt: skip


def _caption(measured: dict[str, Any]) -> str:
    options, environment = measured["options"], measured["environment"]
    processes = measured["world_size"]
    where = options["device"] if options["device"] != "cpu" else environment["cpu"]
    return (
        f"milliseconds of a training step, the mean; shorter is better\n"
        f"{Path(measured['dataset']['root']).name}, {len(measured['cameras'])} cameras, batch size "
        f"{options['batch_size']}, encoder {options['model']} on {where}, "
        f"{options['num_workers']} worker{'s' * (options['num_workers'] != 1)}"
        + (f" for each of {processes} processes" if processes > 1 else "")
    )
