"""The page as it is written: complete in itself, and every text of the dataset only text."""

from __future__ import annotations

import base64
import html.parser
import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from reelseek.care.reencode import Measured, Spread
from reelseek.care.report import Report, write_report
from reelseek.care.report._records import Section
from tests.care.report.conftest import Page
from tests.care.report.hostile import CAMERA, ELEMENTS, ROBOT, SCRIPT
from tests.conftest import needs
from tests.datasets import makers

MOST_BYTES = 1_000_000
"""Of the sample's page: it is sent by mail."""


class Outline(html.parser.HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words += data

    def values(self, name: str) -> list[str]:
        return [value for _tag, attribute, value in self.attributes if attribute == name]


@pytest.fixture(params=["sound", "hostile"])
def page(request: pytest.FixtureRequest) -> Page:
    found: Page = request.getfixturevalue(request.param)
    return found


def test_nothing_is_loaded_and_nothing_runs(page: Page) -> None:
    outline = Outline(page.text)
    assert not outline.tags.keys() & {
        "script",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "video",
    }
    assert not [name for _tag, name, _value in outline.attributes if name.startswith("on")]
    assert all(value.startswith("data:image/jpeg;base64,") for value in outline.values("src"))
    links = outline.values("href") + outline.values("xlink:href")
    assert all(link.startswith(("#", "data:,")) for link in links)
    assert "url(http" not in page.text


def test_the_policy_forbids_all_but_its_own_pictures_and_styles(page: Page) -> None:
    policy = next(v for v in Outline(page.text).values("content") if "default-src" in v)
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")


def test_ids_are_unique_and_all_references_lead_somewhere(page: Page) -> None:
    outline = Outline(page.text)
    ids = outline.values("id")
    assert len(set(ids)) == len(ids)
    references = re.findall(r"url\(#([^)]+)\)", page.text)
    references += [value[1:] for value in outline.values("href") if value.startswith("#")]
    references += [value[1:] for value in outline.values("xlink:href")]
    assert set(references) <= set(ids)


def test_every_picture_says_what_it_shows(page: Page) -> None:
    outline = Outline(page.text)
    assert outline.tags["img"] == len(outline.values("alt"))
    labels = [
        value for tag, name, value in outline.attributes if (tag, name) == ("svg", "aria-label")
    ]
    assert outline.tags["svg"] == len(labels)
    assert all(outline.values("alt") + labels)


def test_the_samples_page_is_small_and_stands_alone(real: Page) -> None:
    assert 200_000 < real.path.stat().st_size < MOST_BYTES
    assert [path.name for path in real.path.parent.iterdir()] == [real.path.name]


def test_pictures_are_whole(real: Page) -> None:
    from PIL import Image

    sources = Outline(real.text).values("src")
    assert len(sources) == 3 * 2 * 6  # cameras, episodes, frames
    for source in sources:
        data = base64.b64decode(source.removeprefix("data:image/jpeg;base64,"), validate=True)
        assert Image.open(io.BytesIO(data)).convert("RGB").size == (128, 128)


def test_texts_of_the_dataset_stay_text(hostile: Page) -> None:
    outline = Outline(hostile.text)
    for text in (SCRIPT, ROBOT, CAMERA, *ELEMENTS):
        assert text in outline.words, text
    assert outline.tags["b"] == 0
    assert "<b onclick=alert(0)>" in outline.words
    assert not [value for value in outline.values("src") if "example.org" in value]


def test_what_does_not_print_is_spelled_out(hostile: Page) -> None:
    assert r"$\alpha$ \u202e\x1b[31m" in Outline(hostile.text).words
    assert "\u202e" not in hostile.text
    assert "\x1b" not in hostile.text


def test_a_broken_datasets_page_begins_with_its_findings(hostile: Page, sound: Page) -> None:
    assert hostile.text.index('id="findings"') < hostile.text.index('id="overview"')
    assert sound.text.index('id="findings"') > sound.text.index('id="overview"')


def test_charts_take_the_pages_colours(sound: Page) -> None:
    inside = "".join(re.findall(r"<svg.*?</svg>", sound.text, re.S))
    assert "var(--accent)" in inside
    assert set(re.findall(r"#[0-9a-f]{6}\b", inside)) == set()
    assert "DejaVu" not in inside


def test_a_page_of_a_dataset_that_cannot_be_opened(tmp_path: Path) -> None:
    for module in ("jinja2", "matplotlib", "PIL"):
        needs(module)
    root = tmp_path / "empty"
    root.mkdir()
    report = write_report(root, tmp_path / "page.html")
    words = Outline((tmp_path / "page.html").read_text()).words
    assert not report.is_sound
    assert "The dataset can't be opened" in words
    assert "meta/info.json" in words


def test_videos_without_a_key_frame_have_no_chart_of_them(tmp_path: Path) -> None:
    for module in ("jinja2", "matplotlib", "PIL"):
        needs(module)
    spec = makers.Spec(lengths=(9,), cameras=(makers.TOP,))
    root = makers.make_v21(tmp_path / "keyless", spec)
    video = makers.v2_video(root, makers.TOP, 0)
    data = bytearray(video.read_bytes())
    count = data.index(b"stss") + 8
    data[count : count + 4] = bytes(4)
    video.write_bytes(data)
    report = write_report(root, tmp_path / "page.html", level="none")
    assert report.coding.value is not None
    assert [len(camera.group_lengths) for camera in report.coding.value] == [0]
    page = (tmp_path / "page.html").read_text()
    assert "no key frame" in page
    assert "Key-frame interval" not in page


def test_a_plan_is_shown_where_reads_could_not_be_timed(sound: Page) -> None:
    from reelseek.care.report._render import render

    spread = Spread.of([2.5])
    measured = Measured(None, 51234.0, 99, spread, None, None, None, num_key_frames=1, num_frames=2)
    report = replace(sound.report, seeks=Section(None, "no such file"), plan=Section((measured,)))
    outline = Outline(render(report))
    assert "51,234" in outline.words
    assert "#plan" in outline.values("href")
    assert "#plan" not in Outline(sound.text).values("href")
    failed = replace(sound.report, plan=Section(None, "no encoder"))
    assert "no encoder" in Outline(render(failed)).words


def test_names_that_are_no_text(tmp_path: Path) -> None:
    for module in ("jinja2", "matplotlib", "PIL"):
        needs(module)
    root = makers.make_v21(tmp_path / "plain", makers.Spec(lengths=(3,), cameras=()))
    write_report(root.rename(tmp_path / "bytes-\udcff"), tmp_path / "page.html", level="none")
    assert r"bytes-\xff" in (tmp_path / "page.html").read_text()


def test_an_old_page_stays_where_the_new_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("jinja2")
    out = tmp_path / "page.html"
    out.write_text("old")

    def fails(_report: Report) -> str:
        raise OSError("no space left")

    monkeypatch.setattr("reelseek.care.report._render.render", fails)
    root = makers.make_v21(tmp_path / "small", makers.Spec(lengths=(3,), cameras=()))
    with pytest.raises(OSError, match="no space"):
        write_report(root, out, level="none")
    assert out.read_text() == "old"
