"""The demux pass: a file's video stream and its packets, through FFmpeg."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.errors import CorruptVideoError, NotAVideoError, UnsupportedVideoError
from reelseek.index._packets import UNEVEN, PacketLog, Packets, packet_reader
from reelseek.index._places import PacketPlaces
from reelseek.index._source import best_video_stream, is_cut, open_container
from reelseek.index._table import NO_PTS
from reelseek.types import Orientation, StreamInfo

if TYPE_CHECKING:
    import av.container
    import av.video.stream

FULL_RANGE = 2
UNSAID = (2, 0)
"""Colour matrix and range of a stream whose container doesn't say any."""
FIRST_FRAME_PACKETS = 64
"""Packets after which a first frame is no longer waited for."""


def demux(path: str) -> tuple[StreamInfo, Packets]:
    """The video stream of a file and all its packets, read once from start to end.

    Raises:
        VideoNotFoundError: There is no such file.
        NotAVideoError: The file is no video, or holds no video stream or no frame.
        CorruptVideoError: The file's index is missing or damaged.
    """
    with open_container(path) as container:
        stream = _video_stream(path, container)
        log = _read_packets(path, container, stream)
        info = _stream_info(path, container, stream, log.first_frame)
        return info, _packets(container, stream, log)


def decoded_times(path: str) -> tuple[list[int], bool]:
    """The timestamps of all frames that FFmpeg displays when it decodes a file once.

    Returns:
        A timestamp for each frame, NO_PTS where it has none; and whether decoding came to an end
        before the file's.
    """
    import av

    pts: list[int] = []
    with open_container(path) as container:
        stream = _video_stream(path, container)
        try:
            for frame in container.decode(stream):
                pts.append(NO_PTS if frame.pts is None else frame.pts)
        except av.error.FFmpegError:
            return pts, True  # the frames before the damage are numbered; none after it
    return pts, False


def _video_stream(path: str, container: Any) -> av.video.stream.VideoStream:
    stream: av.video.stream.VideoStream | None = best_video_stream(container)
    if stream is None:
        raise NotAVideoError(
            "the file has no video stream",
            remedy=f"It holds: {', '.join(s.type for s in container.streams) or 'nothing'}",
            path=path,
        )
    if stream.codec_context is None or not stream.codec_context.width:
        raise NotAVideoError(
            "the video stream has no frame, or no picture size", path=path,
            remedy="Record it again",
        )  # fmt: skip
    return stream


def _stream_info(
    path: str, container: Any, stream: av.video.stream.VideoStream, first_frame: Any
) -> StreamInfo:
    context = stream.codec_context
    orientation = _orientation(path, first_frame)
    # The first frame knows better than the header, which some muxers leave stale.
    shaped = first_frame or context
    width, height = shaped.width, shaped.height
    if orientation.swaps_axes:
        width, height = height, width
    return StreamInfo(
        container=container.format.name,
        codec=context.codec.canonical_name,
        width=width,
        height=height,
        pixel_format=first_frame.format.name if first_frame else context.pix_fmt or "",
        color_matrix=int(shaped.colorspace),
        orientation=orientation,
        time_base=Fraction(stream.time_base or Fraction(1, 90_000)),
        average_fps=None if not stream.average_rate else Fraction(stream.average_rate),
        num_frames_from_header=stream.frames or None,
    )


def _orientation(path: str, first_frame: Any) -> Orientation:
    """How frames are turned for display, from the matrix that the decoder attaches to them."""
    matrix = None if first_frame is None else first_frame.side_data.get("DISPLAYMATRIX")
    if matrix is None:
        return Orientation()
    try:
        return Orientation.from_display_matrix(struct.unpack("=9i", bytes(matrix)))
    except (ValueError, struct.error) as exc:
        raise UnsupportedVideoError(
            "the video is to be displayed turned by an angle that is no right angle",
            remedy="Re-encode it upright",
            path=path,
            detail=str(exc),
        ) from exc


