"""Pages of small datasets, made once, and a browser to look at them with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reelseek.care.report import Report, write_report
from reelseek.care.report._findings import Level
from tests.care.report.browser import Browser, find_chromium
from tests.care.report.hostile import make_hostile
from tests.conftest import REPOSITORY, needs, skip_without
from tests.datasets import makers

SPEC = makers.Spec(lengths=(12, 9, 12))


@dataclass(frozen=True, slots=True)
class Page:
    """A report and its page."""

    root: Path
    report: Report
    path: Path

    @property
    def text(self) -> str:
        """The page as it is written."""
        return self.path.read_text()


def make_page(root: Path, folder: Path, level: Level = "quick") -> Page:
    for module in ("jinja2", "matplotlib", "PIL"):
        needs(module)
    path = folder / f"{root.name}.html"
    return Page(root, write_report(root, path, level=level), path)


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Of a v2.1 dataset without a fault."""
    folder = tmp_path_factory.mktemp("sound")
    return make_page(makers.make_v21(folder / "sound", SPEC), folder)


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Of the sample dataset, whose pictures are photographs in size."""
    return make_page(REPOSITORY / "sample" / "aloha3cam", tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Of a dataset whose every text tries to be markup, and some of whose files are broken."""
    folder = tmp_path_factory.mktemp("hostile")
    return make_page(make_hostile(folder / "<b onclick=alert(0)>"), folder)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Headless Chromium."""
    program = find_chromium()
    if program is None:
        skip_without("chromium", "Chromium isn't installed")
    assert program is not None
    with Browser(program, tmp_path_factory.mktemp("profile")) as found:
        yield found
