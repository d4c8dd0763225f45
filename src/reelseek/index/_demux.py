"""Building the frame table by a demux pass, without decoding where the packets prove it.

One packet is one displayed frame, in the order of presentation timestamps, for the codecs and
containers below under the conditions that `_why_unproven` checks. Everything else is counted by
decoding the file once from start to end, which is the definition of a frame's number.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream import (
    Av1Reader,
    NalFormat,
    hevc_nal_types,
    iter_nals,
    nal_format_of,
    read_h264_facts,
    vp8_is_key,
    vp8_shows_frame,
    vp8_size,
    vp9_is_key,
    vp9_shows_frame,
    vp9_size,
)
from reelseek.bitstream._hevc import BLA_N_LP, BLA_W_LP, STARTS_DECODING, STARTS_WITHOUT_RASL
from reelseek.errors import CorruptVideoError, NotAVideoError, UnsupportedVideoError
from reelseek.index._places import PacketPlaces
from reelseek.index._source import best_video_stream, is_cut, open_container
from reelseek.index._table import NO_PTS, FrameTable
from reelseek.types import Orientation, StreamInfo

if TYPE_CHECKING:
    import av.container
    import av.video.stream

ONE_PACKET_ONE_FRAME = frozenset({"h264", "hevc", "av1", "vp8", "vp9", "mjpeg", "png", "ffv1"})
REORDERING = frozenset({"h264", "hevc"})
"""Codecs whose packets may come in another order than their frames are displayed in."""
STORES_TIMES = frozenset({"mov", "matroska", "nut", "flv", "ivf"})
"""Containers that store every packet's presentation timestamp, by the first of FFmpeg's names.
In the others FFmpeg guesses some of them as it reads, and guesses differently after a seek."""
STORES_DECODE_TIMES = frozenset({"avi", "asf"})
"""Containers whose timestamps are exact too where decoding order is display order."""
ALL_INTRA = frozenset({"mjpeg", "png", "ffv1"})
UNEVEN = "AV1 packets that don't show exactly one frame each"
HEVC_RASL = frozenset({8, 9})
HEVC_ENDS_SEQUENCE = frozenset({36, 37})
FIRST_FRAME_PACKETS = 64
"""Packets after which a first frame is no longer waited for."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What a packet's bytes say."""

    is_shown: bool = True
    is_entry: bool = False
    is_damaged: bool = False
    size: bytes = b""
    """What the packet says of the picture size, as it is coded; empty where it says nothing."""


_PacketReader = Callable[[bytes, bool, set[str]], _Look]
"""(packet, whether the container marks it as a key frame, doubts to add to) -> what it says."""


@dataclass(slots=True)
class _Packets:
    """What the demux pass saw, one entry per packet in decode order."""

    pts: list[int] = field(default_factory=list)
    dts: list[int] = field(default_factory=list)
    duration: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    is_key: list[bool] = field(default_factory=list)
    is_shown: list[bool] = field(default_factory=list)
    is_entry: list[bool] = field(default_factory=list)
    is_damaged: list[bool] = field(default_factory=list)
    doubts: set[str] = field(default_factory=set)
    sizes: set[bytes] = field(default_factory=set)
    lost_bytes: bool = False
    decoder_reorders: bool = False
    is_first_video: bool = True
    configuration: bytes = b""
    first_frame: Any = None


def index_video(path: str) -> FrameTable:
    """Build the frame table of a video file.

    Args:
        path: A local file.

    Raises:
        VideoNotFoundError: There is no such file.
        NotAVideoError: The file is no video, or holds no video stream or no frame.
        CorruptVideoError: The file's index is missing or damaged.
    """
    with open_container(path) as container:
        stream = _video_stream(path, container)
        packets = _demux(path, container, stream)
        info = _stream_info(path, container, stream, packets.first_frame)
    why_unproven = _why_unproven(info, packets)
    if why_unproven:
        return _count_by_decoding(path, info, packets, why_unproven)
    return _table_of_packets(path, info, packets)


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
    if first_frame is None:
        return Orientation()
    for data in first_frame.side_data:
        if data.type.name == "DISPLAYMATRIX":
            try:
                return Orientation.from_display_matrix(struct.unpack("=9i", bytes(data)))
            except (ValueError, struct.error) as exc:
                raise UnsupportedVideoError(
                    "the video is to be displayed turned by an angle that is no right angle",
                    remedy="Re-encode it upright",
                    path=path,
                    detail=str(exc),
                ) from exc
    return Orientation()


