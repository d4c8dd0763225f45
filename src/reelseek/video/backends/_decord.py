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
from reelseek.index import FrameTable
from reelseek.video.backends._protocol import OpenRequest, Targets, check_size

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
        # Before decord sees the file: it aborts the process on some that it can't decode.
        self._refuse(_why_not_from_table(request.table))
        try:
            self._reader = decord.VideoReader(
                request.path, ctx=decord.cpu(0), num_threads=request.threads
            )
        except (self._error, RuntimeError) as exc:
            raise self._unsupported("decord can't open it", _message(exc)) from exc
        self._refuse(self._why_not())

    def _unsupported(self, reason: str, detail: str = "") -> UnsupportedVideoError:
        return UnsupportedVideoError(
            reason,
            remedy="Pass backend='torchcodec' or 'pyav'",
            path=self._request.path,
            backend=NAME,
            detail=detail,
        )

    def _refuse(self, reason: str) -> None:
        if reason:
            raise self._unsupported(reason)

    def _why_not(self) -> str:
        """Why what it found in the file differs from the frame table; empty where it doesn't."""
        table = self._request.table
        if len(self._reader) != len(table):
            return f"it counts {len(self._reader)} frames where FFmpeg displays {len(table)}"
        if self._frame_size() not in (None, (table.stream.height, table.stream.width)):
            return "it scales frames to the size that the header says"
        times = self._reader.get_frame_timestamp(range(len(table)))[:, 0]
        if np.max(np.abs(times - table.pts_seconds())) > TOLERANCE_SECONDS:
            return "its times of the frames differ from FFmpeg's"
        return ""

    def _frame_size(self) -> tuple[int, int] | None:
        """Height and width of the first frame; None where it is damaged."""
        try:
            height, width, _channels = self._reader[0].shape
        except (self._error, RuntimeError):
            return None
        return height, width

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
        check_size(self._request, NAME, frames[0], pixels.shape[1:])
        for target, picture in zip(out, pixels, strict=True):
            target[...] = picture

    def close(self) -> None:
        """Drop the reader, which closes its file."""
        del self._reader


def _why_not_from_table(table: FrameTable) -> str:
    """Why its numbering may differ from display order; empty where it can't."""
    stream = table.stream
    if stream.codec == "av1":
        return "its FFmpeg has no AV1 decoder"
    if stream.codec not in EXACT_CODECS or table.has_partial_keys:
        return f"it returns neighbouring frames after a seek in {stream.codec} like this"
    if not table.is_seekable or np.any(table.entry < 0):
        return "it finds frames by timestamp and key frame, which don't suffice for this file"
    if abs(table.pts_seconds()[0]) > TOLERANCE_SECONDS:
        return "it expects the first frame at 0 s"
    if not table.is_first_video:
        return "it reads a file's first video stream, and this file's default is another one"
    if not table.has_one_size:
        return "it scales all frames to the first one's size, and this file's sizes differ"
    if not stream.orientation.is_identity:
        return "it turns frames for display in a way of its own"
    if "420" in stream.pixel_format and (stream.width % 2 or stream.height % 2):
        return "its scaler smears colours in pictures of an odd size"
    return ""


def _message(exc: BaseException) -> str:
    """decord's own words, without the clock, the source line and the stack around them."""
    first = str(exc).strip().split("\n", 1)[0]
    return re.sub(r"^\[[\d:]+\] \S+?:\d+: ", "", first) or type(exc).__name__
