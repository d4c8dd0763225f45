"""Building the frame table, without decoding where the packets prove it.

One packet is one displayed frame, in the order of presentation timestamps, for the codecs and
containers below under the conditions that ``_why_unproven`` checks. Everything else is counted by
decoding the file once from start to end, which is the definition of a frame's number.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from reelseek._truths import are_all, is_any
from reelseek.bitstream._pictures import H264_EXCEEDS, HEVC_EXCEEDS
from reelseek.errors import NotAVideoError
from reelseek.index._demux import decoded_times, demux
from reelseek.index._mp4_tables import SampleTables, read_sample_tables
from reelseek.index._packets import NO_ORDER, UNEVEN, Packets
from reelseek.index._source import check_is_file
from reelseek.index._stamp import stamp_of
from reelseek.index._table import NO_PTS, FrameTable
from reelseek.index._unit_build import build_units, units_of_frames
from reelseek.index._video_tables import VideoTables
from reelseek.types import StreamInfo

ONE_PACKET_ONE_FRAME = frozenset({"h264", "hevc", "av1", "vp8", "vp9", "mjpeg", "png", "ffv1"})
REORDERING = frozenset({"h264", "hevc"})
"""Codecs whose packets may come in another order than their frames are displayed in."""
STORES_TIMES = frozenset({"mov", "matroska", "nut", "flv", "ivf"})
"""Containers that store every packet's presentation timestamp, by the first of FFmpeg's names.
In the others FFmpeg guesses some of them as it reads, and guesses differently after a seek."""
STORES_DECODE_TIMES = frozenset({"avi", "asf"})
"""Containers whose timestamps are exact too where decoding order is display order."""
OUT_OF_ORDER = "timestamps in another order than the pictures'"
ORDER_DOUBTS = frozenset({OUT_OF_ORDER, H264_EXCEEDS, HEVC_EXCEEDS})
ALL_INTRA = frozenset({"mjpeg", "png", "ffv1"})


def index_video(path: str) -> FrameTable:
    """Build the frame table of a video file.

    From the sample tables of an MP4 file where they suffice, else by a demux pass.

    Args:
        path: A local file.

    Raises:
        VideoNotFoundError: There is no such file.
        NotAVideoError: The file is no video, or holds no video stream or no frame.
        CorruptVideoError: The file's index is missing or damaged.
    """
    return table_of(path, *_packets_of(path))


def index_tables(path: str, known: SampleTables | None = None) -> VideoTables:
    """The frame table, and the units or why the file can't be read by them.

    Args:
        path: A local file.
        known: What ``read_many_sample_tables`` found in it.

    Raises as ``index_video``.
    """
    stamp = None if known else stamp_of(path)
    info, packets = known or _packets_of(path)
    table = table_of(path, info, packets)
    if packets.av1_frames is not None and table.is_seekable and are_all(table.entry >= 0):
        return VideoTables(table, units_of_frames(packets.av1_frames, table), stamp)
    return VideoTables(table, build_units(path, table, packets.pictures), stamp)


def _packets_of(path: str) -> SampleTables:
    check_is_file(path)
    found = read_sample_tables(path)
    return found if found is not None else demux(path)


def table_of(path: str, info: StreamInfo, packets: Packets) -> FrameTable:
    """The frame table of a stream's packets."""
    displayed = _displayed(packets)
    why_unproven = _why_unproven(info, packets, displayed)
    if why_unproven:
        return _count_by_decoding(path, info, packets, why_unproven)
    return _table_of_packets(path, info, packets, displayed)


def _displayed(packets: Packets) -> NDArray[np.int64]:
    """The packets that show a frame, in the order of their timestamps."""
    shown = packets.is_shown.nonzero()[0]
    return shown[np.argsort(packets.pts[shown], kind="stable")]


def _why_unproven(info: StreamInfo, packets: Packets, displayed: NDArray[np.int64]) -> str:
    """Why packets can't be numbered without decoding; empty where they can."""
    if info.codec not in ONE_PACKET_ONE_FRAME:
        return f"the codec {info.codec}"
    if not _stores_times(info):
        return f"timestamps that the container {info.container} doesn't store"
    is_all = len(displayed) == len(packets.pts)
    ascending = packets.pts[displayed] if is_all else np.sort(packets.pts)
    if len(ascending) and ascending[0] == NO_PTS:
        return "packets without timestamps"
    if not _all_rise(ascending):
        return "several packets with one timestamp"
    if not _times_fit_decoding_order(info, packets):
        return "timestamps in another order than the decoder's"
    if not _times_fit_pictures(packets, displayed):
        return OUT_OF_ORDER
    return "; ".join(sorted(packets.doubts))


def _all_rise(values: NDArray[np.int64]) -> bool:
    return are_all(values[1:] > values[:-1])


def _stores_times(info: StreamInfo) -> bool:
    """True where a packet's timestamp is the same however it is reached."""
    container = info.container.split(",", 1)[0]
    if container in STORES_DECODE_TIMES:
        return info.codec in ALL_INTRA
    return container in STORES_TIMES


