"""Building the frame table from an MP4 file's sample tables, without a demuxer.

The tables suffice for the files that encoders write: one video track, one sample entry, no
fragments, and an edit list that hides nothing. Everything else is left to the demux pass, whose
result this one must equal.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream import nal_format_of
from reelseek.bitstream._av1_batch import Av1Frames, read_frames
from reelseek.bitstream._mp4 import Edit, Movie, Mp4Error, VideoTrack, read_moov
from reelseek.bitstream._nal import UNSAID
from reelseek.bitstream._picture_batch import read_pictures
from reelseek.bitstream._vp9_batch import read_vp9_packets
from reelseek.bitstream._vpx import vp9_picture, vp9_size
from reelseek.index._packets import PacketLooks, Packets, packet_reader
from reelseek.index._places import PacketPlaces
from reelseek.types import Orientation, StreamInfo

CODECS = {"avc1": "h264", "hvc1": "hevc", "hev1": "hevc", "av01": "av1", "vp09": "vp9"}
AV1_PIXEL_FORMATS = {(True, (1, 1)): "gray", (False, (1, 1)): "yuv420p",
                     (False, (1, 0)): "yuv422p", (False, (0, 0)): "yuv444p"}  # fmt: skip
MATRIX_RGB = 0
DECODERS = {"av1": "libdav1d"}
CONTAINER = "mov,mp4,m4a,3gp,3g2,mj2"
"""What FFmpeg calls it."""
MAX_MOOV_BYTES = 1 << 28
MAX_TOP_BOXES = 1000
NORMAL_SPEED = 0x10000
VP9_HEAD_BYTES = 16
"""The beginning of a key frame, which says what its pictures are."""
FIRST_FRAME_PACKETS = 64
WITHOUT_PIXELS = {"skip_loop_filter": "all", "skip_idct": "all"}
"""What a decoder can leave out where only a picture's size and format are asked for."""


def read_sample_tables(path: str) -> tuple[StreamInfo, Packets] | None:
    """The stream and its packets, as a demux pass would list them.

    Returns:
        None where the sample tables don't suffice, for whatever reason.
    """
    with PacketPlaces(path) as places:
        moov = _read_moov(places)
        if moov is None:
            return None
        try:
            movie = read_moov(moov)
        except Mp4Error:
            return None
        if not _suffices(movie, places.size()):
            return None
        return _packets(movie.videos[0], places)


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
    if len(track.size) == 0 or track.size.min() <= 0 or track.duration[:-1].min(initial=1) <= 0:
        return False
    if track.offset.min() < 0 or np.any(track.offset > file_size - track.size):
        return False
    if track.composition.min() < 0:
        return False
    # Without composition offsets, B-frames may hide behind decoding times: FFmpeg looks for them.
    if CODECS[track.format] in ("h264", "hevc") and not track.composition.any():
        return False
    return _hides_nothing(movie, track)


def _hides_nothing(movie: Movie, track: VideoTrack) -> bool:
    """True where the edit list shows every sample, from the first one's time on."""
    pts = track.dts + track.composition
    if not track.edits:
        return int(pts.min()) == 0
    if len(track.edits) != 1:
        return False
    edit: Edit = track.edits[0]
    end = edit.media_time + edit.duration * track.timescale // max(movie.timescale, 1)
    return edit.rate == NORMAL_SPEED and edit.media_time == int(pts.min()) and int(pts.max()) < end


def _packets(track: VideoTrack, places: PacketPlaces) -> tuple[StreamInfo, Packets] | None:
    codec = CODECS[track.format]
    found = _look_at_all(codec, track, places) or _look_at_each(codec, track, places)
    if found is None:
        return None
    picture, packets = found
    # FFmpeg may cut H.264 to the container's size.
    if codec == "h264" and (track.width, track.height) != (picture.width, picture.height):
        return None
    # A sync sample that is no entry may be damage, or an open GOP: FFmpeg looks closer.
    if packets.doubts or not np.array_equal(packets.is_key, packets.is_entry):
        return None
    if not packets.is_shown.all() or packets.is_damaged.any():
        return None
    info = _stream_info(track, codec, picture)
    return None if info is None else (info, packets)


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
        # As FFmpeg has it.
        "configuration": b"" if track.format == "vp09" else track.configuration,
    }


class _Picture(NamedTuple):
    """What a stream's pictures are, as coded."""

    width: int
    height: int
    pixel_format: str
    color_matrix: int


def _look_at_each(
    codec: str, track: VideoTrack, places: PacketPlaces
) -> tuple[_Picture, Packets] | None:
    """Look at the packets one by one; None where nothing can be decoded."""
    looks = PacketLooks()
    look = packet_reader(codec, track.configuration)
    pieces = places.read_each(track.offset, track.size)
    for data, is_key in zip(pieces, track.is_sync.tolist(), strict=True):
        looks.add(look(data, is_key, looks.doubts))
    packets = Packets(
        **_columns(track),
        is_shown=np.array(looks.is_shown, np.bool_),
        is_entry=looks.entries(),
        order=looks.display_order(),
        is_damaged=np.array(looks.is_damaged, np.bool_),
        doubts=frozenset(looks.doubts),
        has_one_size=looks.has_one_size,
    )
    picture = _first_picture(codec, packets, track, places)
    return None if picture is None else (picture, packets)