def _read_packets(path: str, container: av.container.InputContainer, stream: Any) -> PacketLog:
    import av

    log = PacketLog()
    look = packet_reader(stream.codec_context.codec.canonical_name, stream.codec_context.extradata)
    stream.codec_context.thread_count = 1
    places = PacketPlaces(path)
    try:
        for packet in container.demux(stream):
            if log.first_frame is None and len(log.pts) < FIRST_FRAME_PACKETS:
                log.first_data.append(bytes(packet))
                log.first_frame = _decoded(packet)
            if packet.size == 0:  # PyAV's flush packet
                continue
            if packet.is_corrupt:  # the file ends inside it
                log.lost_bytes = True
                continue
            log.pts.append(NO_PTS if packet.pts is None else packet.pts)
            log.dts.append(NO_PTS if packet.dts is None else packet.dts)
            log.duration.append(packet.duration or 0)
            log.is_key.append(packet.is_keyframe)
            data = bytes(packet)
            is_as_stored = not _brings_configuration(packet)
            log.offset.append(places.find(data, packet.pos) if is_as_stored else -1)
            log.size.append(len(data))
            seen = look(data, packet.is_keyframe, log.looks.doubts)
            log.looks.add(seen, is_hidden=packet.is_discard)
    except (av.error.FFmpegError, OSError) as exc:
        raise CorruptVideoError(
            f"reading stopped after {len(log.pts)} frames",
            remedy="Copy it again from its source, and compare the sizes",
            path=path,
            detail=str(exc),
        ) from exc
    finally:
        places.close()
    if not log.pts:
        raise NotAVideoError("the video stream has no frame", path=path, remedy="Record it again")
    log.lost_bytes |= is_cut(path)
    if all(log.looks.is_damaged):  # a way of writing that isn't known rather than damage
        log.looks.doubts.add(UNEVEN)
        log.looks.is_damaged = [False] * len(log.pts)
    return log


def _packets(container: av.container.InputContainer, stream: Any, log: PacketLog) -> Packets:
    return Packets(
        pts=np.array(log.pts, np.int64),
        dts=np.array(log.dts, np.int64),
        duration=np.array(log.duration, np.int64),
        offset=np.array(log.offset, np.int64),
        size=np.array(log.size, np.int64),
        is_key=np.array(log.is_key, np.bool_),
        **log.looks.columns(),
        configuration=bytes(stream.codec_context.extradata or b""),
        lost_bytes=log.lost_bytes,
        decoder_reorders=bool(stream.codec_context.has_b_frames),
        is_first_video=stream is container.streams.video[0],
        is_completed_by_container=_is_completed(stream.codec_context, log),
    )


def _is_completed(context: Any, log: PacketLog) -> bool:
    """True where the first frame has other colours, or another size, than the stream gives it.

    FFmpeg cuts H.264 to the container's size where that fits into the same macroblocks.
    """
    import av

    seen = log.first_frame
    has_no_colours = (int(context.colorspace), int(context.color_range)) == UNSAID
    if seen is None or (has_no_colours and context.codec.name != "h264"):
        return False
    alone: Any = av.CodecContext.create(context.codec.name, "r")
    alone.extradata = context.extradata
    alone.thread_count = 1
    try:
        frames = [frame for data in log.first_data for frame in alone.decode(av.Packet(data))]
        first = next(iter(frames or alone.decode(None)))
    except (av.error.FFmpegError, StopIteration):
        return True
    return _look_of(first) != _look_of(seen)


def _look_of(frame: Any) -> tuple[int, int, int, bool]:
    """The size, the matrix, and whether the range is full: what isn't said is read as limited."""
    is_full = int(frame.color_range) == FULL_RANGE
    return frame.width, frame.height, int(frame.colorspace), is_full


def _brings_configuration(packet: Any) -> bool:
    """True where the container gives the decoder another configuration with this packet."""
    # PyAV before 16 doesn't say, and nothing that it writes has one.
    has = getattr(packet, "has_sidedata", None)
    return has is not None and bool(has("new_extradata"))


def _decoded(packet: Any) -> Any:
    """The first frame that comes out of a packet; None where none does."""
    import av

    try:
        return next(iter(packet.decode()), None)
    except av.error.FFmpegError:
        return None  # damage is reported by the read that meets it