def _demux(path: str, container: av.container.InputContainer, stream: Any) -> _Packets:
    import av

    packets = _Packets()
    look = _packet_reader(stream)
    stream.codec_context.thread_count = 1
    places = PacketPlaces(path)
    try:
        for packet in container.demux(stream):
            if packets.first_frame is None and len(packets.pts) < FIRST_FRAME_PACKETS:
                packets.first_frame = _decoded(packet)
            if packet.size == 0:  # PyAV's flush packet
                continue
            if packet.is_corrupt:  # the file ends inside it
                packets.lost_bytes = True
                continue
            packets.pts.append(NO_PTS if packet.pts is None else packet.pts)
            packets.dts.append(NO_PTS if packet.dts is None else packet.dts)
            packets.duration.append(packet.duration or 0)
            packets.is_key.append(packet.is_keyframe)
            data = bytes(packet)
            packets.offset.append(places.find(data, packet.pos))
            packets.size.append(len(data))
            seen = look(data, packet.is_keyframe, packets.doubts)
            packets.is_shown.append(seen.is_shown and not packet.is_discard)
            packets.is_entry.append(seen.is_entry)
            packets.is_damaged.append(seen.is_damaged)
            packets.sizes.add(seen.size)
    except (av.error.FFmpegError, OSError) as exc:
        raise CorruptVideoError(
            f"reading stopped after {len(packets.pts)} frames",
            remedy="Copy it again from its source, and compare the sizes",
            path=path,
            detail=str(exc),
        ) from exc
    finally:
        places.close()
    if not packets.pts:
        raise NotAVideoError("the video stream has no frame", path=path, remedy="Record it again")
    packets.lost_bytes |= is_cut(path)
    packets.is_first_video = stream is container.streams.video[0]
    packets.configuration = bytes(stream.codec_context.extradata or b"")
    packets.decoder_reorders = bool(stream.codec_context.has_b_frames)
    if all(packets.is_damaged):  # a way of writing that isn't known rather than damage
        packets.doubts.add(UNEVEN)
        packets.is_damaged = [False] * len(packets.is_damaged)
    return packets


def _decoded(packet: Any) -> Any:
    """The first frame that comes out of a packet; None where none does."""
    import av

    try:
        return next(iter(packet.decode()), None)
    except av.error.FFmpegError:
        return None  # damage is reported by the read that meets it


def _packet_reader(stream: Any) -> _PacketReader:
    """How to look at a packet of the stream's codec."""
    codec = stream.codec_context.codec.canonical_name
    if codec in ("h264", "hevc"):
        nal_format = nal_format_of(codec, stream.codec_context.extradata)
        return _H264Reader(nal_format) if codec == "h264" else _HevcReader(nal_format)
    if codec == "av1":
        return _Av1Reader()
    if codec == "vp8":
        return _VpxReader(vp8_shows_frame, vp8_is_key, vp8_size)
    if codec == "vp9":
        return _VpxReader(vp9_shows_frame, vp9_is_key, vp9_size)
    return lambda _data, is_key, _doubts: _Look(is_entry=is_key)


@dataclass(frozen=True, slots=True)
class _VpxReader:
    """Finds hidden frames, and key frames that aren't any."""

    shows_frame: Callable[[bytes], bool]
    is_key: Callable[[bytes], bool]
    size: Callable[[bytes], bytes]

    def __call__(self, data: bytes, is_key: bool, _doubts: set[str]) -> _Look:
        is_entry = is_key and self.is_key(data)
        size = self.size(data) if is_entry else b""
        return _Look(self.shows_frame(data), is_entry, size=size)


class _Av1Reader:
    """Finds packets that aren't one temporal unit, as a damaged index cuts them.

    A unit shows one frame (AV1 specification 7.5); with spatial layers, one of each.
    """

    def __init__(self) -> None:
        self._reader = Av1Reader()

    def __call__(self, data: bytes, is_key: bool, _doubts: set[str]) -> _Look:
        facts = self._reader.read(data)
        is_entry = is_key and facts.starts_with_key
        return _Look(
            is_entry=is_entry,
            is_damaged=facts.shown_frames != 1,
            size=facts.sequence_header if is_entry else b"",
        )


