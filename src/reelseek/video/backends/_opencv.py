"""The ``opencv`` backend: OpenCV's VideoCapture over FFmpeg.

VideoCapture seeks by a guess from the average frame rate, and its PyPI wheel decodes no AV1.
Each frame's time is compared with the frame table's; where the seek missed, the file is read
from its start and counted. Colours come from another scaler setting than FFmpeg's other users
choose, so pixels differ by a few levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reelseek.errors import (
    BackendUnavailableError,
    CorruptVideoError,
    DecodeError,
    DeviceUnavailableError,
    UnsupportedVideoError,
)
from reelseek.video.backends._protocol import OpenRequest, Targets, check_size, visits

NAME = "opencv"
BT601_OR_UNSAID = frozenset({0, 2, 5, 6})
"""ITU-T H.273 table 4; 0 is RGB, which needs no matrix."""


def version() -> str:
    """OpenCV's version."""
    return str(_cv2().__version__)


def open_decoder(request: OpenRequest) -> OpencvDecoder:
    """Open one file with OpenCV."""
    cv2 = _cv2()
    if request.device != "cpu":
        raise DeviceUnavailableError(
            f"OpenCV from PyPI can't decode on {request.device!r}",
            remedy="Pass backend='torchcodec'",
            backend=NAME,
        )
    return OpencvDecoder(request, cv2)


def _cv2() -> Any:
    try:
        import cv2
    except (ImportError, OSError) as exc:
        raise BackendUnavailableError(
            "OpenCV isn't installed"
            if isinstance(exc, ModuleNotFoundError)
            else "OpenCV is installed and does not load",
            remedy="Run `pip install opencv-python-headless`",
            backend=NAME,
            detail=str(exc),
        ) from exc
    return cv2


class OpencvDecoder:
    """Reads frames by number with one VideoCapture."""

    def __init__(self, request: OpenRequest, cv2: Any) -> None:
        self._request = request
        self._cv2 = cv2
        table = request.table
        reason = ""
        if not table.is_seekable:
            reason = "it tells frames apart by time, and this file's times don't"
        elif table.stream.orientation.is_mirrored:
            reason = "it turns frames for display and doesn't mirror them, as this file asks"
        elif table.stream.color_matrix not in BT601_OR_UNSAID:
            reason = "it takes all colours for BT.601, and this file's are not"
        elif table.has_partial_keys:
            reason = "it starts decoding at key frames, and some of this file's are no clean start"
        elif not table.has_one_size:
            reason = "it scales all frames to the first one's size, and this file's sizes differ"
        elif not table.is_first_video:
            reason = "it reads a file's first video stream, and this file's default is another one"
        if reason:
            raise self._unsupported(reason)
        self._relative = table.pts_seconds() - table.pts_seconds()[0]
        self._open()

    def read(self, frames: Sequence[int], out: Targets) -> None:
        """Decode frames by number into ``out``."""
        for frame, positions in visits(frames):
            bgr = self._decode(frame)
            check_size(self._request, NAME, frame, bgr.shape)
            rgb = self._cv2.cvtColor(bgr, self._cv2.COLOR_BGR2RGB)
            for position in positions:
                out[position][...] = rgb  # cvtColor's own dst is replaced where it doesn't fit

    def close(self) -> None:
        """Release the capture."""
        self._capture.release()

    def _open(self) -> None:
        cv2 = self._cv2
        self._capture = cv2.VideoCapture(
            self._request.path,
            cv2.CAP_FFMPEG,
            [cv2.CAP_PROP_N_THREADS, self._request.threads],
        )
        self._next = 0
        if not self._capture.isOpened():
            raise self._unsupported(f"OpenCV can't open it ({self._request.table.stream.codec})")
        ok, picture = self._capture.read()
        if not ok:
            self._capture.release()
            raise self._unsupported(
                f"OpenCV opens it, and read() returns False: its FFmpeg can't decode "
                f"{self._request.table.stream.codec}"
            )
        stream = self._request.table.stream
        if picture.shape[:2] != (stream.height, stream.width):
            self._capture.release()
            raise self._unsupported("it crops or scales frames to the size that the header says")
        self._next = 1
        self._first_ms = self._capture.get(cv2.CAP_PROP_POS_MSEC)

    def _unsupported(self, reason: str) -> UnsupportedVideoError:
        return UnsupportedVideoError(
            reason,
            remedy="Pass backend='torchcodec' or 'pyav'",
            path=self._request.path,
            backend=NAME,
        )

    def _decode(self, frame: int) -> Any:
        if frame != self._next:
            self._capture.set(self._cv2.CAP_PROP_POS_FRAMES, frame)
        ok, picture = self._capture.read()
        if not (ok and self._is_at(frame)):
            picture = self._count_from_start(frame)
        self._next = frame + 1
        return picture

    def _count_from_start(self, frame: int) -> Any:
        self._capture.release()
        self._open()
        if frame == 0:
            self._capture.release()
            self._capture = self._cv2.VideoCapture(self._request.path, self._cv2.CAP_FFMPEG)
            self._next = 0
        for _ in range(frame - self._next):
            if not self._capture.grab():
                break
        ok, picture = self._capture.read()
        if not ok:
            raise CorruptVideoError(
                "OpenCV's read() returns False on the way to this frame",
                remedy="Copy the file again from its source, or pass backend='pyav'",
                path=self._request.path,
                frame=frame,
                backend=NAME,
            )
        if not self._is_at(frame):
            raise DecodeError(
                "OpenCV returned another frame than the one asked for",
                remedy="Pass backend='torchcodec' or 'pyav' for this file",
                path=self._request.path,
                frame=frame,
                backend=NAME,
            )
        return picture

    def _is_at(self, frame: int) -> bool:
        """True where the frame just read is the one asked for, by its time."""
        seconds = (self._capture.get(self._cv2.CAP_PROP_POS_MSEC) - self._first_ms) / 1000
        half_tick = float(self._request.table.stream.time_base) / 2
        return bool(abs(seconds - self._relative[frame]) <= half_tick)
