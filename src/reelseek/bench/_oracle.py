"""The outside oracle: FFmpeg's own decode of a file from start to end, and what a frame shows.

A decoder's frame is told by a digest of all its pixels. Where that differs from every digest of
the oracle, because the decoder converts colours in a way of its own, the frame is the one whose
pixels on a coarse grid are nearest.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.index import NO_PTS, FrameTable, index_video
from reelseek.index._source import best_video_stream, open_container

GRID_SIDE = 64
"""Grid points per side, fewer in long videos."""
GRID_BYTES = 1 << 24
"""What the grids of one file's frames may take together."""
SAME_LEVELS = 0.05
"""Two frames whose mean distances differ by no more levels than this can't be told apart."""
CHUNK = 256


@dataclass(frozen=True, slots=True)
class Match:
    """What a frame returned by a decoder turned out to be."""

    is_right: bool
    """True where it is the frame asked for, or can't be told apart from it."""
    shown: int
    """The number of the frame that it is; -1 where it is none of them."""
    difference: int
    """The largest difference from the oracle's pixels, in levels of 0 to 255."""


@dataclass(frozen=True, slots=True, eq=False)
class Oracle:
    """The frames of one file as FFmpeg decodes them in one go."""

    digests: NDArray[np.bytes_]
    """(N,) one digest of all pixels for each frame."""
    grids: NDArray[np.uint8]
    """(N, h, w, 3) each frame's pixels on a coarse grid."""
    pts_seconds: NDArray[np.float64]
    """(N,) when each frame appears, in seconds; NaN where the file has no timestamps."""
    is_sound: NDArray[np.bool_]
    """(N,) False where FFmpeg had to invent parts of the frame, or its size isn't ``shape``."""
    has_shape: NDArray[np.bool_]
    """(N,) False where the picture's size isn't ``shape``."""
    shape: tuple[int, int, int]
    """(H, W, 3), as the frame table has it."""

    def match(self, frame: int, pixels: NDArray[np.uint8]) -> Match:
        """Compare what a decoder returned for ``frame`` with the oracle's frames."""
        if pixels.shape != self.shape:
            return Match(False, -1, 255)
        found = digest(pixels)
        if found == self.digests[frame]:
            return Match(True, frame, 0)
        same = np.flatnonzero(self.digests == found)
        if len(same):
            nearest = int(same[np.argmin(np.abs(same - frame))])
            return Match(False, nearest, self._difference(frame, pixels))
        distances = self._distances(_grid(pixels, self.grids.shape[1]))
        nearest = int(np.argmin(distances))
        is_right = bool(distances[frame] - distances[nearest] <= SAME_LEVELS)
        return Match(is_right, frame if is_right else nearest, self._difference(frame, pixels))

    def save(self, path: Path) -> None:
        """Write it for another process to load."""
        np.savez(
            path,
            digests=self.digests,
            grids=self.grids,
            pts_seconds=self.pts_seconds,
            is_sound=self.is_sound,
            has_shape=self.has_shape,
            shape=np.array(self.shape),
        )

    @classmethod
    def load(cls, path: str) -> Oracle:
        """Read what ``save`` wrote."""
        with np.load(path) as saved:
            height, width, channels = saved["shape"].tolist()
            return cls(
                digests=saved["digests"],
                grids=saved["grids"],
                pts_seconds=saved["pts_seconds"],
                is_sound=saved["is_sound"],
                has_shape=saved["has_shape"],
                shape=(height, width, channels),
            )

    def _difference(self, frame: int, pixels: NDArray[np.uint8]) -> int:
        grid = _grid(pixels, self.grids.shape[1]).astype(np.int16)
        return int(np.abs(self.grids[frame].astype(np.int16) - grid).max())

    def _distances(self, grid: NDArray[np.uint8]) -> NDArray[np.float64]:
        """(N,) the mean difference of each frame from this one, in levels."""
        wanted = grid.astype(np.int16)
        chunks = (self.grids[n : n + CHUNK] for n in range(0, len(self.grids), CHUNK))
        return np.concatenate(
            [np.abs(chunk - wanted, dtype=np.int16).mean(axis=(1, 2, 3)) for chunk in chunks]
        )