def _times_fit_decoding_order(info: StreamInfo, packets: Packets) -> bool:
    """False where frames certainly come out in another order than their timestamps say."""
    shown = packets.is_shown.nonzero()[0]
    pts = packets.pts[shown]
    ascends = _all_rise(pts)
    if info.codec not in REORDERING:
        return ascends
    dts = packets.dts[shown]
    if packets.decoder_reorders and ascends and len(pts) > 1 and np.array_equal(pts, dts):
        return False  # decoding times were written in place of presentation times
    # A decoder puts out all pictures before an entry ahead of the entry and what follows it.
    ahead = np.maximum.accumulate(pts)[:-1]
    behind = np.minimum.accumulate(pts[::-1])[::-1][1:]
    starts = packets.is_entry[shown][1:]
    return are_all(ahead[starts] < behind[starts])


def _times_fit_pictures(packets: Packets, displayed: NDArray[np.int64]) -> bool:
    """True where the pictures' own count says the order that their timestamps say."""
    if packets.order is None:
        return True
    order = packets.order[displayed]
    return _all_rise(order[order != NO_ORDER])


def _table_of_packets(
    path: str, info: StreamInfo, packets: Packets, displayed: NDArray[np.int64]
) -> FrameTable:
    pts, shown = packets.pts, displayed
    listed = info.num_frames_from_header or 0
    is_cut_short = packets.lost_bytes or len(packets.pts) < listed
    notes = []
    if is_cut_short:
        # A packet that was lost has pts >= dts > the last dts: no frame up to there is missing.
        shown = shown[pts[shown] <= packets.dts.max()]
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
    packets: Packets,
    position: NDArray[np.int64],
    pts: NDArray[np.int64],
    *,
    is_cut_short: bool = False,
    notes: list[str],
) -> FrameTable:
    """Put the table together; ``position`` is each frame's packet, or -1 where it isn't known."""
    known = position >= 0
    duration = packets.duration[position] * known
    is_key = packets.is_key[position] & known
    entry = _entries(packets, position)
    return FrameTable(
        stream=info,
        pts=pts,
        duration=_filled_durations(pts, duration),
        is_key=is_key,
        entry=entry,
        is_damaged=_is_damaged(packets, entry, position),
        packet_pts=packets.pts,
        packet_dts=packets.dts,
        packet_offset=packets.offset,
        packet_size=packets.size,
        configuration=packets.configuration,
        decode_position=position,
        has_partial_keys=is_any(packets.is_key & ~packets.is_entry),
        has_one_size=packets.has_one_size,
        is_first_video=packets.is_first_video,
        is_cut_short=is_cut_short,
        notes=tuple(notes),
        is_completed_by_container=packets.is_completed_by_container,
    )


def _entries(packets: Packets, position: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last packet from which decoding reaches each frame exactly; -1 for "the start".

    A frame that is shown before the key frame which precedes it in the stream (a leading picture)
    may need frames from before that key frame, so it is decoded from an earlier one.
    """
    entries = packets.is_entry.nonzero()[0]
    if len(entries) == 0:
        return np.full(len(position), -1)
    nearest = entries.searchsorted(position, side="right") - 1
    pts = packets.pts[position]
    while True:
        found = entries[np.maximum(nearest, 0)]
        leading = (nearest >= 0) & (packets.pts[found] > pts)
        if not is_any(leading):
            return np.where((nearest >= 0) & (position >= 0), found, -1)
        nearest[leading] -= 1


def _is_damaged(
    packets: Packets, entry: NDArray[np.int64], position: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """True for a frame where a packet from its entry up to itself is damaged."""
    if not is_any(packets.is_damaged):
        return np.zeros(len(position), np.bool_)
    before = np.concatenate(([0], np.cumsum(packets.is_damaged)))
    on_the_way = before[position + 1] - before[np.maximum(entry, 0)]
    return np.where(position >= 0, on_the_way > 0, False)


def _filled_durations(pts: NDArray[np.int64], duration: NDArray[np.int64]) -> NDArray[np.int64]:
    """A frame stays on display until the next one appears; the last keeps its own duration."""
    if len(pts) == 0 or NO_PTS in pts:
        return duration
    until_next = np.empty_like(pts)
    until_next[:-1] = pts[1:] - pts[:-1]
    until_next[-1] = duration[-1]
    if until_next[-1] <= 0:
        until_next[-1] = until_next[-2] if len(pts) > 1 else 1
    filled: NDArray[np.int64] = np.maximum(until_next, 0)
    return filled


def _count_by_decoding(
    path: str, info: StreamInfo, packets: Packets, why_unproven: str
) -> FrameTable:
    """Number the frames by decoding the whole file once."""
    pts, ended_early = decoded_times(path)
    if ended_early and ORDER_DOUBTS.issuperset(why_unproven.split("; ")):
        # Damage, which counts pictures wrong.
        return _table_of_packets(path, info, packets, _displayed(packets))
    is_cut_short = packets.lost_bytes or ended_early
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


def _positions(packets: Packets, pts: list[int]) -> NDArray[np.int64]:
    """Each frame's packet by its timestamp; -1 for all where timestamps don't tell them apart."""
    packet_of = {value: position for position, value in enumerate(packets.pts.tolist())}
    ascending = all(sooner < later for sooner, later in itertools.pairwise(pts))
    told_apart = ascending and NO_PTS not in pts and len(packet_of) == len(packets.pts)
    if not told_apart or not all(value in packet_of for value in pts):
        return np.full(len(pts), -1, np.int64)
    return np.array([packet_of[value] for value in pts], np.int64)
