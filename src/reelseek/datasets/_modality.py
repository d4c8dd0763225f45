"""GR00T's ``meta/modality.json``: names for slices of state and action, cameras, annotations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reelseek.datasets._files import read_json, whole_number
from reelseek.errors import DatasetFormatError

DEFAULT_COLUMN = {"state": "observation.state", "action": "action"}


@dataclass(frozen=True, slots=True)
class Part:
    """A slice of a vector column under a name of its own."""

    column: str
    """The column in the parquet file."""
    start: int
    """First element."""
    end: int
    """Element after the last."""
    about: dict[str, Any]
    """What else the file says of it (``absolute``, ``rotation_type``, ``range``)."""


@dataclass(frozen=True, slots=True)
class Modality:
    """The names that GR00T code uses, such as ``state.left_arm`` and ``video.ego_view``."""

    parts: dict[str, Part]
    """``state.<name>`` and ``action.<name>``."""
    video: dict[str, str]
    """``video.<name>`` to the camera's own key."""
    annotation: dict[str, str]
    """``annotation.<name>`` to the column that holds the task's number."""


def read_modality(root: Path) -> Modality | None:
    """The modality file of a dataset; None where it has none.

    Raises:
        DatasetFormatError: It is damaged.
    """
    path = root / "meta" / "modality.json"
    if not path.is_file():
        return None
    raw = read_json(path)
    parts = {
        f"{kind}.{name}": _part(kind, name, value, path)
        for kind in DEFAULT_COLUMN
        for name, value in _section(raw, kind, path).items()
    }
    return Modality(
        parts=parts,
        video={
            f"video.{name}": str(value.get("original_key") or f"observation.images.{name}")
            for name, value in _section(raw, "video", path).items()
        },
        annotation={
            f"annotation.{name}": str(value.get("original_key") or f"annotation.{name}")
            for name, value in _section(raw, "annotation", path).items()
        },
    )


def _section(raw: dict[str, Any], name: str, path: Path) -> dict[str, dict[str, Any]]:
    section = raw.get(name)
    if section is None:
        return {}
    if not isinstance(section, dict) or not all(isinstance(v, dict) for v in section.values()):
        raise DatasetFormatError(
            f"{name!r} is no table of names",
            remedy="See the files that NVIDIA publishes with GR00T for its form",
            path=path,
        )
    return section


def _part(kind: str, name: str, value: dict[str, Any], path: Path) -> Part:
    start = whole_number(value.get("start"), f"start of {kind}.{name}", path)
    end = whole_number(value.get("end"), f"end of {kind}.{name}", path, least=start)
    column = str(value.get("original_key") or DEFAULT_COLUMN[kind])
    about = {k: v for k, v in value.items() if k not in ("start", "end", "original_key")}
    return Part(column, start, end, about)
