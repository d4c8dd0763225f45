"""Decoding a video from start to end, and watching its pictures: cheap beside the decoder.

Of each picture some rows of the luma plane are looked at in place; nothing is converted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.care.verify._runs import Runs, runs_of, runs_of_numbers
from reelseek.index import NO_PTS, FrameTable
from reelseek.index._source import best_video_stream, open_container

SAMPLES_WATCHED, ROWS_WATCHED = 16384, 32
"""About so many samples of a picture are looked at, in rows that are evenly spread; but not fewer
rows than that."""
STILL_LEVELS = 8
"""Levels of 255 by which no watched pixel of a still stretch leaves the frame before, or the
stretch's first: a codec's own unrest stays below, and what moves in view soon passes it."""
EQUAL_LEVELS = 1
"""The same for a frame that repeats the one before it."""
BLACK_LEVEL, BLACK_LEVEL_FULL = 20, 6
"""The brightest luma of a black picture, in limited range (where 16 is black) and in full range."""
FULL_RANGE = 2
AT_ONCE = 16
"""Pictures that are compared in one go."""


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
        "corrupt": runs_of_numbers(corrupt),
        "misplaced": _misplaced(np.array(times, np.int64), table.pts),
        **watch.result(),
    }


def _misplaced(times: NDArray[np.int64], known: NDArray[np.int64]) -> int | None:
    count = min(len(times), len(known))
    wrong = np.flatnonzero(times[:count] != known[:count])
    return int(wrong[0]) if len(wrong) else None


class Watch:
    """Follows the pictures of a video, some at a time: a call of NumPy costs more than its work."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting = 0
        self._rows: NDArray[Any] | None = None
        self._shape: tuple[int, int, str] | None = None
        self._place = slice(0)
        self._black_most = 0
        self._unit = 1
        self._anchor: NDArray[Any] | None = None
        self._stretch = [0, -1]
        self._is_first = True
        self._still: Runs = []
        self._equal: list[int] = []
        self._black: list[int] = []

    def see(self, frame: Any) -> None:
        """Look at the next picture."""
        shape = (frame.width, frame.height, frame.format.name)
        if shape != self._shape:
            self._begin(frame, shape)
        self._count += 1
        if self._rows is None:
            return
        plane = frame.planes[0]
        pixels = np.frombuffer(plane, self._rows.dtype)
        stride = plane.line_size // self._rows.itemsize
        self._waiting += 1
        self._rows[self._waiting] = pixels[: stride * shape[1]].reshape(shape[1], stride)[
            self._place, : shape[0]
        ]
        if self._waiting == AT_ONCE:
            self._look()

    def result(self) -> dict[str, Any]:
        """What was seen: ``still``, ``equal`` and ``black``, as runs of frames."""
        self._look()
        self._end_stretch()
        return {
            "still": self._still,
            "equal": runs_of_numbers(self._equal),
            "black": runs_of_numbers(self._black),
        }

    def _begin(self, frame: Any, shape: tuple[int, int, str]) -> None:
        """Get ready for pictures of another shape, which resemble none before them."""
        self._look()
        self._end_stretch()
        self._shape, self._rows = shape, None
        bits = _luma_bits(frame.format)
        if bits is None:
            return
        width, height, name = shape
        every = max(1, height // max(ROWS_WATCHED, SAMPLES_WATCHED // width))
        self._place = slice(every // 2, None, every)
        num_rows = len(range(height)[self._place])
        self._rows = np.zeros((AT_ONCE + 1, num_rows, width), np.uint8 if bits == 8 else np.uint16)
        self._unit = 1 << (bits - 8)
        is_full = int(frame.color_range) == FULL_RANGE or name.startswith("yuvj")
        self._black_most = (BLACK_LEVEL_FULL if is_full else BLACK_LEVEL) * self._unit
        self._is_first = True

    def _look(self) -> None:
        """Compare the pictures that wait, each with the one before it."""
        count = self._waiting
        if self._rows is None or count == 0:
            return
        rows = self._rows.reshape(AT_ONCE + 1, -1)
        first = self._count - count
        before, now = rows[:count], rows[1 : count + 1]
        apart = (np.maximum(now, before) - np.minimum(now, before)).max(axis=1)
        brightest = now.max(axis=1)
        self._black += (first + np.flatnonzero(brightest <= self._black_most)).tolist()
        if self._is_first:  # there is none before it
            apart[0] = np.iinfo(apart.dtype).max
            self._is_first = False
        self._equal += (first + np.flatnonzero(apart <= EQUAL_LEVELS * self._unit)).tolist()
        for start, end in runs_of(apart <= STILL_LEVELS * self._unit):
            self._follow(first, start, end + 1, rows)
        rows[0] = rows[count]
        self._waiting = 0

    def _follow(self, first: int, start: int, end: int, rows: NDArray[Any]) -> None:
        """Take pictures that resemble the ones before them into stretches.

        Args:
            first: The number of the first picture that waits.
            start: The first of them, counted from there.
            end: The one after the last.
            rows: Those of the picture before the first, then of those that wait.
        """
        if self._anchor is None or self._stretch[1] != first + start - 1:
            self._begin_stretch(first + start - 1, rows[start])
        while start < end:
            assert self._anchor is not None
            now = rows[start + 1 : end + 1]
            apart = (np.maximum(now, self._anchor) - np.minimum(now, self._anchor)).max(axis=1)
            left = np.flatnonzero(apart > STILL_LEVELS * self._unit)
            stays = int(left[0]) if len(left) else len(now)
            self._stretch[1] += stays
            start += stays
            if start < end:
                self._begin_stretch(first + start, rows[start + 1])
                start += 1

    def _begin_stretch(self, number: int, rows: NDArray[Any]) -> None:
        self._end_stretch()
        self._anchor, self._stretch = rows.copy(), [number, number]

    def _end_stretch(self) -> None:
        first, last = self._stretch
        if self._anchor is not None and last > first:
            self._still.append([first, last])
        self._anchor = None


def _luma_bits(pixel_format: Any) -> int | None:
    """Bits of a luma sample; None where the first plane holds something else beside it."""
    name = pixel_format.name
    if not name.startswith(("yuv4", "yuvj4", "yuva4", "gray", "nv12", "nv16")):
        return None
    bits = int(pixel_format.components[0].bits)
    return bits if 8 <= bits <= 16 and not name.endswith("be") else None
