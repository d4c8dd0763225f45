"""A report as one HTML page that needs nothing else.

What comes out of the dataset is text: escaped by the templates, and on one line, with what
doesn't print spelled out. No script, and a policy that forbids any, and any request.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from reelseek._sizes import size_text
from reelseek.care.report import _charts
from reelseek.care.report._records import (
    CameraCoding,
    CameraSeeks,
    Dimension,
    Lengths,
    Report,
    ValueRanges,
)
from reelseek.care.report._svg import chart_style
from reelseek.native._printable import printable

TEMPLATES = Path(__file__).parent / "templates"
WORTH_IT = 1.2
"""Re-encoding is spoken of where it saves that much."""
MAX_TEXT = 2000
"""Characters of one text of the dataset; a task may have any number."""


@dataclass(frozen=True, slots=True)
class CodingCharts:
    """A camera's charts of how its videos are coded."""

    strip: Markup
    groups: Markup
    """Empty where there is no key frame."""


@dataclass(frozen=True, slots=True)
class SeekCharts:
    """A camera's charts of what reads cost."""

    needed: Markup
    milliseconds: Markup


def render(report: Report) -> str:
    """The page."""
    template = _environment().get_template("page.html")
    with chart_style():
        charts = {
            "coding": _each(report.coding.value, _coding_charts),
            "seeks": _each(report.seeks.value and report.seeks.value.cameras, _seek_charts),
            "lengths": _lengths_chart(report.lengths.value),
            "values": _each(report.values.value and report.values.value.keys, _value_charts),
        }
    return str(template.render(
        report=report, charts=charts, kinds=_kinds(report), worth_it=WORTH_IT
    ))  # fmt: skip


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_one_line,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment


def _kinds(report: Report) -> list[tuple[int, str]]:
    """The kinds of coded frames that occur, each with the number of its colour."""
    occurring = {kind for camera in report.coding.value or () for kind in camera.kinds}
    every = enumerate(_charts.KIND_COLORS)
    return [(number, kind) for number, kind in every if kind in occurring]


def _one_line(value: Any) -> Any:
    """What an expression of a template shows: text without what doesn't print, of some length."""
    return _shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _shown(text: str) -> str:
    cut = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."
    return printable(cut)


def _each(parts: Any, make: Callable[[str, Any], Any]) -> list[Any]:
    return [make(f"{make.__name__.strip('_')}-{n}", part) for n, part in enumerate(parts or ())]


def _coding_charts(name: str, camera: CameraCoding) -> CodingCharts | None:
    if not camera.codec:
        return None
    kinds = ", ".join(f"{count:,} of kind {kind}" for kind, count in camera.kinds.items())
    return CodingCharts(
        strip=_charts.unit_strip(
            f"{name}-strip",
            f"Bytes of the first {len(camera.first_units)} coded frames of "
            f"{_shown(camera.key)}; by kind, of all that were looked at: {kinds}",
            camera.first_units,
        ),
        groups=_groups_chart(f"{name}-groups", camera),
    )


def _groups_chart(name: str, camera: CameraCoding) -> Markup:
    groups = camera.group_lengths
    if not len(groups):
        return Markup()
    alt = (
        f"Histogram for {_shown(camera.key)}: a key frame every {groups.min()} to "
        f"{groups.max()} frames, {number_text(groups.mean())} on average"
    )
    return _charts.histogram(
        name, alt, groups, "frames from one key frame to the next", counted="key frames"
    )


def _seek_charts(name: str, camera: CameraSeeks) -> SeekCharts | None:
    if not len(camera.needed):
        return None
    ideal, gains = float(camera.if_reencoded.mean()), camera.gain >= WORTH_IT
    needed = _charts.histogram(
        f"{name}-needed",
        f"Histogram for {_shown(camera.key)}: a read decodes {camera.needed.min()} to "
        f"{camera.needed.max()} frames, {number_text(camera.needed.mean())} on average",
        camera.needed, "coded frames that a read decodes", counted="reads",
        mark=(ideal, f"re-encoded: about {number_text(ideal)} on average") if gains else None,
    )  # fmt: skip
    times = camera.milliseconds
    if not len(times):
        return SeekCharts(needed, Markup())
    middle = float(np.median(times))
    return SeekCharts(needed, _charts.histogram(
        f"{name}-time",
        f"Histogram for {_shown(camera.key)}: a read takes {number_text(times.min())} to "
        f"{number_text(times.max())} ms, {number_text(middle)} in the middle",
        times, "milliseconds for a read", counted="reads",
        mark=(middle, f"median: {number_text(middle)} ms"),
    ))  # fmt: skip


def _lengths_chart(lengths: Lengths | None) -> Markup:
    if lengths is None or not len(lengths.frames):
        return Markup()
    frames = lengths.frames
    alt = (
        f"Histogram of {len(frames):,} episodes: {frames.min():,} to {frames.max():,} frames, "
        f"{number_text(float(np.median(frames)))} in the middle"
    )
    return _charts.histogram("lengths", alt, frames, "frames of an episode", counted="episodes")


def _value_charts(name: str, key: ValueRanges) -> list[Markup]:
    return [
        _value_chart(f"{name}-{place}", key.key, one) for place, one in enumerate(key.dimensions)
    ]


def _value_chart(name: str, key: str, one: Dimension) -> Markup:
    if one.is_constant:
        return Markup()
    marks = one.place_of(np.array(one.quantiles)).tolist()
    alt = f"Distribution of {_shown(key)}, element {_shown(one.name)}"
    return _charts.distribution(name, alt, one.counts, marks)


def number_text(value: float) -> str:
    """A measured number, to three digits."""
    value = float(value)
    if value and not 1e-4 <= abs(value) < 1e5:
        return f"{value:.2e}"
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return "0" if text == "-0" else text


def count_text(value: int) -> str:
    """A whole number with commas."""
    return f"{value:,}"


def duration_text(hours: float) -> str:
    """A time as people say it."""
    if hours >= 1:
        return f"{hours:,.1f} hours"
    return f"{hours * 60:.1f} minutes" if hours * 60 >= 1 else f"{hours * 3600:.0f} seconds"


def plural_text(count: int, word: str) -> str:
    """``1 episode``, ``2 episodes``."""
    return f"{count:,} {word}{'s' * (count != 1)}"


def prose(text: str) -> Markup:
    """A sentence of ours, perhaps about the dataset's names: `code` between backticks is set so."""
    pieces = _shown(text).split("`")
    if len(pieces) % 2 == 0:
        return escape(_shown(text))
    parts = [Markup("<code>{}</code>").format(piece) if place % 2 else escape(piece)
             for place, piece in enumerate(pieces)]  # fmt: skip
    return Markup().join(parts)


def data_uri(jpeg: bytes) -> Markup:
    """A JPEG file as the source of a picture."""
    return Markup("data:image/jpeg;base64,{}").format(base64.b64encode(jpeg).decode("ascii"))


FILTERS = {
    "data_uri": data_uri,
    "prose": prose,
    "size": size_text,
    "number": number_text,
    "count": count_text,
    "duration": duration_text,
    "plural": plural_text,
}
"""What the templates call these functions."""
