"""Pictures of many samples at once: the frames of one file are decoded in one pass."""

from __future__ import annotations

import bisect
import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._memory import NewPixels, writable
from reelseek.datasets._pool import Task
from reelseek.datasets._records import VideoSpan
from reelseek.datasets._video_cache import VideoCache
from reelseek.errors import DatasetFormatError, TimestampToleranceError, VideoLengthError
from reelseek.types import Pixels
from reelseek.video import Video


@dataclass(frozen=True, slots=True)
class FrameRequest:
    """The frames of one camera for one sample."""

    span: VideoSpan
    """Where the episode's frames are."""
    episode: int
    """The episode's number."""
    length: int
    """The episode's number of frames."""
    rows: NDArray[np.int64]
    """(T,) rows of the episode."""
    times: NDArray[Any]
    """(L,) the times of all rows on the episode's clock, in seconds, as they are stored; the first
    is 0 in a sound dataset."""
    fps: float
    """Frames a second."""

    def slack_seconds(self) -> NDArray[np.float64] | float:
        """(T,) how far off each time may be only because the file keeps it as a 32-bit float.

        Never so much that two frames could be meant.
        """
        if self.times.dtype != np.float32:
            return 0.0
        spacing = np.spacing(np.abs(self.times[self.rows]))
        slack: NDArray[np.float64] = np.minimum(spacing.astype(np.float64), 0.25 / self.fps)
        return slack


NOT_YET: NDArray[np.int64] = np.empty(0, np.int64)
"""Stands for the frames of an episode that was read from once."""


class KnownFrames:
    """Frame numbers of whole episodes, worked out once for each open video.

    Threads: safe; two may do the same work. Fork: what is known goes along. Pickling: the
    tolerance.
    """

    def __init__(self, tolerance_seconds: float) -> None:
        self._tolerance = tolerance_seconds
        self._of_video: WeakKeyDictionary[Video, dict[int, NDArray[np.int64] | None]]
        self._of_video = WeakKeyDictionary()

    def numbers(self, video: Video, request: FrameRequest, key: str) -> NDArray[np.int64]:
        """``frame_numbers`` of the request."""
        episodes = self._of_video.get(video)
        if episodes is None:
            episodes = self._of_video[video] = {}
        if request.episode not in episodes:
            episodes[request.episode] = NOT_YET
            # A first read shouldn't pay for later ones.
            numbers = numbers_at_a_glance(video, request, self._tolerance)
            if numbers is not None:
                return numbers
        known = episodes[request.episode]
        if known is NOT_YET:
            known = episodes[request.episode] = self._whole_episode(video, request, key)
        if known is not None:
            return known[request.rows]
        return frame_numbers(video, request, self._tolerance, key)

    def _whole_episode(
        self, video: Video, request: FrameRequest, key: str
    ) -> NDArray[np.int64] | None:
        """All frames of the episode; None where not all rows have one, so each is looked at."""
        whole = dataclasses.replace(request, rows=np.arange(request.length))
        try:
            return frame_numbers(video, whole, self._tolerance, key)
        except TimestampToleranceError:
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        return KnownFrames, (self._tolerance,)


class KeptFrames(Protocol):
    """Frames that were decoded before they are asked for."""

    def take(self, path: str, frame: int, target: Pixels) -> bool:
        """Write a frame, where it is kept; it may be gone afterwards.

        Args:
            path: The video file.
            frame: The frame's number there.
            target: (H, W, 3) uint8.
        """
        ...


def plan_reads(
    videos: VideoCache,
    requests: Sequence[FrameRequest],
    known: KnownFrames,
    key: str,
    new_pixels: NewPixels,
    kept: KeptFrames | None = None,
) -> tuple[Pixels, list[Task]]:
    """Frames of one camera for several samples: a task for each file.

    Returns:
        (B, T, H, W, 3) uint8, contiguous, which is RGB when all tasks have run; what
        ``new_pixels`` made.

    Raises (or the tasks do):
        VideoLengthError: A video is shorter than its episode.
        TimestampToleranceError: A row's time is further than the tolerance from any frame.
        DatasetFormatError: The files' pictures differ in size.
        VideoError: A video can't be read.
    """
    files = _by_file(requests)
    stream = videos.get(next(iter(files))).table.stream
    shape = (len(requests), len(requests[0].rows), stream.height, stream.width, 3)
    pixels = new_pixels(shape)
    places_of = writable(pixels)

    def read(path: str, places: list[int]) -> None:
        video = videos.get(path)
        _check_size(video, pixels, key)
        frames: list[int] = []
        targets: list[Pixels] = []
        for place in places:
            numbers = known.numbers(video, requests[place], key).tolist()
            for frame, target in zip(numbers, places_of[place], strict=True):
                if kept is None or not kept.take(path, frame, target):
                    frames.append(frame)
                    targets.append(target)
        video.read_into(frames, targets)

    return pixels, [functools.partial(read, path, places) for path, places in files.items()]


