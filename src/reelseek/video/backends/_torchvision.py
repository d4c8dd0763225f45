"""The ``torchvision`` backend: ``torchvision.io.VideoReader`` of releases before 0.26.

torchvision deprecated its video reader in 0.22 and removed it in 0.26; torchcodec replaces it.
Where an old release is installed, frames are found by key frame and timestamp.
"""

from __future__ import annotations

import importlib.metadata
import warnings
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

NAME = "torchvision"
REMEDY = "Use backend='torchcodec', which replaces it"


def version() -> str:
    """torchvision's version."""
    _reader_class()
    return importlib.metadata.version("torchvision")


def open_decoder(request: OpenRequest) -> TorchvisionDecoder:
    """Open one file with torchvision."""
    reader_class = _reader_class()
    if request.device != "cpu":
        raise DeviceUnavailableError(
            f"torchvision can't decode on {request.device!r}", remedy=REMEDY, backend=NAME
        )
    return TorchvisionDecoder(request, reader_class)


def _reader_class() -> Any:
    try:
        import torchvision.io
    except (ImportError, OSError, RuntimeError) as exc:
        absent = isinstance(exc, ModuleNotFoundError)
        raise BackendUnavailableError(
            "torchvision isn't installed" if absent else "torchvision does not load",
            remedy="Its video reader was removed in 0.26. " + REMEDY,
            backend=NAME,
            detail=str(exc).strip().splitlines()[0],
        ) from exc
    reader = getattr(torchvision.io, "VideoReader", None)
    if reader is None:
        raise BackendUnavailableError(
            f"torchvision {torchvision.__version__} has no video reader: it was removed in 0.26",
            remedy=REMEDY,
            backend=NAME,
        )
    return reader


class TorchvisionDecoder:
    """Reads frames by number with one torchvision VideoReader."""

    def __init__(self, request: OpenRequest, reader_class: Any) -> None:
        self._request = request
        self._reader_class = reader_class
        table = request.table
        if not table.is_seekable:
            raise self._unsupported(
                "it finds frames by time, and this file's don't tell its frames apart"
            )
        if not table.stream.orientation.is_identity:
            raise self._unsupported("it doesn't turn frames for display, as this file asks")
        odd = table.stream.width % 2 or table.stream.height % 2
        if odd and "420" in table.stream.pixel_format:
            raise self._unsupported("its scaler smears colours in pictures of an odd size")
        if not table.is_first_video:
            raise self._unsupported("it reads a file's first video stream, and not the default one")
        self._pts_seconds = table.pts_seconds()
        self._half_tick = float(table.stream.time_base) / 2
        self._open()

    def read(self, frames: Sequence[int], out: Targets) -> None:
        """Decode frames by number into ``out``."""
        for frame, positions in visits(frames):
            pixels = self._decode(frame).permute(1, 2, 0).numpy()
            check_size(self._request, NAME, frame, pixels.shape)
            for position in positions:
                out[position][...] = pixels

    def close(self) -> None:
        """Close the container under the reader."""
        container = getattr(self._reader, "container", None)
        if container is not None:
            container.close()
        del self._reader

    def _open(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # its own deprecation, which the docs here state
                self._reader = self._reader_class(self._request.path, "video")
        except Exception as exc:  # it passes on whatever its own backend raises
            raise self._unsupported("torchvision can't open it", str(exc)) from exc
        self._next = 0

    def _unsupported(self, reason: str, detail: str = "") -> UnsupportedVideoError:
        return UnsupportedVideoError(
            reason, remedy=REMEDY, path=self._request.path, backend=NAME, detail=detail
        )

    def _decode(self, frame: int) -> Any:
        entry = self._request.table.entry[frame]
        try:
            if frame != self._next:
                self._seek(int(entry))
            return self._next_until(frame)
        except DecodeError:
            raise
        except Exception as exc:  # it passes on whatever its own backend raises
            raise CorruptVideoError(
                "torchvision can't decode the way to this frame",
                remedy="Copy the file again from its source, or leave the episode out",
                path=self._request.path,
                frame=frame,
                backend=NAME,
                detail=str(exc),
            ) from exc

    def _seek(self, entry: int) -> None:
        table = self._request.table
        if entry < 0:
            self.close()
            self._open()
            return
        ticks = int(table.packet_pts[entry])
        self._reader.seek(float(ticks * table.stream.time_base), keyframes_only=True)

    def _next_until(self, frame: int) -> Any:
        expected = self._pts_seconds[frame]
        for item in self._reader:
            if abs(item["pts"] - expected) <= self._half_tick:
                self._next = frame + 1
                return item["data"]
            if item["pts"] > expected:
                break
        raise DecodeError(
            "torchvision passed this frame without returning it",
            remedy=REMEDY,
            path=self._request.path,
            frame=frame,
            backend=NAME,
        )
