"""The oracle: what FFmpeg displays when it decodes a whole file from start to end.

It is deliberately plain: every packet is demuxed and decoded in turn, decoding goes on after an
error, and each frame is turned for display pixel by pixel. It shares no code with reelseek, so a
fault in reelseek's numbering, seeking or orientation can't hide in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import av
import numpy as np
from av.video.reformatter import Interpolation, VideoReformatter
from numpy.typing import NDArray

from tests import corpus

Picture = NDArray[np.uint8]
LENIENT: dict[str, Any] = {"metadata_errors": "replace"} if av.__version__ < "19" else {}
"""What older PyAV has to be told about metadata that isn't UTF-8."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """All frames of a file in the order in which FFmpeg displays them."""

    pts: tuple[int | None, ...]
    """Presentation timestamps in ticks of the stream's time base."""
    frames: tuple[Picture, ...]
    """RGB uint8 pictures (H, W, 3), as displayed."""

    @property
    def has_unique_pts(self) -> bool:
        """True where a timestamp tells one frame from all others."""
        return None not in self.pts and len(set(self.pts)) == len(self.pts)

    def at(self, number: int, pts: int) -> Picture | None:
        """The frame with this timestamp; by number where timestamps don't tell frames apart."""
        if self.has_unique_pts:
            return self.frames[self.pts.index(pts)] if pts in self.pts else None
        return self.frames[number] if number < len(self.frames) else None


@lru_cache(maxsize=64)
def clip(name: str) -> Decoded:
    """What FFmpeg displays of a clip of the corpus; decoded once per session."""
    return decode(str(corpus.clip_path(name)))


def decode(path: str) -> Decoded:
    """Decode a file from start to end."""
    pts: list[int | None] = []
    frames: list[Picture] = []
    reformatter = VideoReformatter()
    with av.open(path, **LENIENT) as container:
        for frame in _frames(container):
            rgb = reformatter.reformat(
                frame, format="rgb24", interpolation=Interpolation.BICUBIC, threads=1
            )
            pts.append(frame.pts)
            picture = np.asarray(rgb.to_ndarray(), np.uint8)
            frames.append(_as_displayed(picture, _display_matrix(frame)))
    return Decoded(tuple(pts), tuple(frames))


def _frames(container: Any) -> Iterator[Any]:
    stream = container.streams.best("video")
    stream.codec_context.thread_count = 1
    for packet in container.demux(stream):
        try:
            yield from packet.decode()
        except av.error.FFmpegError:
            continue


def _display_matrix(frame: Any) -> tuple[int, ...]:
    matrix = frame.side_data.get("DISPLAYMATRIX")
    if matrix is not None:
        return struct.unpack("=9i", bytes(matrix))
    return (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)


def _as_displayed(picture: Picture, matrix: tuple[int, ...]) -> Picture:
    """Move each pixel to where the matrix puts it: x' = ax + cy, y' = bx + dy."""
    a, b, _u, c, d, *_rest = (np.sign(value) for value in matrix)
    y, x = np.indices(picture.shape[:2])
    to_x, to_y = a * x + c * y, b * x + d * y
    to_x, to_y = to_x - to_x.min(), to_y - to_y.min()
    displayed = np.empty((to_y.max() + 1, to_x.max() + 1, 3), np.uint8)
    displayed[to_y, to_x] = picture
    return displayed


@cache
def whole_clips() -> tuple[str, ...]:
    """Names of the clips that are videos without damage."""
    return tuple(clip.name for clip in corpus.CLIPS if clip.sound and clip.whole)


@cache
def damaged_clips() -> tuple[str, ...]:
    """Names of the clips that are videos with damage."""
    return tuple(clip.name for clip in corpus.CLIPS if clip.sound and not clip.whole)
