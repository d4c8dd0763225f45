"""Comparing tables field by field, and folders of videos to be indexed."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np

from tests.corpus import clip_path

CLIPS = ("av1_g20.mp4", "b_frames.mp4", "hevc.mp4", "joined.mp4", "variable_rate.mp4", "vp9.webm")


def same(one: Any, other: Any) -> bool:
    """True where two tables are equal in every field, and every array in its type too."""
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        if not isinstance(one, type(other)) and not isinstance(other, type(one)):
            return False
        names = [field.name for field in dataclasses.fields(one) if field.compare]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return bool(one == other)


def make_folder(root: Path, *clips: str, copies: int = 1) -> list[Path]:
    """A folder that looks like a dataset's, with copies of clips; the videos' paths."""
    (root / "meta").mkdir(parents=True)
    (root / "meta" / "info.json").write_text("{}")
    (root / "videos").mkdir()
    made = []
    for number in range(copies):
        for clip in clips or CLIPS:
            path = root / "videos" / f"{number:05d}_{clip}"
            if number:
                os.link(root / "videos" / f"{0:05d}_{clip}", path)
            else:
                path.write_bytes(clip_path(clip).read_bytes())
            made.append(path)
    return made