@dataclass(slots=True)
class _Seen:
    digests: list[bytes] = field(default_factory=list)
    grids: list[NDArray[np.uint8]] = field(default_factory=list)
    pts_seconds: list[float] = field(default_factory=list)
    is_sound: list[bool] = field(default_factory=list)
    has_shape: list[bool] = field(default_factory=list)

    def add(
        self,
        pixels: NDArray[np.uint8],
        shape: tuple[int, int, int],
        side: int,
        seconds: float,
        *,
        is_whole: bool,
    ) -> None:
        """Keep what is needed of the next frame."""
        has_shape = pixels.shape == shape
        # A frame of another size is never compared; any grid of the right size will do for it.
        self.grids.append(_grid(pixels if has_shape else np.zeros(shape, np.uint8), side))
        self.digests.append(digest(pixels))
        self.pts_seconds.append(seconds)
        self.is_sound.append(is_whole and has_shape)
        self.has_shape.append(has_shape)

    def oracle(self, shape: tuple[int, int, int]) -> Oracle:
        """All frames together."""
        return Oracle(
            digests=np.array(self.digests, "S32"),
            grids=np.array(self.grids, np.uint8),
            pts_seconds=np.array(self.pts_seconds, np.float64),
            is_sound=np.array(self.is_sound, bool),
            has_shape=np.array(self.has_shape, bool),
            shape=shape,
        )


def decode_all(path: str, *, until: int | None = None) -> tuple[FrameTable, Oracle]:
    """Decode a file from its start, as FFmpeg displays it.

    Args:
        path: A local file.
        until: The last frame that is needed; None for all.

    Returns:
        The file's frame table and its frames. Decoding ends at the first damage.

    Raises:
        VideoNotFoundError, NotAVideoError, CorruptVideoError: As ``index_video``.
    """
    import av
    from av.video.reformatter import Interpolation, VideoReformatter

    table = index_video(path)
    stream_info = table.stream
    shape = (stream_info.height, stream_info.width, 3)
    side = min(GRID_SIDE, max(8, int((GRID_BYTES / 3 / max(1, len(table))) ** 0.5)))
    reformatter = VideoReformatter()
    seen = _Seen()
    with open_container(path) as container:
        stream = best_video_stream(container)
        try:
            for number, picture in enumerate(container.decode(stream)):
                rgb: Any = reformatter.reformat(
                    picture, format="rgb24", interpolation=Interpolation.BICUBIC
                ).to_ndarray()
                pixels = np.ascontiguousarray(stream_info.orientation.apply(rgb))
                seconds = _seconds(picture, stream_info.time_base)
                seen.add(pixels, shape, side, seconds, is_whole=not picture.is_corrupt)
                if number == until:
                    break
        except av.error.FFmpegError:
            pass  # the frames before the damage are what a decoder can be held to
    return table, seen.oracle(shape)


def _seconds(picture: Any, time_base: Any) -> float:
    if picture.pts is None or picture.pts == NO_PTS:
        return float("nan")
    return float(picture.pts * time_base)


def digest(pixels: NDArray[np.uint8]) -> bytes:
    """What tells a frame's pixels from all others."""
    memory = np.ascontiguousarray(pixels).data
    return hashlib.blake2b(memory, digest_size=16).hexdigest().encode()


def _grid(pixels: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Pixels at ``side`` places a row and ``side`` rows, or all where there are fewer."""
    height, width, _channels = pixels.shape
    rows = np.linspace(0, height - 1, min(side, height)).astype(np.intp)
    columns = np.linspace(0, width - 1, min(side, width)).astype(np.intp)
    return np.ascontiguousarray(pixels[rows[:, None], columns])