class _H264Reader:
    """Finds IDR pictures, and streams that may hold one field per packet."""

    def __init__(self, nal_format: NalFormat) -> None:
        self._length_size = nal_format.length_size
        self._fields = read_h264_facts(nal_format.parameter_sets).may_hold_fields
        self._first = True

    def __call__(self, data: bytes, is_key: bool, doubts: set[str]) -> _Look:
        has_idr = False
        size = b""
        if is_key or self._first:
            facts = read_h264_facts(iter_nals(data, self._length_size))
            has_idr, size = facts.has_idr, facts.parameter_sets
            if facts.may_hold_fields or self._fields:
                doubts.add("interlaced H.264, where a packet may hold one field")
            if self._first and not has_idr:
                doubts.add("the stream doesn't start with an IDR picture")
        self._first = False
        return _Look(is_entry=has_idr, size=size)


class _HevcReader:
    """Finds leading pictures that FFmpeg skips after the start of a sequence."""

    def __init__(self, nal_format: NalFormat) -> None:
        self._length_size = nal_format.length_size
        self._skips_leading = True

    def __call__(self, data: bytes, is_key: bool, doubts: set[str]) -> _Look:
        types = hevc_nal_types(iter_nals(data, self._length_size))
        starts = is_key and not types.isdisjoint(STARTS_DECODING)
        if starts:
            starts_anew = self._skips_leading or any(BLA_W_LP <= t <= BLA_N_LP for t in types)
            self._skips_leading = starts_anew and not types & STARTS_WITHOUT_RASL
        if self._skips_leading and types & HEVC_RASL:
            doubts.add("leading pictures without their references")
        self._skips_leading |= bool(types & HEVC_ENDS_SEQUENCE)
        return _Look(is_entry=starts)


def _why_unproven(info: StreamInfo, packets: _Packets) -> str:
    """Why packets can't be numbered without decoding; empty where they can."""
    if info.codec not in ONE_PACKET_ONE_FRAME:
        return f"the codec {info.codec}"
    if not _stores_times(info):
        return f"timestamps that the container {info.container} doesn't store"
    if NO_PTS in packets.pts:
        return "packets without timestamps"
    if len(set(packets.pts)) != len(packets.pts):
        return "several packets with one timestamp"
    if not _times_fit_decoding_order(info, packets):
        return "timestamps in another order than the decoder's"
    return "; ".join(sorted(packets.doubts))


def _stores_times(info: StreamInfo) -> bool:
    """True where a packet's timestamp is the same however it is reached."""
    container = info.container.split(",", 1)[0]
    if container in STORES_DECODE_TIMES:
        return info.codec in ALL_INTRA
    return container in STORES_TIMES


def _times_fit_decoding_order(info: StreamInfo, packets: _Packets) -> bool:
    """False where frames certainly come out in another order than their timestamps say."""
    shown = np.flatnonzero(packets.is_shown)
    pts = np.array(packets.pts, np.int64)[shown]
    ascends = bool(np.all(np.diff(pts) > 0))
    if info.codec not in REORDERING:
        return ascends
    dts = np.array(packets.dts, np.int64)[shown]
    if packets.decoder_reorders and ascends and len(pts) > 1 and np.array_equal(pts, dts):
        return False  # decoding times were written in place of presentation times
    # A decoder puts out all pictures before an entry ahead of the entry and what follows it.
    ahead = np.maximum.accumulate(pts)[:-1]
    behind = np.minimum.accumulate(pts[::-1])[::-1][1:]
    starts = np.array(packets.is_entry, bool)[shown][1:]
    return bool(np.all(ahead[starts] < behind[starts]))


def _table_of_packets(path: str, info: StreamInfo, packets: _Packets) -> FrameTable:
    pts = np.array(packets.pts, np.int64)
    shown = np.flatnonzero(packets.is_shown)
    shown = shown[np.argsort(pts[shown], kind="stable")]
    listed = info.num_frames_from_header or 0
    is_cut_short = packets.lost_bytes or len(packets.pts) < listed
    notes = []
    if is_cut_short:
        # A packet that was lost has pts >= dts > the last dts: no frame up to there is missing.
        shown = shown[pts[shown] <= max(packets.dts)]
        notes.append(f"cut short: {len(shown)} frames can be read" + f" of {listed}" * bool(listed))
    if len(shown) == 0:
        raise NotAVideoError(
            "no frame of the stream is displayed",
            remedy="Record it again, or copy it again from its source",
            path=path,
        )
    return _table(info, packets, shown, pts[shown], is_cut_short=is_cut_short, notes=notes)


