"""What the samples of MP4 files say: of many files in one go, else one by one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reelseek._truths import is_any
from reelseek.bitstream import nal_format_of
from reelseek.bitstream._av1_batch import Av1Frames, read_frames
from reelseek.bitstream._mp4 import VideoTrack
from reelseek.bitstream._picture_batch import Pictures, read_pictures
from reelseek.bitstream._vp9_batch import read_vp9_packets
from reelseek.bitstream._vpx import vp9_picture, vp9_size
from reelseek.index._mp4_picture import (
    CODECS,
    FIRST_FRAME_PACKETS,
    Picture,
    configuration_of,
    first_picture,
    says_colours,
)
from reelseek.index._packets import PacketLooks, Packets, packet_reader
from reelseek.index._places import PacketPlaces

AV1_PIXEL_FORMATS = {(True, (1, 1)): "gray", (False, (1, 1)): "yuv420p",
                     (False, (1, 0)): "yuv422p", (False, (0, 0)): "yuv444p"}  # fmt: skip
MATRIX_RGB = 0
VP9_HEAD_BYTES = 16
"""The beginning of a key frame, which says what its pictures are."""
MOST_KEPT_BYTES = 16 * 1024 * 1024
"""Of memory that a thread keeps."""


class Samples(NamedTuple):
    """A track and the bytes of its samples."""

    track: VideoTrack
    data: NDArray[np.uint8]
    """The file from the first sample to the end of the last, with zeros behind that."""
    base: int
    """Where in the file they begin."""

    @property
    def codec(self) -> str:
        """As FFmpeg calls it."""
        return CODECS[self.track.format]


Found = tuple[Picture, Packets]


def read_samples(track: VideoTrack, places: PacketPlaces) -> Samples | None:
    """All samples in one read; None where they are too many, or the file ends before them."""
    span = places.read_span(track.offset, track.size)
    return None if span is None else Samples(track, *span)


def look_at_all(files: Sequence[Samples]) -> list[Found | None]:
    """What each file's samples say.

    Returns:
        For each file; None where its stream isn't of the usual kind, or the container says of its
        pictures what the stream doesn't.
    """
    alike: dict[tuple[str, bytes], list[int]] = {}
    for number, samples in enumerate(files):
        alike.setdefault((samples.codec, samples.track.configuration), []).append(number)
    found: list[Found | None] = [None] * len(files)
    for (codec, _configuration), numbers in alike.items():
        group = [files[number] for number in numbers]
        for number, of_file in zip(numbers, _look_at_alike(codec, group), strict=True):
            found[number] = of_file
    return found


def _look_at_alike(codec: str, group: list[Samples]) -> list[Found | None]:
    """The same for files of one configuration."""
    if codec == "vp9":
        return [_of_vp9(samples) for samples in group]
    look = _of_av1 if codec == "av1" else _of_pictures
    found = look(_Joined.of(group))
    if found is not None:
        return found
    if len(group) == 1:
        return [None]
    # Some of them, whichever, aren't of the usual kind.
    return [of_file for samples in group for of_file in _look_at_alike(codec, [samples])]


class _Scratch(threading.local):
    """Memory that is used again: to get some anew takes as long as what is done with it here."""

    _data = np.empty(0, np.uint8)

    def of_size(self, size: int) -> NDArray[np.uint8]:
        """Bytes to be written to, which the next call of this thread gives again."""
        if size > MOST_KEPT_BYTES:
            return np.empty(size, np.uint8)
        if size > len(self._data):
            self._data = np.empty(size, np.uint8)
        return self._data[:size]


_scratch = _Scratch()


class _Joined(NamedTuple):
    """Files one behind the other, as if they were one stream."""

    files: list[Samples]
    data: NDArray[np.uint8]
    bases: list[int]
    """Where each file's bytes begin."""
    start: NDArray[np.int64]
    """(P,) where each sample begins."""
    end: NDArray[np.int64]
    """(P,) where it ends."""
    first: list[int]
    """The number of each file's first sample, and of all samples."""

    @classmethod
    def of(cls, files: list[Samples]) -> _Joined:
        bases = [0, *np.cumsum([len(samples.data) for samples in files]).tolist()]
        starts = [
            samples.track.offset + (base - samples.base)
            for samples, base in zip(files, bases[:-1], strict=True)
        ]
        start, size = starts[0], files[0].track.size
        data = files[0].data
        if len(files) > 1:
            start = np.concatenate(starts)
            size = np.concatenate([samples.track.size for samples in files])
            data = _scratch.of_size(bases[-1])
            np.concatenate([samples.data for samples in files], out=data)
        first = [0, *np.cumsum([len(samples.track.size) for samples in files]).tolist()]
        return cls(files, data, bases, start, start + size, first)

    def parts(self) -> Iterator[tuple[Samples, int, int, int]]:
        """Each file, where its bytes begin, its first sample, and the one behind its last."""
        return zip(self.files, self.bases[:-1], self.first[:-1], self.first[1:], strict=True)


