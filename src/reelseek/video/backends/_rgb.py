"""Decoded pictures to RGB, as all backends that use PyAV convert them."""

from __future__ import annotations

from typing import Any

import numpy as np

from reelseek.index._source import pyav_major
from reelseek.types import Pixels
from reelseek.video.backends._protocol import OpenRequest, check_size


class RgbWriter:
    """Writes decoded pictures of one file as RGB into the caller's memory.

    FFmpeg's scaler with its own default (bicubic) chroma, which is torchcodec's too, on one thread.
    The scaler is kept: making one costs more than using it.
    """

    def __init__(self, request: OpenRequest, backend: str) -> None:
        from av.video.reformatter import Interpolation, VideoReformatter

        self._request = request
        self._backend = backend
        self._reformatter = VideoReformatter()
        self._scaling: dict[str, Any] = {"interpolation": Interpolation.BICUBIC}
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
        rgb = self._reformatter.reformat(picture, format="rgb24", **self._scaling)
        plane: Any = rgb.planes[0]
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        pixels = rows[:, : rgb.width * 3].reshape(plane.height, rgb.width, 3)
        upright = self._request.table.stream.orientation.apply(pixels)
        check_size(self._request, self._backend, frame, upright.shape)
        out[...] = upright
