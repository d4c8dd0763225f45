"""How the page writes numbers and texts, and that a chart's text is no formula."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needed

needed("jinja2")
needed("matplotlib")

from reelseek._sizes import size_text  # noqa: E402
from reelseek.care.report import _charts, _render, _svg  # noqa: E402


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-0.0, "0"), (3.14159, "3.14"), (0.00011, "0.00011"), (12345.6, "12,346"),
     (1e-9, "1.00e-09"), (2.5e6, "2.50e+06"), (float("nan"), "nan")],
)  # fmt: skip
def test_numbers(value: float, text: str) -> None:
    assert _render.number_text(value) == text


def test_sizes_and_durations() -> None:
    assert [size_text(n) for n in (999, 1500, 2.5e12)] == ["999 bytes", "1.5 kB", "2.5 TB"]
    hours = [_render.duration_text(h) for h in (0.004, 0.5, 1234)]
    assert hours == ["14 seconds", "30.0 minutes", "1,234.0 hours"]


def test_backticks_are_code_and_the_rest_is_text() -> None:
    assert _render.prose("Run `git lfs <pull>` & go") == (
        "Run <code>git lfs &lt;pull&gt;</code> &amp; go"
    )
    assert _render.prose("a ` alone") == "a ` alone"


def test_a_very_long_text_is_cut() -> None:
    assert len(_render._one_line("x" * 100_000)) < 2100


def test_a_dollar_in_a_chart_is_a_dollar_and_markup_is_text() -> None:
    with _svg.chart_style():
        chart = _charts.histogram(
            "one", "<alt>\"'", np.arange(5), "$x^2$ <script>", counted="reads", mark=(2.0, "$m$")
        )
    assert "$x^2$ &lt;script&gt;" in chart
    assert "&lt;alt&gt;&#34;&#39;" in chart
    assert "<script" not in chart


def test_matplotlibs_settings_are_put_back() -> None:
    import matplotlib as mpl

    before = {name: mpl.rcParams[name] for name in _svg.STYLE}
    with _svg.chart_style():
        assert mpl.rcParams["svg.fonttype"] == "none"
    assert {name: mpl.rcParams[name] for name in _svg.STYLE} == before


@pytest.mark.parametrize("values", [[1], [2, 2, 2], [0, 10**15], [1.5, 2.5], [0.0]])
def test_any_numbers_have_a_histogram(values: list[float]) -> None:
    with _svg.chart_style():
        chart = _charts.histogram("one", "alt", np.array(values), "label", counted="reads")
    assert chart.startswith('<svg role="img" aria-label="alt"')
