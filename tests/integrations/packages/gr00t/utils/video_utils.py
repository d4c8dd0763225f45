"""Has the interface of the module of this name in GR00T N1.6: another default, times returned too.

Written for these tests from what the functions are documented to do.
"""

from __future__ import annotations

from typing import Any

NO_OPTIONS: dict[str, Any] = {}


def get_frames_by_indices(
    video_path: str,
    indices: Any,
    video_backend: str = "ffmpeg",
    video_backend_kwargs: dict[str, Any] = NO_OPTIONS,
) -> Any:
    """Frames by number, (T, H, W, 3) uint8."""
    raise FileNotFoundError("ffmpeg")  # as on a machine without the program


def get_all_frames(
    video_path: str,
    video_backend: str = "ffmpeg",
    video_backend_kwargs: dict[str, Any] = NO_OPTIONS,
) -> Any:
    """Every frame, and the time of each."""
    raise FileNotFoundError("ffmpeg")