def numbers_at_a_glance(
    video: Video, request: FrameRequest, tolerance_seconds: float
) -> NDArray[np.int64] | None:
    """What ``frame_numbers`` gives, where a look at these frames alone shows it; else None.

    So it is where the episode has a frame for each row, and is alone in its file, from time 0 on,
    or between two times of it.
    """
    span, length = request.span, request.length
    if not span.is_whole_file:
        return _numbers_between(video, request, tolerance_seconds)
    if span.from_seconds != 0 or span.to_seconds is not None or len(video) != length:
        return None
    frames = [0, *request.rows.tolist()]
    seconds, times = video.table.seconds_at(frames), request.times[frames].tolist()
    start, own_start = seconds[0], times[0]
    if start >= 0 and _are_near(seconds, times, start, own_start, tolerance_seconds):
        return request.rows
    return None


def _numbers_between(
    video: Video, request: FrameRequest, tolerance_seconds: float
) -> NDArray[np.int64] | None:
    start, end = request.span.from_seconds, request.span.to_seconds
    if end is None or not video.has_unique_pts:
        return None
    pts = video.pts_seconds
    after = min(max(bisect.bisect_left(pts, start), 1), len(pts) - 1)
    if after < 1:
        return None
    first = after - 1 if start - pts[after - 1] <= pts[after] - start else after
    if bisect.bisect_left(pts, end - 0.5 / request.fps) - first != request.length:
        return None
    numbers: NDArray[np.int64] = first + request.rows
    seconds, times = pts[numbers].tolist(), request.times[request.rows].tolist()
    own_start = float(request.times[0])
    return numbers if _are_near(seconds, times, start, own_start, tolerance_seconds) else None


def _are_near(
    seconds: list[float], times: list[float], start: float, own_start: float, tolerance: float
) -> bool:
    """True where times from one start are as far from it as times from another."""
    return all(
        abs(second - start - (time - own_start)) <= tolerance
        for second, time in zip(seconds, times, strict=True)
    )


def frame_numbers(
    video: Video, request: FrameRequest, tolerance_seconds: float, key: str
) -> NDArray[np.int64]:
    """(T,) the numbers, in the video, of a request's frames.

    Where the episode has as many frames as rows, row i is its frame i, whatever its clock starts
    at (GR00T's starts at the second frame); otherwise the frame nearest to the row's time. Either
    way the times have to agree within the tolerance.
    """
    if not video.has_unique_pts:
        return _counted(video, request, key)
    start, seconds = request.span.from_seconds, request.times[request.rows].astype(np.float64)
    first = int(video.indices_nearest(start)[0])
    _check_length(video, request, first, key)
    count = _num_frames(video, request, first)
    if count == request.length:
        start = float(video.pts_seconds[0]) if request.span.is_whole_file else start
        own_start = float(request.times[0])
        numbers, wanted = first + request.rows, start + seconds - own_start
    else:
        wanted = start + seconds
        numbers = video.indices_nearest(wanted)
    off = np.abs(video.pts_seconds[numbers] - wanted)
    beyond = off - request.slack_seconds()
    beyond[(numbers < first) | (numbers >= first + max(count, request.length))] = np.inf
    worst = int(np.argmax(beyond))
    if beyond[worst] > tolerance_seconds:
        place = f"episode {request.episode}, row {int(request.rows[worst])} of {key}"
        distance = "another episode's" if np.isinf(beyond[worst]) else f"{off[worst]:.6f} s away"
        raise TimestampToleranceError(
            f"{place} is at {wanted[worst]:.6f} s, and the frame there, {int(numbers[worst])}, is "
            f"{distance}",
            remedy="If the recording is meant to be that uneven, pass a larger tolerance_s; "
            f"it is {tolerance_seconds:g}",
            path=video.path,
        )
    return numbers


def _num_frames(video: Video, request: FrameRequest, first: int) -> int:
    """The episode's frames in its video, from the first on."""
    end = request.span.to_seconds
    if end is None:
        return len(video) - first
    return int(np.searchsorted(video.pts_seconds, end - 0.5 / request.fps)) - first


def _counted(video: Video, request: FrameRequest, key: str) -> NDArray[np.int64]:
    """Frames of a video without times, which are the rows where the video is the episode's own."""
    if request.span.from_seconds != 0:
        raise DatasetFormatError(
            f"episode {request.episode} starts at {request.span.from_seconds:.6f} s in its video "
            f"of {key}, which gives its frames no times of their own",
            remedy="Record or convert it again: such frames can't be found",
            path=video.path,
        )
    _check_length(video, request, 0, key)
    return request.rows


def _by_file(requests: Sequence[FrameRequest]) -> dict[str, list[int]]:
    files: dict[str, list[int]] = {}
    for place, request in enumerate(requests):
        files.setdefault(str(request.span.path), []).append(place)
    return files


def _check_length(video: Video, request: FrameRequest, first: int, key: str) -> None:
    left = len(video) - first
    if left < request.length:
        raise VideoLengthError(
            f"episode {request.episode} has {request.length} rows, and its video of {key} "
            f"{left} frames" + (f" from frame {first} on" if first else ""),
            remedy="Copy the video again, or leave the episode out with `episodes=`",
            path=video.path,
        )


def _check_size(video: Video, pixels: Pixels, key: str) -> None:
    stream = video.table.stream
    if tuple(pixels.shape[2:4]) != (stream.height, stream.width):
        raise DatasetFormatError(
            f"videos of {key} differ in size: {stream.width}x{stream.height} and "
            f"{pixels.shape[3]}x{pixels.shape[2]}",
            remedy="Re-encode them to one size, or read them one at a time",
            path=video.path,
        )
