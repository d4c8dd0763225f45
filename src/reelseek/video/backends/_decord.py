"""The ``decord`` backend: an older reader that many training codes still use.

decord carries an FFmpeg 4.1 without an AV1 decoder, numbers the packets that it finds and knows
nothing of edit lists. It is offered for files where that numbering is provably the same as
display order, and refuses the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from reelseek.errors import (
    BackendUnavailableError,
    CorruptVideoError,
    DeviceUnavailableError,
    UnsupportedVideoError,
)
from reelseek.video.backends._protocol import OpenRequest, Targets

NAME = "decord"
EXACT_CODECS = frozenset({"h264", "vp8", "vp9"})
"""Codecs whose frames it was seen to number right; in HEVC and MPEG-4 it returns neighbours."""

TOLERANCE_SECONDS = 1e-3
"""decord keeps times as 32-bit floats."""


def version() -> str:
    """decord's version."""
    return str(_decord().__version__)


def open_decoder(request: OpenRequest) -> DecordDecoder:
    """Open one file with decord."""
    decord = _decord()
    if request.device != "cpu":
        raise DeviceUnavailableError(
            f"decord from PyPI can't decode on {request.device!r}",
            remedy="Pass backend='torchcodec'",
            backend=NAME,
        )
    return DecordDecoder(request, decord)


def _decord() -> Any:
    try:
        import decord
    except (ImportError, OSError, RuntimeError) as exc:
        raise BackendUnavailableError(
            "decord isn't installed"
            if isinstance(exc, ModuleNotFoundError)
            else "decord is installed and does not load",
            remedy="Run `pip install decord` (Linux on x86-64), or choose another backend",
            backend=NAME,
            detail=str(exc),
        ) from exc
    return decord


class DecordDecoder:
    """Reads frames by number with one decord VideoReader."""

    def __init__(self, request: OpenRequest, decord: Any) -> None:
        self._request = request
        self._error = decord.DECORDError
        try:
            self._reader = decord.VideoReader(
                request.path, ctx=decord.cpu(0), num_threads=request.threads
            )
        except (self._error, RuntimeError) as exc:
            raise UnsupportedVideoError(
                f"decord can't open it ({request.table.stream.codec})",
                remedy="Pass backend='torchcodec' or 'pyav'",
                path=request.path,
                backend=NAME,
                detail=_message(exc),
            ) from exc
        reason = self._why_not()
        if reason:
            self.close()
            raise UnsupportedVideoError(
                reason,
                remedy="Pass backend='torchcodec' or 'pyav'",
                path=request.path,
                backend=NAME,
            )

    def _why_not(self) -> str:
        """Why its numbering may differ from display order; empty where it can't."""
        table = self._request.table
        stream = table.stream
        if stream.codec not in EXACT_CODECS or table.has_partial_keys:
            return f"it returns neighbouring frames after a seek in {stream.codec} like this"
        if len(self._reader) != len(table):
            return f"it counts {len(self._reader)} frames where FFmpeg displays {len(table)}"
        if not table.has_unique_pts or np.any(table.entry < 0):
            return "it finds frames by timestamp and key frame, which don't suffice for this file"
        if not stream.orientation.is_identity:
            return "it turns frames for display in a way of its own"
        if "420" in stream.pixel_format and (stream.width % 2 or stream.height % 2):
            return "its scaler smears colours in pictures of an odd size"
        times = self._reader.get_frame_timestamp(range(len(table)))[:, 0]
        if np.max(np.abs(times - table.pts_seconds())) > TOLERANCE_SECONDS:
            return "its times of the frames differ from FFmpeg's"
        return ""

    def read(self, frames: Sequence[int], out: Targets) -> None:
        """Decode frames by number into ``out``."""
        try:
            pixels = self._reader.get_batch(list(frames)).asnumpy()
        except (self._error, RuntimeError, IndexError) as exc:
            raise CorruptVideoError(
                "decord can't decode the way to one of the frames",
                remedy="Copy the file again from its source, or leave the episode out",
                path=self._request.path,
                frame=frames[0],
                backend=NAME,
                detail=_message(exc),
            ) from exc
        for target, picture in zip(out, pixels, strict=True):
            target[...] = picture

    def close(self) -> None:
        """Drop the reader, which closes its file."""
        del self._reader


def _message(exc: BaseException) -> str:
    """decord's own words, without the clock, the source line and the stack around them."""
    first = str(exc).strip().split("\n", 1)[0]
    return re.sub(r"^\[[\d:]+\] \S+?:\d+: ", "", first) or type(exc).__name__
