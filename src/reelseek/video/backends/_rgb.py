"""Decoded pictures to RGB, as all backends that use PyAV convert them."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.index._source import pyav_major
from reelseek.types import Pixels
from reelseek.video.backends._protocol import OpenRequest, check_size

SCALERS_PER_THREAD = 16
Format = tuple[int, int, str, int]
"""What a scaler is set up for: width, height, pixel format, colour matrix."""


class _Kept(threading.local):
    """The scalers of one thread: making one costs more than using it."""

    def __init__(self) -> None:
        self.scalers: dict[Format, Any] = {}

    def scaler(self, wanted: Format) -> Any:
        found = self.scalers.get(wanted)
        if found is None:
            from av.video.reformatter import VideoReformatter

            if len(self.scalers) >= SCALERS_PER_THREAD:
                self.scalers.clear()
            found = self.scalers[wanted] = VideoReformatter()
        return found


_kept = _Kept()


@functools.cache
def _scaling() -> dict[str, Any]:
    """What PyAV's scaler is told."""
    from av.video.format import VideoFormat
    from av.video.reformatter import Interpolation

    scaling: dict[str, Any] = {
        "format": VideoFormat("rgb24"),
        "interpolation": Interpolation.BICUBIC,
    }
    if pyav_major() >= 17:  # older releases always use one thread
        scaling["threads"] = 1
    return scaling


class RgbWriter:
    """Writes decoded pictures of one file as RGB into the caller's memory.

    FFmpeg's scaler with its own default (bicubic) chroma, which is torchcodec's too, on one thread.
    Scalers belong to threads and formats, not to files.
    """

    def __init__(self, request: OpenRequest, backend: str) -> None:
        self._request = request
        self._backend = backend
        stream = request.table.stream
        self._format = (stream.width, stream.height, stream.pixel_format, stream.color_matrix)
        self._orientation = stream.orientation
        self._is_turned = not stream.orientation.is_identity
        self._scaling = _scaling()

    def write(self, frame: int, picture: Any, out: Pixels) -> None:
        """Write a picture, turned for display.

        Args:
            frame: Its number, for errors.
            picture: A PyAV VideoFrame.
            out: (H, W, 3) uint8.

        Raises:
            DecodeError: The picture's size isn't ``out``'s.
        """
        rgb = _kept.scaler(self._format).reformat(picture, **self._scaling)
        plane: Any = rgb.planes[0]
        # Rows may be padded: a view of (H, W, 3) over the plane's memory.
        shape, strides = (rgb.height, rgb.width, 3), (plane.line_size, 3, 1)
        pixels: NDArray[np.uint8] = np.ndarray(shape, np.uint8, plane, 0, strides)
        upright = self._orientation.apply(pixels) if self._is_turned else pixels
        if upright.shape != out.shape:
            check_size(self._request, self._backend, frame, upright.shape)
        out[...] = upright
