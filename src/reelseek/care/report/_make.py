"""Making a report: each section by itself, so that what is broken takes no other with it."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reelseek.care.report._coding import coding_of, videos_of
from reelseek.care.report._environment import environment_of
from reelseek.care.report._findings import Level, findings_of
from reelseek.care.report._overview import lengths_of, overview_of
from reelseek.care.report._pictures import pictures_of
from reelseek.care.report._records import CameraCoding, CameraSeeks, Report, Section, Seeks
from reelseek.care.report._seeks import OFFSETS, seeks_of
from reelseek.care.report._source import Source, open_source, section
from reelseek.care.report._values import values_of
from reelseek.errors import DatasetNotFoundError, DependencyError

if TYPE_CHECKING:
    from reelseek.care.reencode import Measured

S = TypeVar("S")
T = TypeVar("T")
Tell = Callable[[str], None]


def write_report(
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    level: Level = "quick",
    with_plan: bool = False,
    tell: Tell = lambda _text: None,
) -> Report:
    """Look a dataset over, and write what is found as one HTML page.

    Args:
        root: The dataset's folder.
        out: The page; it is replaced when the new one is whole.
        level: As for ``make_report``, and so are the others.
        with_plan: As there.
        tell: As there.

    Raises:
        DatasetNotFoundError: There is no such folder.
        DependencyError: What the page needs isn't installed.
    """
    _check_installed()
    path = Path(out)
    report = make_report(root, level=level, with_plan=with_plan, tell=tell)
    tell("drawing the page")
    from reelseek.care.report._render import render

    page = render(report)
    path.parent.mkdir(parents=True, exist_ok=True)
    half_written = path.with_name(f".{path.name}.{os.getpid()}")
    half_written.write_text(page, "utf-8")
    half_written.replace(path)
    return report


def make_report(
    root: str | os.PathLike[str],
    *,
    level: Level = "quick",
    with_plan: bool = False,
    tell: Tell = lambda _text: None,
) -> Report:
    """Look a dataset over for a page.

    A dataset that can't be opened, or only in part, gives a report all the same, which says so.

    Args:
        root: The dataset's folder.
        level: What verify does: ``quick`` (no frame is decoded), ``decode`` (every frame is), or
            ``none``.
        with_plan: Measure a few encodings on the dataset's own frames, which takes minutes.
        tell: Told what is being done.

    Raises:
        DatasetNotFoundError: There is no such folder.
    """
    start, folder = time.monotonic(), Path(os.path.abspath(os.fspath(root)))
    if not folder.is_dir():
        raise DatasetNotFoundError(
            "a file, not a folder" if folder.is_file() else "no such folder",
            remedy="Check the path, and that the disk or NAS is mounted on this machine",
            path=folder,
        )
    findings = (
        Section(None)
        if level == "none"
        else section(folder, lambda: findings_of(folder, level, _tenths(tell, "verifying")))
    )
    tell("opening the dataset")
    source = section(folder, lambda: open_source(folder))

    def then(before: Section[S], make: Callable[[S], T]) -> Section[T]:
        """A section made from another; one that isn't there has no such parts either."""
        value = before.value
        if value is None:
            return Section(None, before.fault)
        return section(folder, lambda: make(value))

    videos = then(source, lambda found: _of_videos(found, tell))
    report = Report(
        name=folder.name,
        root=str(folder),
        made_at=datetime.now(timezone.utc),
        seconds=0.0,
        overview=then(source, overview_of),
        findings=findings,
        pictures=then(source, lambda found: pictures_of(found, tell)),
        coding=then(videos, lambda found: tuple(coding for coding, _seeks in found)),
        seeks=then(videos, lambda found: Seeks(OFFSETS, tuple(seeks for _coding, seeks in found))),
        plan=section(folder, lambda: _planned(folder, tell)) if with_plan else Section(None),
        lengths=then(source, lengths_of),
        values=then(source, values_of),
        environment=section(folder, environment_of),
        hidden_cameras=source.value.hidden_cameras if source.value else (),
    )
    return replace(report, seconds=time.monotonic() - start)


def _check_installed() -> None:
    """Better said now than after minutes of work."""
    for module, name in (("jinja2", "Jinja2"), ("matplotlib", "matplotlib"), ("PIL", "Pillow")):
        if importlib.util.find_spec(module) is None:
            raise DependencyError(
                f"the page needs {name}, which isn't installed",
                remedy="Run `pip install 'reelseek[report]'`",
            )


def _of_videos(source: Source, tell: Tell) -> list[tuple[CameraCoding, CameraSeeks]]:
    """How each camera's videos are coded, and what reads of them cost."""
    found = []
    for camera in source.videos:
        tell(f"videos of {camera}")
        videos, sample, faults = videos_of(source, camera)
        coding = coding_of(camera, videos, sample, faults)
        found.append((coding, seeks_of(source, camera, videos, sample, faults)))
    return found


def _planned(root: Path, tell: Tell) -> tuple[Measured, ...]:
    from reelseek.care.reencode import plan_encodings

    return plan_encodings(root, tell=_tenths(tell, "measuring encodings"))


def _tenths(tell: Tell, label: str) -> Callable[[int, int], None]:
    """Tells the start and each tenth of the way: a log shall not have a line for each file."""
    tell(label)
    told = [0]

    def advance(done: int, total: int) -> None:
        if total and done * 10 // total > told[0]:
            told[0] = done * 10 // total
            tell(f"{label}: {done:,} of {total:,}")

    return advance
