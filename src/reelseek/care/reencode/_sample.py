"""A few of a dataset's frames, encoded for a look at what comes of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reelseek.care.reencode._clock import Clock, clock_of
from reelseek.care.reencode._encoder import Output, write_video
from reelseek.care.reencode._encoding import Encoding
from reelseek.care.reencode._source import Source
from reelseek.care.reencode._videos import DatasetVideo
from reelseek.errors import VideoError
from reelseek.index import index_video

if TYPE_CHECKING:
    import av

FILES, FRAMES = 3, 48


def encode_clip(
    path: Path, source: Source, encoding: Encoding, frames: Sequence[av.VideoFrame], fps: float
) -> int:
    """Encode some frames into a file of their own; its size in bytes."""
    clock = clock_of(source.table, fps)
    ticks = np.arange(len(frames), dtype=np.int64)
    clip_clock = Clock(1 / clock.rate, ticks, clock.rate)
    output = Output(str(path), encoding, source.size, source.colours(), clip_clock)
    write_video(output, frames)
    return path.stat().st_size


def estimated_bytes(
    root: Path, videos: Sequence[DatasetVideo], encoding: Encoding | None, fps: float, work: Path
) -> int:
    """About what a dataset's videos will take, from the first frames of a few of them."""
    if encoding is None or not videos:
        return sum(video.num_bytes for video in videos)
    places = np.linspace(0, len(videos) - 1, min(FILES, len(videos))).astype(int)
    num_bytes = num_frames = 0
    path = work / "sample.mp4"
    for place in dict.fromkeys(places.tolist()):
        name = os.path.join(root, videos[place].key)
        try:
            source = Source(name, index_video(name), encoding)
            frames = list(source.frames(0, min(FRAMES, len(source.table))))
            num_bytes += encode_clip(path, source, encoding, frames, fps)
        except VideoError:
            continue  # it is named when its turn comes
        num_frames += len(frames)
    path.unlink(missing_ok=True)
    return sum(video.num_rows for video in videos) * num_bytes // max(1, num_frames)
