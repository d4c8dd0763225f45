"""Ways to read frames: reelseek's backends, and each library's plain documented call.

The plain calls are what people write without reelseek. They are here to be measured and compared:
nothing in them checks which frame came back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reelseek.bench import _floor
from reelseek.errors import DecodeError, UnknownBackendError, UnsupportedVideoError
from reelseek.video import Video, open_video
from reelseek.video.backends import backend_names, load_backend

Seconds = NDArray[np.float64]
"""When each frame of a file appears, in seconds."""


class Reader(Protocol):
    """Reads frames of one open file."""

    def read(self, frames: Sequence[int]) -> NDArray[np.uint8]:
        """These frames as (T, H, W, 3), RGB, in the order asked for."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """One library's plain call."""

    backend: str
    """The backend whose library it is."""
    usage: str
    """The call, in short."""
    open: Callable[[str, Seconds], Reader]
    """Open a file; the second argument is for readers that ask by time."""


def reader_names() -> tuple[str, ...]:
    """Backends first, then the plain calls, then the floor."""
    return (*backend_names(), *PLAIN, _floor.NAME)


def open_reader(name: str, path: str, seconds: Seconds) -> Reader:
    """Open a file with a backend, or for a library's plain call.

    Raises:
        ReelseekError: As ``open_video``.
        Exception: Whatever the library raises, for a plain call.
    """
    if name == _floor.NAME:
        return _floor.FloorReader(path)
    if name in PLAIN:
        return PLAIN[name].open(path, seconds)
    return _Adapter(open_video(path, backend=name))


def reader_version(name: str) -> str:
    """The version of the package behind a reader.

    Raises:
        BackendUnavailableError: It isn't installed, or does not load.
        UnknownBackendError: There is no reader of that name.
    """
    if name not in reader_names():
        raise UnknownBackendError(
            f"no backend {name!r}", remedy=f"Choose from: {', '.join(reader_names())}"
        )
    if name == _floor.NAME:
        return load_backend("indexed").version()
    return load_backend(PLAIN[name].backend if name in PLAIN else name).version()


def usage_of(name: str) -> str:
    """How a reader reads, in short."""
    if name == _floor.NAME:
        return _floor.USAGE
    return PLAIN[name].usage if name in PLAIN else "reelseek.open_video, one thread"


class _Adapter:
    """A backend of reelseek's."""

    def __init__(self, video: Video) -> None:
        self._video = video

    def read(self, frames: Sequence[int]) -> NDArray[np.uint8]:
        return self._video.get_frames_at(frames).numpy()

    def close(self) -> None:
        self._video.close()


class _TypicalPyav:
    """Training code's pattern: open the file for each call, seek by time, decode forward."""

    def __init__(self, path: str, seconds: Seconds) -> None:
        self._path = path
        self._seconds = seconds

    def read(self, frames: Sequence[int]) -> NDArray[np.uint8]:
        import av

        wanted = sorted(float(self._seconds[frame]) for frame in frames)
        found: dict[float, NDArray[Any]] = {}
        with av.open(self._path) as container:
            stream = container.streams.video[0]
            time_base = float(stream.time_base or 1)
            container.seek(int(wanted[0] / time_base), stream=stream)
            for picture in container.decode(stream):
                if picture.pts is None:
                    continue
                seconds = picture.pts * time_base
                if len(found) < len(set(wanted)) and seconds >= wanted[len(found)] - time_base / 2:
                    found[wanted[len(found)]] = picture.to_ndarray(format="rgb24")
                if seconds >= wanted[-1] - time_base / 2:
                    break
        missing = [frame for frame in frames if float(self._seconds[frame]) not in found]
        if missing:
            raise DecodeError("the decoder reached the end without this frame", frame=missing[0])
        return np.stack([found[float(self._seconds[frame])] for frame in frames])

    def close(self) -> None:
        """Nothing is kept open."""


class _PlainTorchcodec:
    """torchcodec as its documentation advises for small frames: one thread, batched reads."""

    def __init__(self, path: str, seek_mode: str) -> None:
        from reelseek.native import activate

        activate()
        from torchcodec.decoders import VideoDecoder

        self._decoder = VideoDecoder(
            path, dimension_order="NHWC", num_ffmpeg_threads=1, seek_mode=seek_mode
        )

    def read(self, frames: Sequence[int]) -> NDArray[np.uint8]:
        pixels: NDArray[np.uint8] = self._decoder.get_frames_at(list(frames)).data.numpy()
        return pixels

    def close(self) -> None:
        del self._decoder


class _PlainDecord:
    """decord's own indexing."""

    def __init__(self, path: str, _seconds: Seconds) -> None:
        import decord

        self._reader = decord.VideoReader(path)

    def read(self, frames: Sequence[int]) -> NDArray[np.uint8]:
        return np.stack([self._reader[frame].asnumpy() for frame in frames])

    def close(self) -> None:
        del self._reader


class _PlainOpencv:
    """OpenCV's seek by frame number."""

    def __init__(self, path: str, _seconds: Seconds) -> None:
        import cv2

        self._cv2 = cv2
        self._capture = cv2.VideoCapture(path)
        if not self._capture.isOpened():
            raise UnsupportedVideoError("isOpened() is False", path=path)

    def read(self, frames: Sequence[int]) -> NDArray[np.uint8]:
        return np.stack([self._read(frame) for frame in frames])

    def close(self) -> None:
        self._capture.release()

    def _read(self, frame: int) -> NDArray[np.uint8]:
        self._capture.set(self._cv2.CAP_PROP_POS_FRAMES, frame)
        ok, bgr = self._capture.read()
        if not ok:
            raise DecodeError("read() is False after a seek", frame=frame)
        rgb: NDArray[np.uint8] = self._cv2.cvtColor(bgr, self._cv2.COLOR_BGR2RGB)
        return rgb


PLAIN = {
    "pyav (typical)": Plain("pyav", "av.open, seek by time, decode on", _TypicalPyav),
    "torchcodec (approximate)": Plain(
        "torchcodec",
        "VideoDecoder(seek_mode='approximate')",
        lambda path, _seconds: _PlainTorchcodec(path, "approximate"),
    ),
    "torchcodec (exact)": Plain(
        "torchcodec",
        "VideoDecoder(seek_mode='exact')",
        lambda path, _seconds: _PlainTorchcodec(path, "exact"),
    ),
    "decord (plain)": Plain("decord", "VideoReader(path)[i]", _PlainDecord),
    "opencv (plain)": Plain("opencv", "set(POS_FRAMES, i), read()", _PlainOpencv),
}
"""Plain calls by name."""


def plain_of(backend: str) -> str | None:
    """The plain call of a backend's library; None where it has none here."""
    return next((name for name, plain in PLAIN.items() if plain.backend == backend), None)
