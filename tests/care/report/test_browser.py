"""The page in a real browser: nothing leaves it, nothing runs off it, it prints."""

from __future__ import annotations

import re

import pytest

from tests.care.report.browser import Browser
from tests.care.report.conftest import Page
from tests.care.report.hostile import SCRIPT

WIDTHS = (1280, 480)
WIDER = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, svg')
  && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + '.' + e.className)"""
CLIPPED = """[...document.querySelectorAll('svg text')].filter(t => {
  const chart = t.closest('svg').getBoundingClientRect(), text = t.getBoundingClientRect();
  return text.left < chart.left - 2 || text.right > chart.right + 2
    || text.bottom > chart.bottom + 2 || text.top < chart.top - 2;
}).map(t => t.textContent)"""
UNDRAWN = """[...document.images].filter(i => !i.complete || i.naturalWidth === 0).length"""


@pytest.fixture(params=["sound", "hostile", "real"])
def page(request: pytest.FixtureRequest) -> Page:
    found: Page = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_fits_its_width_without_a_complaint(page: Page, browser: Browser, width: int) -> None:
    browser.open(page.path, width)
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    assert browser.evaluate(WIDER) == []
    assert browser.evaluate(CLIPPED) == []
    assert browser.evaluate(UNDRAWN) == 0
    assert browser.complaints() == []


def test_no_request_leaves_the_page(page: Page, browser: Browser) -> None:
    browser.open(page.path, WIDTHS[0])
    sent = [address for address in browser.requested() if not address.startswith("data:")]
    assert sent == [page.path.resolve().as_uri()]


def test_a_task_named_script_is_shown_and_does_not_run(hostile: Page, browser: Browser) -> None:
    browser.open(hostile.path, WIDTHS[0])
    assert SCRIPT in browser.evaluate("document.body.innerText")
    assert browser.evaluate("document.scripts.length") == 0
    assert not [e for e in browser.events if e["method"] == "Page.javascriptDialogOpening"]


def test_the_policy_stops_a_script_that_got_in(sound: Page, browser: Browser) -> None:
    path = sound.path.with_name("injected.html")
    injected = "<script>document.title = 'ran'</script><img src=https://example.org/x.png>"
    path.write_text(sound.text.replace("</main>", f"{injected}</main>"))
    browser.open(path, WIDTHS[0])
    assert browser.evaluate("document.title") != "ran"
    assert len(browser.complaints()) >= 2  # the policy's words on the script and the picture


def test_dark_and_light_differ(sound: Page, browser: Browser) -> None:
    colors = []
    for dark in (False, True):
        browser.open(sound.path, WIDTHS[0], dark=dark)
        paper, ink = (
            f"getComputedStyle(document.body).{name}" for name in ("backgroundColor", "color")
        )
        colors.append((browser.evaluate(paper), browser.evaluate(ink)))
    assert colors == [
        ("rgb(255, 255, 255)", "rgb(27, 31, 36)"),
        ("rgb(20, 23, 26)", "rgb(228, 232, 236)"),
    ]


def test_prints_on_a4(page: Page, browser: Browser) -> None:
    browser.open(page.path, WIDTHS[0])
    data = browser.pdf()
    assert data.startswith(b"%PDF")
    boxes = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", data))
    assert [(round(float(w)), round(float(h))) for w, h in boxes] == [(595, 842)]
