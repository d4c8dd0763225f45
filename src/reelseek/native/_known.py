"""Known-good combinations of torchcodec, torch, Python and FFmpeg, read from a data file.

The table is ``known_versions.json``: torchcodec's own compatibility table, and what its wheels on
PyPI need, as read from their ELF files.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Version = tuple[int, ...]

NEWEST = 10**6
"""Stands for "no upper end" in a range."""


@dataclass(frozen=True, slots=True)
class KnownTorchcodec:
    """One release line of torchcodec (0.13, say)."""

    version: str
    """Its first two numbers."""
    newest: str
    """The newest release of that line on PyPI."""
    torch: tuple[Version, Version]
    """The first and the last release of torch that it is built for, both included."""
    python: tuple[Version, Version]
    """The first and the last Python, both included."""
    ffmpeg_majors: tuple[int, ...]
    """The FFmpeg majors that it has libraries for."""
    cuda: str
    """The CUDA major that PyPI's Linux wheel needs libraries of; empty where it needs none."""

    def fits(self, *, torch: str, python: str) -> bool:
        """Whether it is built for these versions; an unknown one ("") fits."""
        return _within(torch, self.torch) and _within(python, self.python)


@functools.cache
def known_torchcodecs() -> tuple[KnownTorchcodec, ...]:
    """All lines of torchcodec, newest first."""
    rows = [_row(version, facts) for version, facts in _document()["torchcodec"].items()]
    return tuple(sorted(rows, key=lambda row: numbers(row.version), reverse=True))


def known_torchcodec(version: str) -> KnownTorchcodec | None:
    """The line that an installed torchcodec belongs to; None where it isn't in the table."""
    line = numbers(version)[:2]
    return next((row for row in known_torchcodecs() if numbers(row.version) == line), None)


def best_torchcodec(*, torch: str, python: str, cuda: str) -> KnownTorchcodec | None:
    """The newest torchcodec from PyPI for a torch.

    Args:
        torch: torch's version.
        python: The interpreter's version.
        cuda: The version of CUDA that torch is built for; empty for a CPU build.
    """
    cuda_major = cuda.partition(".")[0]
    return next(
        (
            row
            for row in known_torchcodecs()
            if row.fits(torch=torch, python=python) and row.cuda in ("", cuda_major)
        ),
        None,
    )


def package_of_library(soname: str) -> str:
    """The package on PyPI that carries an NVIDIA library; empty where none is known."""
    libraries: Mapping[str, str] = _document()["nvidia_packages"]
    return libraries.get(soname, "")


def pyav_requirement(majors: Collection[int]) -> str:
    """What to install for a PyAV whose wheel carries one of these FFmpeg majors, newest first."""
    wheels: Mapping[str, str] = _document()["pyav_with_ffmpeg"]
    fitting = [major for major in wheels if int(major) in majors]
    return wheels[max(fitting, key=int)] if fitting else ""


def ffmpeg_major_of_avutil(major: int) -> int:
    """FFmpeg 4 has libavutil.so.56; one more for each major."""
    return major - int(_document()["avutil_major_of_ffmpeg_0"])


def avutil_of_ffmpeg(major: int) -> str:
    """The soname of libavutil in an FFmpeg: 7 -> ``libavutil.so.59``."""
    return f"libavutil.so.{major + int(_document()['avutil_major_of_ffmpeg_0'])}"


def numbers(version: str) -> Version:
    """The leading numbers of a version: ``2.13.0+cpu`` -> (2, 13, 0); () where there are none."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part[:9]) for part in found[0].split(".")) if found else ()


def _within(version: str, ends: tuple[Version, Version]) -> bool:
    have = numbers(version)[:2]
    return not have or ends[0] <= have <= ends[1]


def _row(version: str, facts: Mapping[str, Any]) -> KnownTorchcodec:
    return KnownTorchcodec(
        version=version,
        newest=str(facts["newest"]),
        torch=_ends(facts["torch"]),
        python=_ends(facts["python"]),
        ffmpeg_majors=tuple(facts["ffmpeg"]),
        cuda=str(facts["cuda"]),
    )


def _ends(pair: Sequence[str]) -> tuple[Version, Version]:
    first, last = pair
    return numbers(first) or (0,), numbers(last) or (NEWEST,)


@functools.cache
def _document() -> Mapping[str, Any]:
    path = importlib.resources.files("reelseek.native") / "known_versions.json"
    document: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return document
