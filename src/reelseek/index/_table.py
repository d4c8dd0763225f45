"""The frame table: what display order means for one file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reelseek._truths import are_all
from reelseek.types import StreamInfo

Frames = NDArray[np.int64] | slice
"""Some frames of a table, by number."""

FEW_FRAMES = 16
"""Frames whose times are rather computed one by one."""
MANY_READS = 3
"""The read of a video from which on ``for_many_reads`` pays."""
NO_PTS = np.iinfo(np.int64).min
"""Stands for a timestamp that the file doesn't give."""


# Without slots: what is looked up late is kept among a table's other attributes.
@dataclass(frozen=True, eq=False, repr=False)
class FrameTable:
    """The frames of one video in display order, and where decoding has to start for each.

    Frame ``i`` is the i-th frame that FFmpeg displays when it decodes the file from start to end.
    """

    stream: StreamInfo
    """What the file says of its video stream."""
    pts: NDArray[np.int64]
    """(N,) presentation timestamps in ticks of the time base; NO_PTS where there is none."""
    duration: NDArray[np.int64]
    """(N,) time on display in ticks; 0 where the file doesn't say."""
    is_key: NDArray[np.bool_]
    """(N,) True where the frame is a key frame."""
    entry: NDArray[np.int64]
    """(N,) the packet, by decode order, from which decoding reaches this frame exactly; -1 where
    that is only known for the start of the file."""
    packet_pts: NDArray[np.int64]
    """(P,) the presentation timestamp of each packet in decode order."""
    packet_dts: NDArray[np.int64]
    """(P,) the decoding timestamp of each packet in decode order; NO_PTS where there is none."""
    packet_offset: NDArray[np.int64]
    """(P,) the position of each packet's bytes in the file; -1 where they aren't stored as the
    decoder gets them."""
    packet_size: NDArray[np.int64]
    """(P,) the number of each packet's bytes."""
    configuration: bytes
    """The codec's configuration record (avcC, hvcC, av1C, ...); empty where there is none."""
    decode_position: NDArray[np.int64]
    """(N,) the frame's packet, by decode order; -1 where frames can't be told apart by pts."""
    is_damaged: NDArray[np.bool_]
    """(N,) True where the bytes on the way to this frame can't be what the encoder wrote."""
    has_partial_keys: bool
    """True where a packet that the container marks as a key frame is no clean start: decoding
    from there gives other pictures than decoding from the start (H.264 without IDR)."""
    has_one_size: bool
    """True where no key frame announces another picture size than the one before it may have."""
    is_first_video: bool
    """True where the stream is the first of the file's video streams."""
    is_cut_short: bool
    """True where the header lists more frames than the file's bytes hold."""
    notes: tuple[str, ...]
    """What is unusual in the file and how it is handled."""
    is_completed_by_container: bool = False
    """True where the container says of the pictures (colours, size) what the stream leaves out."""

    def __len__(self) -> int:
        return len(self.pts)

    @property
    def has_unique_pts(self) -> bool:
        """True where a timestamp tells one frame from all others."""
        pts = self.pts
        return len(pts) == 0 or bool(pts[0] != NO_PTS and are_all(pts[1:] > pts[:-1]))

    @property
    def is_seekable(self) -> bool:
        """True where decoding can start at a key frame and find each frame by its timestamp."""
        return self.has_unique_pts and are_all(self.decode_position >= 0)

    def pts_seconds(self, frames: Frames = slice(None)) -> NDArray[np.float64]:
        """When these frames appear (all by default), in seconds; NaN without timestamps."""
        ticks = self.pts[frames]
        seconds = _seconds_of(ticks, self.stream.time_base)
        seconds[ticks == NO_PTS] = np.nan
        return seconds

    def duration_seconds(self, frames: Frames = slice(None)) -> NDArray[np.float64]:
        """How long these frames are on display (all by default), in seconds."""
        return _seconds_of(self.duration[frames], self.stream.time_base)

    def times_at(self, frames: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``pts_seconds`` and ``duration_seconds`` of these frames; the cheapest for few."""
        if len(frames) > FEW_FRAMES:
            chosen = np.asarray(frames, np.int64)
            return self.pts_seconds(chosen), self.duration_seconds(chosen)
        above, below = self.stream.time_base.as_integer_ratio()
        durations = [float(ticks) * above / below for ticks in self._ticks_at("duration", frames)]
        return np.array(self.seconds_at(frames), np.float64), np.array(durations, np.float64)

    def seconds_at(self, frames: Sequence[int]) -> list[float]:
        """``pts_seconds`` of a few frames."""
        above, below = self.stream.time_base.as_integer_ratio()
        return [
            math.nan if pts == NO_PTS else float(pts) * above / below
            for pts in self._ticks_at("pts", frames)
        ]

    def end_seconds(self) -> float:
        """When the last frame leaves the display, in seconds; NaN without timestamps."""
        if len(self) == 0 or self.pts[-1] == NO_PTS:
            return math.nan
        return float(Fraction(int(self.pts[-1] + self.duration[-1])) * self.stream.time_base)

    def damaged_among(self, frames: Sequence[int]) -> list[int]:
        """Those of these frames that are damaged."""
        is_damaged = self.is_damaged.item
        return [frame for frame in frames if is_damaged(frame)]

    def for_many_reads(self) -> FrameTable:
        """The same table, where whole columns are looked up rather than single values."""
        return self

    def _ticks_at(self, name: Literal["pts", "duration"], frames: Sequence[int]) -> list[int]:
        """The timestamps or durations of a few frames."""
        ticks: NDArray[np.int64] = getattr(self, name)
        return [ticks.item(frame) for frame in frames]

    def __repr__(self) -> str:
        keys = int(self.is_key.sum())
        return f"FrameTable({len(self)} frames, {keys} key frames, {self.stream.codec})"


def _seconds_of(ticks: NDArray[np.int64], time_base: Fraction) -> NDArray[np.float64]:
    """Ticks as seconds: one multiplication, one division, as FFmpeg's av_q2d users do."""
    return ticks.astype(np.float64) * time_base.numerator / time_base.denominator