def _look_at_all(
    codec: str, track: VideoTrack, places: PacketPlaces
) -> tuple[_Picture, Packets] | None:
    """The same in one go; None where the stream isn't of the usual kind."""
    if codec not in ("av1", "h264", "hevc", "vp9"):
        return None
    span = places.read_span(track.offset, track.size)
    if span is None:
        return None
    data, base = span
    start = track.offset - base
    if codec == "av1":
        frames = read_frames(data, start, start + track.size)
        return None if frames is None else _of_av1(frames, base, track)
    if codec == "vp9":
        return _of_vp9(data, start, track)
    nal_format = nal_format_of(codec, track.configuration)
    pictures = read_pictures(codec, data, start, start + track.size, nal_format)
    if pictures is None or not track.is_sync[0]:
        return None
    packets = Packets(
        **_columns(track),
        is_shown=np.ones(len(start), np.bool_),
        is_entry=track.is_sync & pictures.is_start,
        order=pictures.order,
        is_damaged=np.zeros(len(start), np.bool_),
        doubts=frozenset(),
        has_one_size=True,
        pictures=pictures,
    )
    plain = pictures.picture
    if plain is None:
        picture = _first_picture(codec, packets, track, places)
    elif _says_colours(plain.matrix, plain.color_range, track):
        picture = _Picture(plain.width, plain.height, plain.pixel_format, plain.matrix)
    else:
        picture = None
    return None if picture is None else (picture, packets)


def _of_av1(frames: Av1Frames, base: int, track: VideoTrack) -> tuple[_Picture, Packets] | None:
    color = frames.sequence.color
    pixel_format = AV1_PIXEL_FORMATS.get((color.is_monochrome, color.subsampling))
    if pixel_format is None or color.matrix == MATRIX_RGB:
        return None
    if not _says_colours(color.matrix, 1, track):  # the range is always there
        return None
    count = len(track.size)
    first = np.searchsorted(frames.packet, np.arange(count))
    packets = Packets(
        **_columns(track),
        is_shown=np.ones(count, np.bool_),
        is_entry=frames.is_entry[first],
        is_damaged=np.zeros(count, np.bool_),
        doubts=frozenset(),
        has_one_size=True,
        av1_frames=frames.moved(base),
    )
    depth = "" if color.bit_depth == 8 else f"{color.bit_depth}le"
    size = (frames.sequence.max_width, frames.sequence.max_height)
    return _Picture(*size, pixel_format + depth, color.matrix), packets


def _of_vp9(
    data: NDArray[np.uint8], start: NDArray[np.int64], track: VideoTrack
) -> tuple[_Picture, Packets] | None:
    read = read_vp9_packets(data, start, start + track.size)
    is_entry = track.is_sync & read.is_key
    heads = [data[at : at + VP9_HEAD_BYTES].tobytes() for at in start[is_entry].tolist()]
    picture = vp9_picture(heads[0]) if is_entry[0] else None
    if picture is None or (read.shown_frames > 1).any():
        return None
    if not _says_colours(picture.matrix, 1, track):  # the range is always there
        return None
    count = len(track.size)
    packets = Packets(
        **_columns(track),
        is_shown=read.shown_frames > 0,
        is_entry=is_entry,
        is_damaged=np.zeros(count, np.bool_),
        doubts=frozenset(),
        has_one_size=len(set(map(vp9_size, heads))) == 1,
    )
    return _Picture(picture.width, picture.height, "yuv420p", picture.matrix), packets


def _first_picture(
    codec: str, packets: Packets, track: VideoTrack, places: PacketPlaces
) -> _Picture | None:
    """What the first picture is that the decoder puts out; None where it puts out none."""
    frame = _first_frame(codec, packets, places)
    if frame is None or not _says_colours(int(frame.colorspace), int(frame.color_range), track):
        return None
    return _Picture(frame.width, frame.height, frame.format.name, int(frame.colorspace))


def _says_colours(matrix: int, color_range: int, track: VideoTrack) -> bool:
    """False where the container says of the colours what the stream leaves out."""
    colours = track.colours
    if colours is None:
        return True
    adds_matrix = matrix == UNSAID and colours.matrix != UNSAID
    return not adds_matrix and not (color_range == 0 and colours.is_full_range)


def _first_frame(codec: str, packets: Packets, places: PacketPlaces) -> Any:
    import av

    context: Any = av.CodecContext.create(DECODERS.get(codec, codec), "r")
    context.extradata = packets.configuration
    context.thread_count = 1
    context.options = WITHOUT_PIXELS
    first = zip(
        packets.offset[:FIRST_FRAME_PACKETS].tolist(),
        packets.size[:FIRST_FRAME_PACKETS].tolist(),
        strict=True,
    )
    try:
        # Drained at once: a decoder that reorders would hold the first picture back.
        for offset, size in first:
            packet = av.Packet(places.read(offset, size))
            for picture in [*context.decode(packet), *context.decode(None)]:
                return picture
            context.flush_buffers()
    except av.error.FFmpegError:
        pass
    return None


def _stream_info(track: VideoTrack, codec: str, picture: _Picture) -> StreamInfo | None:
    try:
        orientation = Orientation.from_display_matrix(track.matrix)
    except ValueError:
        return None
    width, height = picture.width, picture.height
    if orientation.swaps_axes:
        width, height = height, width
    total = int(track.duration.sum())
    return StreamInfo(
        container=CONTAINER,
        codec=codec,
        width=width,
        height=height,
        pixel_format=picture.pixel_format,
        color_matrix=picture.color_matrix,
        orientation=orientation,
        time_base=Fraction(1, track.timescale),
        average_fps=Fraction(track.timescale * len(track.size), total) if total else None,
        num_frames_from_header=len(track.size),
    )
