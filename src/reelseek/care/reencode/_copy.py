"""A new container around the same coded frames: the index first, i/fps, from 0."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reelseek.bench._oracle import decode_all
from reelseek.care.reencode._clock import Clock
from reelseek.care.reencode._faults import raise_if_of_disk
from reelseek.care.reencode._source import NOT_WHOLE, damaged
from reelseek.errors import UnsupportedVideoError, VideoError
from reelseek.index import FrameTable
from reelseek.index._source import best_video_stream, open_container


def copy_stream(source: str, table: FrameTable, path: str, clock: Clock) -> FrameTable:
    """Copy a video's packets into a new MP4 file, and prove that every frame is the same.

    The file begins with its index; where frames aren't stored in the order of display, it needs
    no edit list for that.

    Args:
        source: The video.
        table: Its frames.
        path: Where to write.
        clock: When each frame is to appear.

    Returns:
        The new file's frames.

    Raises:
        UnsupportedVideoError: MP4 doesn't take the codec, or a new container alone can't keep
            the frames and their numbers.
        OutputError: The disk takes no more.
        OSError: Reading or writing failed in a way that may pass.
    """
    import av

    if table.is_cut_short or table.is_damaged.any():
        raise damaged(source, None, NOT_WHOLE)
    try:
        with open_container(source) as old:
            stream = best_video_stream(old)
            packets = [packet for packet in old.demux(stream) if packet.pts is not None]
            ranks = _ranks(packets, table, source)
            with av.open(path, "w", "mp4", options=_options(ranks)) as new:
                copied: Any = new.add_stream_from_template(stream, opaque=True)
                copied.time_base = clock.time_base
                delay = _delay(packets, ranks)
                for number, (packet, rank) in enumerate(zip(packets, ranks, strict=True)):
                    _place(packet, clock, int(rank), number - delay)
                    packet.stream = copied
                    new.mux(packet)
    except VideoError:
        raise
    except (av.error.FFmpegError, ValueError) as exc:
        raise_if_of_disk(exc, path)
        _refuse(source, "MP4 can't hold its stream as it is", str(exc))
    return _proved(source, path, clock)


def _ranks(packets: list[Any], table: FrameTable, source: str) -> NDArray[np.int64]:
    """The number of each packet's frame."""
    pts = np.array([packet.pts for packet in packets], np.int64)
    if not table.has_unique_pts or not np.array_equal(np.sort(pts), table.pts):
        _refuse(source, f"its {len(pts)} packets aren't its {len(table)} frames, one each")
    return np.searchsorted(table.pts, pts)


def _options(ranks: NDArray[np.int64]) -> dict[str, str]:
    """The index first; times of reordered frames that need no edit list to begin at 0."""
    is_reordered = bool(np.any(np.diff(ranks) < 0))
    return {"movflags": "+faststart" + "+negative_cts_offsets" * is_reordered}


def _delay(packets: list[Any], ranks: NDArray[np.int64]) -> int:
    """How many frames ahead of display packets are decoded: as many as the source says.

    Never less than the frames' order needs; a decoder that may reorder frames and doesn't has a
    delay too, without which its times would seem to be another's.
    """
    first = min(packet.pts for packet in packets)
    said: int = sum(packet.dts is not None and packet.dts < first for packet in packets)
    return max(said, int((np.arange(len(ranks)) - ranks).max()))


def _place(packet: Any, clock: Clock, rank: int, decoded_as: int) -> None:
    """Give a packet the times of its frame, and of the frame on display when it is decoded."""
    pts, step = clock.pts, clock.step
    packet.pts = int(pts[rank])
    packet.dts = int(pts[decoded_as]) if decoded_as >= 0 else int(pts[0]) + decoded_as * step
    packet.duration = int(pts[rank + 1] - pts[rank]) if rank + 1 < len(pts) else step
    packet.time_base = clock.time_base


def _proved(source: str, path: str, clock: Clock) -> FrameTable:
    """The new file's frames, all of which were compared with the source's."""
    table, before = decode_all(source)
    copied, after = decode_all(path)
    if len(before.digests) != len(table) or not before.is_sound.all():
        raise damaged(source, None, f"{int(before.is_sound.sum())} of {len(table)} frames decode")
    if not np.array_equal(before.digests, after.digests):
        _refuse(source, "its frames aren't the same in a new container")
    if not np.allclose(copied.pts_seconds(), clock.seconds(), rtol=0, atol=1e-9):
        _refuse(source, "its frames can't have their times in MP4")
    return copied


def _refuse(source: str, why: str, detail: str = "") -> NoReturn:
    raise UnsupportedVideoError(
        f"it can't be copied without encoding: {why}",
        remedy="Encode it: run `reelseek reencode` without --copy",
        path=source,
        detail=detail,
    )
