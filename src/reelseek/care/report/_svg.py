"""A matplotlib figure as a piece of SVG inside a page.

Its colours are the page's CSS variables, so that it follows light, dark and print; its text is
text, in the page's font; its ids are its own, as all charts of a page share one name space.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from markupsafe import Markup

PIXELS_PER_INCH = 72
"""matplotlib's SVG counts in points, which the page takes as pixels."""
COLORS = {
    "#010101": "ink",
    "#020202": "faint",
    "#030303": "line",
    "#040404": "accent",
    "#050505": "accent-2",
    "#060606": "kind-key",
    "#070707": "kind-inter",
    "#080808": "kind-droppable",
    "#090909": "kind-hidden",
    "#0a0a0a": "kind-existing",
}
"""What is drawn in each of these colours takes the page's variable of this name."""
INK, FAINT, LINE, ACCENT, SECOND = list(COLORS)[:5]
KEY, INTER, DROPPABLE, HIDDEN, EXISTING = list(COLORS)[5:]

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "reelseek",
    "text.parse_math": False,  # a `$` in a name is a dollar
    "font.size": 11,
    "axes.labelsize": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.bottom": False,
    "ytick.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
}

_HEAD = re.compile(r"^.*?(?=<svg\b)", re.S)
_METADATA = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->", re.S)
_OPENING = re.compile(r"<svg\b[^>]*?viewBox=\"(?P<box>[^\"]+)\"[^>]*>")
_STYLE_SHEET = re.compile(r"<style type=\"text/css\">.*?</style>", re.S)
_FONT = re.compile(r"font: (?P<size>[\d.]+px) [^;\"]*|(?P<family>font-family: [^;\"]*; ?)")
"""Names of fonts, which older releases put beside the size and newer ones apart."""
_ID = re.compile(r"(?P<before>\bid=\"|url\(#|href=\"#)")
_COLOR = re.compile("|".join(COLORS))
_SPACE = re.compile(r">\s+<")


@contextmanager
def chart_style() -> Iterator[None]:
    """matplotlib's settings while a chart is drawn and saved, put back afterwards.

    They hold for the whole process meanwhile, as matplotlib has no others: not for threads.
    """
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        yield


def new_figure(width: int, height: int, *, lays_out: bool = True) -> Any:
    """An empty figure of this size in pixels, which leaves room for labels by itself."""
    from matplotlib.figure import Figure

    size = (width / PIXELS_PER_INCH, height / PIXELS_PER_INCH)
    return Figure(figsize=size, layout="constrained" if lays_out else None, facecolor="none")


def inline_svg(figure: Any, name: str, alt: str) -> Markup:
    """A figure as an ``<svg>`` element.

    Args:
        figure: Drawn within ``chart_style``, which still holds.
        name: Letters, digits and dashes; of one chart of the page only.
        alt: What the chart shows, for those who don't see it.
    """
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    text = _METADATA.sub("", _HEAD.sub("", file.getvalue(), count=1))
    text = _STYLE_SHEET.sub("", text)
    text = _FONT.sub(lambda found: "" if found["family"] else f"font-size: {found['size']}", text)
    text = _ID.sub(lambda found: f"{found['before']}{name}-", text)
    text = _COLOR.sub(lambda found: f"var(--{COLORS[found[0]]})", text)
    text = _SPACE.sub("><", text.replace("\n", " ")).strip()
    box = _OPENING.match(text)
    assert box is not None, text[:200]  # matplotlib writes it
    width = float(box["box"].split()[2])
    opening = Markup('<svg role="img" aria-label="{}" viewBox="{}" style="max-width: {}px">')
    return opening.format(alt, box["box"], round(width)) + Markup(text[box.end() :])  # noqa: S704
