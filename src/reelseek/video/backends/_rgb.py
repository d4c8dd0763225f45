"""Decoded pictures to RGB, as all backends that use PyAV convert them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.index._source import pyav_major
from reelseek.types import Pixels
from reelseek.video.backends._protocol import OpenRequest, check_size


class RgbWriter:
    """Writes decoded pictures of one file as RGB into the caller's memory.

    FFmpeg's scaler with its own default (bicubic) chroma, which is torchcodec's too, on one thread.
    The scaler is kept: making one costs more than using it.
    """

    def __init__(self, request: OpenRequest, backend: str) -> None:
        from av.video.format import VideoFormat
        from av.video.reformatter import Interpolation, VideoReformatter

        self._request = request
        self._backend = backend
        self._reformat = VideoReformatter().reformat
        self._orientation = request.table.stream.orientation
        self._scaling: dict[str, Any] = {
            "format": VideoFormat("rgb24"),
            "interpolation": Interpolation.BICUBIC,
        }
        if pyav_major() >= 17:  # older releases always use one thread
            self._scaling["threads"] = 1

    def write(self, frame: int, picture: Any, out: Pixels) -> None:
        """Write a picture, turned for display.

        Args:
            frame: Its number, for errors.
            picture: A PyAV VideoFrame.
            out: (H, W, 3) uint8.

        Raises:
            DecodeError: The picture's size isn't ``out``'s.
        """
        rgb = self._reformat(picture, **self._scaling)
        plane: Any = rgb.planes[0]
        # Rows may be padded: a view of (H, W, 3) over the plane's memory.
        shape, strides = (rgb.height, rgb.width, 3), (plane.line_size, 3, 1)
        pixels: NDArray[np.uint8] = np.ndarray(shape, np.uint8, plane, 0, strides)
        upright = self._orientation.apply(pixels)
        if upright.shape != out.shape:
            check_size(self._request, self._backend, frame, upright.shape)
        out[...] = upright
