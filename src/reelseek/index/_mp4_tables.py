"""Building the frame table from an MP4 file's sample tables, without a demuxer.

The tables suffice for the files that encoders write: one video track, one sample entry, no
fragments, and an edit list that hides nothing. Everything else is left to the demux pass, whose
result this one must equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reelseek._truths import are_all, is_any
from reelseek.bitstream._mp4 import Edit, Movie, VideoTrack, read_moov
from reelseek.bitstream._mp4_boxes import Mp4Error
from reelseek.index._mp4_looks import Found, Samples, look_at_all, look_at_each, read_samples
from reelseek.index._mp4_picture import CODECS, Picture
from reelseek.index._packets import Packets
from reelseek.index._places import PacketPlaces
from reelseek.types import Orientation, StreamInfo

CONTAINER = "mov,mp4,m4a,3gp,3g2,mj2"
"""What FFmpeg calls it."""
MAX_MOOV_BYTES = 1 << 28
MAX_TOP_BOXES = 1000
NORMAL_SPEED = 0x10000
MOST_TOGETHER = 1 << 15
"""Samples of a file that is read together with others: 18 minutes at 30 frames a second."""

SampleTables = tuple[StreamInfo, Packets]
"""A stream and its packets, as a demux pass would list them."""


def read_sample_tables(path: str) -> SampleTables | None:
    """The stream and its packets.

    Returns:
        None where the sample tables don't suffice, for whatever reason.
    """
    with PacketPlaces(path) as places:
        track = _read_track(places)
        if track is None:
            return None
        samples = read_samples(track, places)
        found = look_at_all([samples])[0] if samples is not None else None
        return _tables_of(track, found or look_at_each(track, places))


def read_many_sample_tables(paths: Sequence[str]) -> list[SampleTables | None]:
    """The same of many files, in one go for those that are alike, as a dataset's mostly are.

    Returns:
        None also for a file that can't be read, that is long, or whose samples have to be looked
        at one by one.
    """
    samples = [_samples_of(path) for path in paths]
    there = [of_file for of_file in samples if of_file is not None]
    found = iter(look_at_all(there))
    return [
        None if of_file is None else _tables_of(of_file.track, next(found)) for of_file in samples
    ]


def _samples_of(path: str) -> Samples | None:
    try:
        with PacketPlaces(path) as places:
            track = _read_track(places)
            if track is None or len(track.size) > MOST_TOGETHER:
                return None
            return read_samples(track, places)
    except OSError:
        return None


def _read_track(places: PacketPlaces) -> VideoTrack | None:
    """The file's video track; None where its tables don't suffice."""
    moov = _read_moov(places)
    if moov is None:
        return None
    try:
        movie = read_moov(moov)
    except Mp4Error:
        return None
    return movie.videos[0] if _suffices(movie, places.size()) else None


def _read_moov(places: PacketPlaces) -> bytes | None:
    """The content of the moov box; None where there is none, or fragments beside it."""
    position, size = 0, places.size()
    moov = None
    for _ in range(MAX_TOP_BOXES):
        if position + 8 > size:
            return moov
        head = places.read(position, 16)
        length, start = int.from_bytes(head[:4], "big"), 8
        if length == 1:
            length, start = int.from_bytes(head[8:16], "big"), 16
        elif length == 0:
            length = size - position
        if length < start or position + length > size or head[4:8] == b"moof":
            return None
        if head[4:8] == b"moov" and moov is None:  # FFmpeg ignores another one, too
            if length > MAX_MOOV_BYTES:
                return None
            moov = places.read(position + start, length - start)
        position += length
    return None


def _suffices(movie: Movie, file_size: int) -> bool:
    if movie.is_fragmented or movie.is_turned or len(movie.videos) != 1:
        return False
    track = movie.videos[0]
    if track.format not in CODECS or not track.configuration or track.has_sample_groups:
        return False
    if len(track.size) == 0 or _least(track.size) <= 0:
        return False
    if len(track.size) > 1 and _least(track.duration[:-1]) <= 0:
        return False
    if _least(track.offset) < 0 or is_any(track.offset > file_size - track.size):
        return False
    if np.add.reduce(track.size) > file_size:  # they overlap, and there may be any number
        return False
    if _least(track.composition) < 0:
        return False
    # Without composition offsets, B-frames may hide behind decoding times: FFmpeg looks for them.
    if CODECS[track.format] in ("h264", "hevc") and not track.composition.any():
        return False
    return _hides_nothing(movie, track)


def _hides_nothing(movie: Movie, track: VideoTrack) -> bool:
    """True where the edit list shows every sample, from the first one's time on."""
    pts = track.dts + track.composition
    if not track.edits:
        return _least(pts) == 0
    if len(track.edits) != 1:
        return False
    edit: Edit = track.edits[0]
    end = edit.media_time + edit.duration * track.timescale // max(movie.timescale, 1)
    is_whole = edit.media_time == _least(pts) and np.maximum.reduce(pts) < end
    return edit.rate == NORMAL_SPEED and bool(is_whole)


def _least(values: NDArray[np.int64]) -> int:
    """The ufunc itself takes half the time of ``min`` on so few numbers."""
    return int(np.minimum.reduce(values))


def _tables_of(track: VideoTrack, found: Found | None) -> SampleTables | None:
    if found is None:
        return None
    picture, packets = found
    # FFmpeg may cut H.264 to the container's size.
    is_h264 = CODECS[track.format] == "h264"
    if is_h264 and (track.width, track.height) != (picture.width, picture.height):
        return None
    # A sync sample that is no entry may be damage, or an open GOP: FFmpeg looks closer.
    if packets.doubts or is_any(packets.is_key != packets.is_entry):
        return None
    if not are_all(packets.is_shown) or is_any(packets.is_damaged):
        return None
    info = _stream_info(track, picture)
    return None if info is None else (info, packets)


def _stream_info(track: VideoTrack, picture: Picture) -> StreamInfo | None:
    try:
        orientation = Orientation.from_display_matrix(track.matrix)
    except ValueError:
        return None
    width, height = picture.width, picture.height
    if orientation.swaps_axes:
        width, height = height, width
    total = int(np.add.reduce(track.duration))
    return StreamInfo(
        container=CONTAINER,
        codec=CODECS[track.format],
        width=width,
        height=height,
        pixel_format=picture.pixel_format,
        color_matrix=picture.color_matrix,
        orientation=orientation,
        time_base=Fraction(1, track.timescale),
        average_fps=Fraction(track.timescale * len(track.size), total) if total else None,
        num_frames_from_header=len(track.size),
    )