def _columns(track: VideoTrack) -> dict[str, Any]:
    """What the tables say of the packets."""
    shift = track.edits[0].media_time if track.edits else 0
    return {
        "pts": track.dts + track.composition - shift,
        "dts": track.dts - shift,
        "duration": track.duration,
        "offset": track.offset,
        "size": track.size,
        "is_key": track.is_sync,
        "configuration": configuration_of(track),
    }


def look_at_each(track: VideoTrack, places: PacketPlaces) -> Found | None:
    """Look at the samples one by one; None where nothing can be decoded."""
    codec = CODECS[track.format]
    looks = PacketLooks()
    look = packet_reader(codec, track.configuration)
    pieces = places.read_each(track.offset, track.size)
    for data, is_key in zip(pieces, track.is_sync.tolist(), strict=True):
        looks.add(look(data, is_key, looks.doubts))
    packets = Packets(**_columns(track), **looks.columns())
    first = slice(FIRST_FRAME_PACKETS)
    picture = first_picture(track, places.read_each(track.offset[first], track.size[first]))
    return None if picture is None else (picture, packets)


def _of_pictures(joined: _Joined) -> list[Found | None] | None:
    """H.264 and HEVC."""
    codec, configuration = joined.files[0].codec, joined.files[0].track.configuration
    nal_format = nal_format_of(codec, configuration)
    pictures = read_pictures(
        codec, joined.data, joined.start, joined.end, nal_format, joined.first[:-1]
    )
    if pictures is None:
        return None
    return [
        _found_of_pictures(samples, pictures.of_packets(first, stop))
        for samples, _base, first, stop in joined.parts()
    ]


def _found_of_pictures(samples: Samples, pictures: Pictures) -> Found | None:
    track, count = samples.track, len(samples.track.size)
    if not track.is_sync[0]:
        return None
    packets = Packets(
        **_columns(track),
        is_shown=np.ones(count, np.bool_),
        is_entry=track.is_sync & pictures.is_start,
        order=pictures.order,
        is_damaged=np.zeros(count, np.bool_),
        doubts=frozenset(),
        has_one_size=True,
        pictures=pictures,
    )
    plain = pictures.picture
    if plain is None:
        picture = first_picture(track, _first_samples(samples))
    elif says_colours(plain.matrix, plain.color_range, track):
        picture = Picture(plain.width, plain.height, plain.pixel_format, plain.matrix)
    else:
        picture = None
    return None if picture is None else (picture, packets)


def _of_av1(joined: _Joined) -> list[Found | None] | None:
    frames = read_frames(joined.data, joined.start, joined.end, joined.first[:-1])
    if frames is None:
        return None
    color = frames.sequence.color
    pixel_format = AV1_PIXEL_FORMATS.get((color.is_monochrome, color.subsampling))
    if pixel_format is None or color.matrix == MATRIX_RGB:
        return None
    depth = "" if color.bit_depth == 8 else f"{color.bit_depth}le"
    size = (frames.sequence.max_width, frames.sequence.max_height)
    picture = Picture(*size, pixel_format + depth, color.matrix)
    found: list[Found | None] = []
    for samples, base, first, stop in joined.parts():
        of_file = frames.of_packets(first, stop).moved(samples.base - base)
        says_all = says_colours(color.matrix, 1, samples.track)  # the range is always there
        found.append((picture, _av1_packets(samples.track, of_file)) if says_all else None)
    return found


def _av1_packets(track: VideoTrack, frames: Av1Frames) -> Packets:
    count = len(track.size)
    first = np.searchsorted(frames.packet, np.arange(count))
    return Packets(
        **_columns(track),
        is_shown=np.ones(count, np.bool_),
        is_entry=frames.is_entry[first],
        is_damaged=np.zeros(count, np.bool_),
        doubts=frozenset(),
        has_one_size=True,
        av1_frames=frames,
    )


def _of_vp9(samples: Samples) -> Found | None:
    track, data = samples.track, samples.data
    start = track.offset - samples.base
    read = read_vp9_packets(data, start, start + track.size)
    is_entry = track.is_sync & read.is_key
    heads = [data[at : at + VP9_HEAD_BYTES].tobytes() for at in start[is_entry].tolist()]
    picture = vp9_picture(heads[0]) if is_entry[0] else None
    if picture is None or is_any(read.shown_frames > 1):
        return None
    if not says_colours(picture.matrix, 1, track):  # the range is always there
        return None
    packets = Packets(
        **_columns(track),
        is_shown=read.shown_frames > 0,
        is_entry=is_entry,
        is_damaged=np.zeros(len(start), np.bool_),
        doubts=frozenset(),
        has_one_size=len(set(map(vp9_size, heads))) == 1,
    )
    return Picture(picture.width, picture.height, "yuv420p", picture.matrix), packets


def _first_samples(samples: Samples) -> Iterator[bytes]:
    track, data = samples.track, samples.data
    starts = (track.offset[:FIRST_FRAME_PACKETS] - samples.base).tolist()
    sizes = track.size[:FIRST_FRAME_PACKETS].tolist()
    return (data[at : at + size].tobytes() for at, size in zip(starts, sizes, strict=True))
