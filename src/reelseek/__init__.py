"""reelseek: exactly the frames that a robot-learning sample needs, in any Python environment."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reelseek.datasets import Dataset, open_dataset
    from reelseek.loader import make_loader
    from reelseek.types import Frame, FrameBatch, Orientation, StreamInfo, VideoInfo
    from reelseek.video import Video, open_video
    from reelseek.video.backends import backend_names

__version__ = "0.1.0"

__all__ = [
    "Dataset",
    "Frame",
    "FrameBatch",
    "Orientation",
    "StreamInfo",
    "Video",
    "VideoInfo",
    "backend_names",
    "make_loader",
    "open_dataset",
    "open_video",
]

_MODULES = {
    "Dataset": "reelseek.datasets",
    "Frame": "reelseek.types",
    "FrameBatch": "reelseek.types",
    "Orientation": "reelseek.types",
    "StreamInfo": "reelseek.types",
    "Video": "reelseek.video",
    "VideoInfo": "reelseek.types",
    "backend_names": "reelseek.video.backends",
    "make_loader": "reelseek.loader",
    "open_dataset": "reelseek.datasets",
    "open_video": "reelseek.video",
}
"""Imported at the first use of a name: the doctor has to start where numpy can't be imported."""
_SUBMODULES = frozenset({"bitstream", "datasets", "errors", "index", "loader", "types", "video"})
"""What `import reelseek` alone makes reachable besides, as ``reelseek.errors``."""


def __getattr__(name: str) -> object:
    if name in _SUBMODULES:
        return importlib.import_module(f"reelseek.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
