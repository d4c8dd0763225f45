"""The reader of one video."""

from __future__ import annotations

import functools
import operator
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reelseek._fork_lock import ForkLock
from reelseek.errors import (
    ClosedVideoError,
    CorruptVideoError,
    FrameIndexError,
    IndexFileError,
    TimeRangeError,
)
from reelseek.index import FrameTable
from reelseek.index._table import MANY_READS
from reelseek.types import Frame, FrameBatch, Pixels, VideoInfo
from reelseek.video._read_batch import read_batch
from reelseek.video.backends import Decoder, OpenRequest, Targets, open_decoder

_inherited: list[Decoder] = []
"""Decoders that came over a fork. They share a file position with the parent and may wait for
threads that don't exist here, so they are neither used nor closed."""


@dataclass(slots=True)
class Choice:
    """The backend that reads a video."""

    backend: str
    reason: str
    request: OpenRequest
    decoder: Decoder | None


class Video:
    """Frames of one video, by number or by time.

    Threads: calls wait for each other. Fork: an open video works in both processes. Pickling:
    the file is opened again, with the same backend. A failed read leaves the video usable.
    """

    def __init__(self, path: str, table: FrameTable, choice: Choice) -> None:
        self.path = path
        self.table = table
        self._backend = choice.backend
        self._reason = choice.reason
        self._request = choice.request
        self._decoder = choice.decoder
        self._pid = os.getpid()
        self._closed = False
        self._num_reads = 0
        self._lock = ForkLock()

    @property
    def info(self) -> VideoInfo:
        """What is known of the video, and which backend reads it and why."""
        table = self.table
        return VideoInfo(
            path=self.path,
            stream=table.stream,
            num_frames=len(table),
            duration_seconds=table.end_seconds() - float(table.pts_seconds()[0]),
            key_frames=np.flatnonzero(table.is_key),
            backend=self._backend,
            backend_reason=self._reason,
            notes=table.notes,
        )

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> Frame:
        return self.get_frame_at(index)

    def __iter__(self) -> Iterator[Frame]:
        return (self.get_frame_at(index) for index in range(len(self)))

    def get_frame_at(self, index: int) -> Frame:
        """The frame of this number.

        Args:
            index: In display order from 0; a negative one counts from the end.

        Raises:
            FrameIndexError: There is no such frame.
            CorruptVideoError: The file is damaged or cut short there.
            DecodeError: The decoder gave another frame.
        """
        return self.get_frames_at([index])[0]

    def get_frames_at(
        self, indices: Sequence[int] | NDArray[np.integer[Any]], *, out: Pixels | None = None
    ) -> FrameBatch:
        """The frames of these numbers, in the order asked for.

        Args:
            indices: (T,) numbers in display order from 0; negative ones count from the end.
            out: (T, H, W, 3) uint8 to decode into; None makes a new one.

        Raises:
            FrameIndexError: There is no such frame.
            CorruptVideoError: The file is damaged or cut short there.
            DecodeError: The decoder gave another frame.
        """
        if isinstance(out, (list, tuple)):
            raise TypeError("out is one array; read_into takes several")
        if out is not None:
            return read_batch(self.path, out, self.read_into(indices, out), self.table)
        frames = self._checked_all(indices)
        pixels = self._allocate(len(frames))
        with self._lock:
            self._read(frames, pixels)
        return read_batch(self.path, pixels, frames, self.table)

    def read_into(
        self, indices: Sequence[int] | NDArray[np.integer[Any]], targets: Targets
    ) -> list[int]:
        """Decode frames to places that the caller owns; see ``get_frames_at``.

        Args:
            indices: (T,) numbers in display order from 0; negative ones count from the end.
            targets: One (H, W, 3) uint8 array for each, or one (T, H, W, 3) array.

        Returns:
            The numbers of the frames, none of them negative.
        """
        frames = self._checked_all(indices)
        targets = self._checked_targets(targets, len(frames))
        with self._lock:
            self._read(frames, targets)
        return frames

    def get_frames_in_range(self, start: int, stop: int, step: int = 1) -> FrameBatch:
        """The frames ``start, start + step, ...`` before ``stop``, as slices count."""
        return self.get_frames_at(range(*slice(start, stop, step).indices(len(self))))

    def get_frame_played_at(self, seconds: float) -> Frame:
        """The frame on display at this time; see ``get_frames_played_at``."""
        return self.get_frames_played_at([seconds])[0]

    def get_frames_played_at(self, seconds: ArrayLike) -> FrameBatch:
        """The frames on display at these times, in the order asked for.

        Args:
            seconds: (T,) times on the stream's clock. A frame is on display from its own
                timestamp until the next frame's.

        Raises:
            TimeRangeError: No frame is on display then, or the time is not a number.
        """
        return self.get_frames_at(self.indices_played_at(seconds))

    def indices_played_at(self, seconds: ArrayLike) -> NDArray[np.int64]:
        """The numbers of the frames on display at these times; see ``get_frames_played_at``."""
        times = np.atleast_1d(np.asarray(seconds, np.float64))
        pts = self._clock()
        end = self.table.end_seconds()
        outside = ~((times >= pts[0]) & (times < end))
        if outside.any():
            raise TimeRangeError(
                f"no frame is on display at {times[outside][0]} s",
                remedy=f"Ask for a time from {pts[0]:.6f} s to before {end:.6f} s",
                path=self.path,
            )
        return np.searchsorted(pts, times, side="right") - 1

    def indices_nearest(self, seconds: ArrayLike) -> NDArray[np.int64]:
        """The numbers of the frames that appear nearest to these times.

        Args:
            seconds: (T,) times on the stream's clock; between two frames' times the nearer one
                is taken, the earlier one where they are equally near.

        Raises:
            TimeRangeError: A time is not a number, or the file gives no times.
        """
        times = np.atleast_1d(np.asarray(seconds, np.float64))
        pts = self._clock()
        if not np.isfinite(times).all():
            raise TimeRangeError(
                f"{times[~np.isfinite(times)][0]} is no time in seconds", path=self.path
            )
        after = np.clip(np.searchsorted(pts, times), 1, max(len(pts) - 1, 1))
        if len(pts) == 1:
            return np.zeros(len(times), np.int64)
        earlier_is_near = times - pts[after - 1] <= pts[after] - times
        return np.where(earlier_is_near, after - 1, after)

    def reader_of_its_own(self) -> Video:
        """Another reader of the same file, to go through it while others are read in turn.

        It keeps a decoder for itself, with its place, where readers share some otherwise.
        """
        request = self._request._replace(keeps_decoder=True)
        return Video(self.path, self.table, Choice(self._backend, self._reason, request, None))

    def close(self) -> None:
        """Give back memory and file descriptors. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._drop_decoder()

    def __enter__(self) -> Video:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # When the interpreter ends, modules may be gone, and the system closes all files.
        if getattr(self, "_decoder", None) is not None and not is_finalizing():
            self._drop_decoder()

    def __reduce__(self) -> tuple[Any, ...]:
        from reelseek.video._open import open_video

        options = {
            "backend": self._backend,
            "device": self._request.device,
            "threads": self._request.threads,
        }
        return _reopened, (open_video, self.path, options)

    def __repr__(self) -> str:
        stream = self.table.stream
        return (
            f"Video({self.path!r}, {len(self)} frames, {stream.width}x{stream.height} "
            f"{stream.codec}, backend={self._backend!r})"
        )

    @functools.cached_property
    def pts_seconds(self) -> NDArray[np.float64]:
        """(N,) when each frame appears, in seconds; NaN where the file has no timestamps."""
        return self.table.pts_seconds()

    @functools.cached_property
    def has_unique_pts(self) -> bool:
        """True where a timestamp tells one frame from all others."""
        return self.table.has_unique_pts

    def _clock(self) -> NDArray[np.float64]:
        if not self.has_unique_pts:
            raise TimeRangeError(
                "the file gives its frames no times of their own",
                remedy="Read its frames by number",
                path=self.path,
            )
        return self.pts_seconds

    def _checked_all(self, indices: Sequence[int] | NDArray[np.integer[Any]]) -> list[int]:
        """Frame numbers in ``range(len(self))``, of frames that can be read."""
        count = len(self.table)
        frames = [
            index if type(index) is int and 0 <= index < count else self._checked(index)
            for index in indices
        ]
        damaged = self.table.damaged_among(frames)
        if damaged:
            raise CorruptVideoError(
                "the bytes on the way to this frame are damaged, or the file's index is",
                remedy="Copy the file again from its source, or leave the episode out",
                path=self.path,
                frame=damaged[0],
            )
        return frames

    def _checked(self, index: int) -> int:
        """A frame number in ``range(len(self))``."""
        count = len(self)
        try:
            frame = operator.index(index)
        except TypeError as exc:
            raise FrameIndexError(
                f"{index!r} is no frame number",
                remedy="Give an integer, or ask by time with get_frames_played_at",
                path=self.path,
            ) from exc
        if 0 <= frame < count:
            return frame
        if self.table.is_cut_short:
            listed = self.table.stream.num_frames_from_header
            raise CorruptVideoError(
                f"the file is cut short or damaged: {count} frames can be read"
                + (f" of the {listed} in its header" if listed else ""),
                remedy="Copy it again from its source, and compare the sizes",
                path=self.path,
                frame=frame,
            )
        if -count <= frame < 0:
            return frame + count
        raise FrameIndexError(
            f"no frame {frame}",
            remedy=f"Its {count} frames are 0 to {count - 1}, or -{count} to -1 from the end",
            path=self.path,
            frame=frame,
        )

    def _checked_targets(self, targets: Targets, count: int) -> Targets:
        """The caller's memory as decoders take it: arrays where they decode on the CPU."""
        if len(targets) != count:
            raise ValueError(f"{count} frames don't go into {len(targets)} places")
        size = (self.table.stream.height, self.table.stream.width, 3)
        for target in targets:
            is_bytes = target.dtype == np.uint8 or str(target.dtype) == "torch.uint8"
            if not is_bytes or tuple(target.shape) != size:
                raise ValueError(
                    f"a frame is {size} and uint8; it doesn't go into {tuple(target.shape)} "
                    f"and {target.dtype}"
                )
        if self._request.device != "cpu" or all(type(target) is np.ndarray for target in targets):
            return targets
        return [_array(target) for target in targets]

    def _read(self, frames: list[int], targets: Targets) -> None:
        """Decode with the process's own decoder; one that failed is never used again."""
        decoder = self._own_decoder()
        if not frames:
            return
        self._num_reads += 1
        if self._num_reads == MANY_READS:
            self.table = self.table.for_many_reads()
        try:
            decoder.read(frames, targets)
        except BaseException as exc:
            self._drop_decoder()
            if isinstance(exc, IndexFileError):  # whoever found it didn't know of which video
                exc.path = self.path
            raise

    def _allocate(self, count: int) -> Pixels:
        shape = (count, self.table.stream.height, self.table.stream.width, 3)
        if self._request.device == "cpu":
            return np.empty(shape, np.uint8)
        import torch

        return torch.empty(shape, dtype=torch.uint8, device=self._request.device)

    def _own_decoder(self) -> Decoder:
        if self._closed:
            raise ClosedVideoError("the video is closed", path=self.path)
        if self._decoder is not None and self._pid != os.getpid():
            _inherited.append(self._decoder)
            self._decoder = None
        if self._decoder is None:
            self._pid = os.getpid()
            self._decoder = open_decoder(self._backend, self._request)
        return self._decoder

    def _drop_decoder(self) -> None:
        decoder, self._decoder = self._decoder, None
        if decoder is None:
            return
        if self._pid != os.getpid():
            _inherited.append(decoder)
        else:
            decoder.close()


def _array(target: Any) -> NDArray[np.uint8]:
    """The same memory as an array."""
    if isinstance(target, np.ndarray):
        return target
    if target.device.type != "cpu":
        raise ValueError(f"the video is decoded on the CPU, and not into memory of {target.device}")
    array: NDArray[np.uint8] = target.numpy()
    return array


def _reopened(open_video: Any, path: str, options: dict[str, Any]) -> Video:
    video: Video = open_video(path, **options)
    return video
