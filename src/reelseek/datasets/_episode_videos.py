"""The videos of a dataset's episodes: their files, and where each row's frame is in them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._frames import FrameRequest, KeptFrames, KnownFrames, plan_reads
from reelseek.datasets._keys import CameraKey
from reelseek.datasets._memory import NewPixels
from reelseek.datasets._pool import Task
from reelseek.datasets._records import Layout
from reelseek.datasets._values import Place
from reelseek.datasets._video_cache import VideoCache, max_open_videos
from reelseek.index import DatasetIndex
from reelseek.types import Pixels
from reelseek.video import Video
from reelseek.video._open import open_with_tables

SPANS_KEPT = 65536
"""Episodes' places in videos that are remembered, over all cameras."""


@dataclass(frozen=True, slots=True)
class VideoOptions:
    """How a dataset's videos are read."""

    backend: str
    device: str
    tolerance_seconds: float
    """How far a row's time may be from its frame's."""
    max_open: int | None
    """Videos kept open in each process; None for the default."""


class EpisodeVideos:
    """The videos of a dataset's episodes, some of them open.

    Threads: safe. Fork: each process has its own decoders. Pickling: without open files.
    """

    def __init__(
        self, layout: Layout, index: DatasetIndex, fps: float, options: VideoOptions
    ) -> None:
        self._parts = (layout, index, fps, options)
        self._fps = fps
        self._known = KnownFrames(options.tolerance_seconds)
        # A path is made from a template and checked against the root: once is enough.
        self._span_of = functools.lru_cache(SPANS_KEPT)(layout.video_of)
        open_one = functools.partial(_open, index, backend=options.backend, device=options.device)
        self._open = VideoCache(open_one, max_open_videos(options.max_open))

    def frames(
        self, camera: CameraKey, place: Place, rows: NDArray[np.int64]
    ) -> tuple[Video, NDArray[np.int64]]:
        """The video of a place's episode, and the numbers of the frames of some of its rows.

        Args:
            camera: A camera kept as video.
            place: A row of the episode.
            rows: (T,) rows of the episode.
        """
        request = self._request(camera, place, rows)
        video = self._open.get(str(request.span.path))
        return video, self._known.numbers(video, request, camera.key)

    def plan(
        self,
        camera: CameraKey,
        places: list[Place],
        windows: NDArray[np.int64],
        new_pixels: NewPixels,
        kept: KeptFrames | None,
    ) -> tuple[Pixels, list[Task]]:
        """(B, T, H, W, 3) pictures of one camera, and the tasks that put them there.

        Args:
            camera: A camera kept as video.
            places: B rows of episodes.
            windows: (B, T) the rows of each one's episode whose frames are read.
            new_pixels: Makes the memory that frames are decoded into.
            kept: Frames that were decoded before.
        """
        requests = [
            self._request(camera, place, rows) for place, rows in zip(places, windows, strict=True)
        ]
        return plan_reads(self._open, requests, self._known, camera.key, new_pixels, kept)

    def close(self) -> None:
        """Close the open videos; the next read opens them again."""
        self._open.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return EpisodeVideos, self._parts

    def _request(self, camera: CameraKey, place: Place, rows: NDArray[np.int64]) -> FrameRequest:
        return FrameRequest(
            span=self._span_of(place.rows.position, camera.camera),
            episode=place.rows.episode,
            length=place.length,
            rows=rows,
            times=place.rows.times(self._fps),
            fps=self._fps,
        )


def _open(index: DatasetIndex, path: str, *, backend: str, device: str) -> Video:
    tables = index.lookup(path)
    return open_with_tables(path, tables, backend=backend, device=device, threads=1)
