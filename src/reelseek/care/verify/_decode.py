"""Decoding a video from start to end, and watching its pictures: cheap beside the decoder.

Of each picture some rows of the luma plane are looked at in place; nothing is converted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.index import NO_PTS, FrameTable
from reelseek.index._source import best_video_stream, open_container

ROWS_WATCHED = 32
"""Rows of a picture that are looked at, evenly spread."""
STILL_LEVELS = 8
"""Levels of 255 by which no watched pixel of a still stretch leaves the stretch's first frame: a
codec's own unrest stays below, and what moves in view soon passes it."""
EQUAL_LEVELS = 1
"""The same for a frame that repeats the one before it."""
BLACK_LEVEL, BLACK_LEVEL_FULL = 20, 6
"""The brightest luma of a black picture, in limited range (where 16 is black) and in full range."""
FULL_RANGE = 2
SHORT_RUN = 2
"""Frames of the shortest still stretch that is kept."""

Runs = list[list[int]]


def decoded_facts(path: str, table: FrameTable) -> dict[str, Any]:
    """What decoding a file from start to end, on one thread, shows.

    Returns:
        ``num_frames``; ``fault``, the decoder's last word where it stopped early; ``corrupt``,
        runs of frames that the decoder marks as damaged; ``misplaced``, the first frame whose
        time isn't the index's, or None; ``still``, ``equal`` and ``black``, runs of frames that
        don't move (as the first of the run), that repeat the one before them, and that are black.
    """
    import av

    watch = Watch()
    times: list[int] = []
    corrupt: list[int] = []
    fault = ""
    with open_container(path) as container:
        stream = best_video_stream(container)
        stream.codec_context.thread_count = 1
        see = watch.see
        try:
            for frame in container.decode(stream):
                if frame.is_corrupt:
                    corrupt.append(len(times))
                times.append(NO_PTS if frame.pts is None else frame.pts)
                see(frame)
        except av.error.FFmpegError as exc:
            fault = str(exc)
    return {
        "num_frames": len(times),
        "fault": fault,
        "corrupt": _runs(corrupt),
        "misplaced": _misplaced(np.array(times, np.int64), table.pts),
        **watch.result(),
    }


def _misplaced(times: NDArray[np.int64], known: NDArray[np.int64]) -> int | None:
    count = min(len(times), len(known))
    wrong = np.flatnonzero(times[:count] != known[:count])
    return int(wrong[0]) if len(wrong) else None


def _runs(numbers: list[int]) -> Runs:
    """The first and last of each run of successive numbers."""
    runs: Runs = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


class Watch:
    """Follows the pictures of a video, one by one."""

    def __init__(self) -> None:
        self._count = 0
        self._rows: Callable[[Any], NDArray[Any]] | None = None
        self._shape: tuple[int, int, str] | None = None
        self._before: NDArray[Any] | None = None
        self._anchor: NDArray[Any] | None = None
        self._anchor_at = 0
        self._unit = 1
        self._black_most = BLACK_LEVEL
        self._still: Runs = []
        self._equal: list[int] = []
        self._black: list[int] = []

    def see(self, frame: Any) -> None:
        """Look at the next picture."""
        number = self._count
        self._count += 1
        shape = (frame.width, frame.height, frame.format.name)
        if shape != self._shape:
            self._begin(frame, shape)
        if self._rows is None:
            return
        rows = self._rows(frame)
        if rows.max() <= self._black_most:
            self._black.append(number)
        before, self._before = self._before, rows
        apart = np.inf if before is None else _most_apart(rows, before)
        if apart <= EQUAL_LEVELS * self._unit:
            self._equal.append(number)
        # What is far from the frame before it is no part of that one's stretch.
        if apart > 2 * STILL_LEVELS * self._unit or self._leaves(rows):
            self._end_stretch(number)
            self._anchor, self._anchor_at = rows, number

    def result(self) -> dict[str, Any]:
        """What was seen: ``still``, ``equal`` and ``black``, as runs of frames."""
        self._end_stretch(self._count)
        return {"still": self._still, "equal": _runs(self._equal), "black": _runs(self._black)}

    def _leaves(self, rows: NDArray[Any]) -> bool:
        assert self._anchor is not None
        return _most_apart(rows, self._anchor) > STILL_LEVELS * self._unit

    def _end_stretch(self, end: int) -> None:
        if self._anchor is not None and end - self._anchor_at >= SHORT_RUN:
            self._still.append([self._anchor_at, end - 1])
        self._anchor = None

    def _begin(self, frame: Any, shape: tuple[int, int, str]) -> None:
        """Get ready for pictures of another shape."""
        self._end_stretch(self._count - 1)
        self._before, self._shape = None, shape
        bits = _luma_bits(frame.format)
        self._rows = None if bits is None else _row_reader(shape[0], shape[1], bits)
        self._unit = 1 if bits is None else 1 << (bits - 8)
        is_full = int(frame.color_range) == FULL_RANGE or frame.format.name.startswith("yuvj")
        self._black_most = (BLACK_LEVEL_FULL if is_full else BLACK_LEVEL) * self._unit


def _luma_bits(pixel_format: Any) -> int | None:
    """Bits of a luma sample; None where the first plane holds something else beside it."""
    name = pixel_format.name
    if not name.startswith(("yuv4", "yuvj4", "yuva4", "gray", "nv12", "nv16")):
        return None
    bits = int(pixel_format.components[0].bits)
    return bits if 8 <= bits <= 16 and not name.endswith("be") else None


def _row_reader(width: int, height: int, bits: int) -> Callable[[Any], NDArray[Any]]:
    """A function that copies the watched rows out of a picture's first plane."""
    kind = np.uint8 if bits == 8 else np.uint16
    every = max(1, height // ROWS_WATCHED)
    first = every // 2

    def rows(frame: Any) -> NDArray[Any]:
        plane = frame.planes[0]
        pixels = np.frombuffer(plane, kind)
        stride = plane.line_size // pixels.itemsize
        return pixels[: stride * height].reshape(height, stride)[first::every, :width].copy()

    return rows


def _most_apart(one: NDArray[Any], other: NDArray[Any]) -> int:
    """The largest difference of two pictures' samples."""
    return int((np.maximum(one, other) - np.minimum(one, other)).max())
