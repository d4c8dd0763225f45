"""A few of a dataset's frames, encoded for a look at what comes of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reelseek.care.reencode._clock import Clock, clock_of
from reelseek.care.reencode._encoder import Output, write_video
from reelseek.care.reencode._encoding import Encoding
from reelseek.care.reencode._source import Source
from reelseek.care.reencode._videos import DatasetVideo
from reelseek.errors import VideoError
from reelseek.index import FrameTable, index_video

if TYPE_CHECKING:
    import av

FILES, FRAMES = 3, 48
DEFAULT_GOP = {"av1": 160, "h264": 250, "hevc": 250}
"""Frames from key frame to key frame at most, by the encoders' own choice."""
BYTES_OF_TABLES = 10
"""A frame's in the index (moov)."""


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
    """About what a dataset's videos will take, from the first frames of a few of them.

    Key frames are weighed apart: a few frames have a larger share of them than a long GOP has.
    """
    if encoding is None or not videos:
        return sum(video.num_bytes for video in videos)
    gop = encoding.gop or DEFAULT_GOP[encoding.codec]
    parts = sum(max(1, len(video.episodes)) for video in videos)
    num_rows = sum(video.num_rows for video in videos)
    places = np.linspace(0, len(videos) - 1, min(FILES, len(videos))).astype(int)
    seen = _Seen()
    path = work / "sample.mp4"
    for place in dict.fromkeys(places.tolist()):
        name = os.path.join(root, videos[place].key)
        try:
            source = Source(name, index_video(name), encoding)
            frames = list(source.frames(0, min(FRAMES, len(source.table))))
            encode_clip(path, source, encoding, frames, fps)
            seen.add(index_video(str(path)))
        except VideoError:
            continue  # it is named when its turn comes
    path.unlink(missing_ok=True)
    return seen.estimate(num_rows, num_keys=num_rows // gop + parts)


@dataclass(slots=True)
class _Seen:
    """What coded frames took."""

    num_keys: int = 0
    key_bytes: int = 0
    num_others: int = 0
    other_bytes: int = 0

    def add(self, table: FrameTable) -> None:
        """Add a file's."""
        is_key = np.zeros(len(table), bool)
        is_key[table.decode_position[table.is_key]] = True
        self.num_keys += int(is_key.sum())
        self.key_bytes += int(table.packet_size[is_key].sum())
        self.num_others += int((~is_key).sum())
        self.other_bytes += int(table.packet_size[~is_key].sum())

    def estimate(self, num_frames: int, num_keys: int) -> int:
        """What so many frames will take, with their entries in the file's tables."""
        keys = min(num_frames, num_keys)
        return (
            keys * self.key_bytes // max(1, self.num_keys)
            + (num_frames - keys) * self.other_bytes // max(1, self.num_others)
            + num_frames * BYTES_OF_TABLES
        )