def _table(
    info: StreamInfo,
    packets: _Packets,
    position: NDArray[np.int64],
    pts: NDArray[np.int64],
    *,
    is_cut_short: bool = False,
    notes: list[str],
) -> FrameTable:
    """Put the table together; ``position`` is each frame's packet, or -1 where it isn't known."""
    known = position >= 0
    duration = np.where(known, np.array(packets.duration, np.int64)[position], 0)
    is_key = np.where(known, np.array(packets.is_key, bool)[position], False)
    entry = _entries(packets, position)
    return FrameTable(
        stream=info,
        pts=pts,
        duration=_filled_durations(pts, duration),
        is_key=is_key,
        entry=entry,
        is_damaged=_is_damaged(packets, entry, position),
        packet_pts=np.array(packets.pts, np.int64),
        packet_dts=np.array(packets.dts, np.int64),
        packet_offset=np.array(packets.offset, np.int64),
        packet_size=np.array(packets.size, np.int64),
        configuration=packets.configuration,
        decode_position=position,
        has_partial_keys=any(
            key and not entry for key, entry in zip(packets.is_key, packets.is_entry, strict=True)
        ),
        has_one_size=len(packets.sizes - {b""}) <= 1,
        is_first_video=packets.is_first_video,
        is_cut_short=is_cut_short,
        notes=tuple(notes),
    )


def _entries(packets: _Packets, position: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last packet from which decoding reaches each frame exactly; -1 for "the start".

    A frame that is shown before the key frame which precedes it in the stream (a leading picture)
    may need frames from before that key frame, so it is decoded from an earlier one.
    """
    entries = np.flatnonzero(packets.is_entry)
    pts = np.array(packets.pts, np.int64)
    nearest = np.searchsorted(entries, position, side="right") - 1
    for _ in range(len(entries)):
        leading = (nearest >= 0) & (pts[entries[np.maximum(nearest, 0)]] > pts[position])
        if not leading.any():
            break
        nearest[leading] -= 1
    found = entries[np.maximum(nearest, 0)] if len(entries) else np.full(len(position), -1)
    return np.where((nearest >= 0) & (position >= 0), found, -1)


def _is_damaged(
    packets: _Packets, entry: NDArray[np.int64], position: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """True for a frame where a packet from its entry up to itself is damaged."""
    before = np.concatenate(([0], np.cumsum(packets.is_damaged)))
    on_the_way = before[position + 1] - before[np.maximum(entry, 0)]
    return np.where(position >= 0, on_the_way > 0, False)


def _filled_durations(pts: NDArray[np.int64], duration: NDArray[np.int64]) -> NDArray[np.int64]:
    """A frame stays on display until the next one appears; the last keeps its own duration."""
    if len(pts) == 0 or NO_PTS in pts:
        return duration
    until_next = np.append(np.diff(pts), duration[-1])
    if until_next[-1] <= 0:
        until_next[-1] = until_next[-2] if len(pts) > 1 else 1
    filled: NDArray[np.int64] = np.maximum(until_next, 0)
    return filled


def _count_by_decoding(
    path: str, info: StreamInfo, packets: _Packets, why_unproven: str
) -> FrameTable:
    """Number the frames by decoding the whole file once."""
    import av

    pts: list[int] = []
    is_cut_short = packets.lost_bytes
    with open_container(path) as container:
        stream = _video_stream(path, container)
        try:
            for frame in container.decode(stream):
                pts.append(NO_PTS if frame.pts is None else frame.pts)
        except av.error.FFmpegError:
            is_cut_short = True  # the frames before the damage are numbered; none after it
    if not pts:
        raise NotAVideoError(
            "no frame of the stream can be decoded",
            remedy="Copy it again from its source; `reelseek probe` says what each decoder makes "
            "of it",
            path=path,
        )
    notes = [f"numbered by decoding the whole file once: {why_unproven}"]
    if is_cut_short:
        notes.append(f"cut short or damaged: {len(pts)} frames can be read")
    seekable = _stores_times(info) and UNEVEN not in packets.doubts
    position = _positions(packets, pts) if seekable else np.full(len(pts), -1, np.int64)
    return _table(
        info, packets, position, np.array(pts, np.int64), is_cut_short=is_cut_short, notes=notes
    )


def _positions(packets: _Packets, pts: list[int]) -> NDArray[np.int64]:
    """Each frame's packet by its timestamp; -1 for all where timestamps don't tell them apart."""
    packet_of = {value: position for position, value in enumerate(packets.pts)}
    ascending = all(sooner < later for sooner, later in itertools.pairwise(pts))
    told_apart = ascending and NO_PTS not in pts and len(packet_of) == len(packets.pts)
    if not told_apart or not all(value in packet_of for value in pts):
        return np.full(len(pts), -1, np.int64)
    return np.array([packet_of[value] for value in pts], np.int64)
