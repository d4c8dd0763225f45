"""The facts of one video: what its index says, and at the level ``decode`` its pictures."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream import hevc_nal_types, iter_nals, nal_format_of
from reelseek.bitstream._hevc import RASL
from reelseek.care.verify._runs import runs_of
from reelseek.datasets._files import LFS_START
from reelseek.errors import CorruptVideoError, NotAVideoError, ReelseekError
from reelseek.index import NO_PTS, FrameTable, index_tables
from reelseek.index._places import PacketPlaces
from reelseek.index._source import is_cut

Facts = dict[str, Any]

HEAD_BYTES = 16
MAX_TOP_BOXES = 1000


def video_facts(path: str, *, is_decoded: bool) -> Facts:
    """What a video is, without judging it: see the keys below.

    ``fault`` (code, what, remedy) stands alone where the file can't be read. Else ``codec``,
    ``size`` (width, height), ``pixel_format``, ``time_base`` (numerator, denominator),
    ``parameter_sets`` (a digest), ``num_frames``, ``times`` (``first`` in ticks, and ``steps`` as
    runs of (step, count); None where there are none), ``cut`` (the code that fits
    where frames of the header's number can't be read, else empty), ``num_listed``, ``damaged``
    (runs of frames), ``open_gop`` (frames), ``has_one_size``; and ``decoded``, which
    is ``decoded_facts`` of the file, or None.
    """
    try:
        table = index_tables(path).frames
        facts = _facts(path, table)
        if is_decoded:
            from reelseek.care.verify._decode import decoded_facts

            facts["decoded"] = decoded_facts(path, table)
    except ReelseekError as exc:
        return {"fault": _fault(path, exc)}
    return facts


def _facts(path: str, table: FrameTable) -> Facts:
    stream = table.stream
    return {
        "codec": stream.codec,
        "size": [stream.width, stream.height],
        "pixel_format": stream.pixel_format,
        "time_base": [stream.time_base.numerator, stream.time_base.denominator],
        "parameter_sets": hashlib.blake2b(table.configuration, digest_size=8).hexdigest(),
        "num_frames": len(table),
        "num_listed": stream.num_frames_from_header,
        "times": _times(table.pts),
        "cut": _cut_code(path) if table.is_cut_short else "",
        "damaged": runs_of(table.is_damaged),
        "open_gop": _open_gop(path, table),
        "has_one_size": table.has_one_size,
        "decoded": None,
    }


def _times(pts: NDArray[np.int64]) -> Facts | None:
    if len(pts) == 0 or np.any(pts == NO_PTS):
        return None
    steps = np.diff(pts)
    starts = np.flatnonzero(np.diff(steps, prepend=steps[:1] - 1)) if len(steps) else steps
    lengths = np.diff(starts, append=len(steps))
    runs = [[int(steps[at]), int(n)] for at, n in zip(starts, lengths, strict=True)]
    return {"first": int(pts[0]), "steps": runs}


def times_of(facts: Facts) -> NDArray[np.float64] | None:
    """(N,) when each frame appears, in seconds; None where the file doesn't say."""
    times = facts["times"]
    if times is None:
        return None
    runs = np.array(times["steps"], np.int64).reshape(-1, 2)
    ticks = times["first"] + np.concatenate([[0], np.cumsum(np.repeat(runs[:, 0], runs[:, 1]))])
    numerator, denominator = facts["time_base"]
    seconds: NDArray[np.float64] = ticks.astype(np.float64) * numerator / denominator
    return seconds


def _open_gop(path: str, table: FrameTable) -> list[int]:
    """Key frames at which decoding can't start without harm to frames that follow them in the file.

    These are key frames before which frames are shown that come after them in the file and refer
    to what came before (leading pictures), and H.264's that are no IDR pictures.
    """
    if table.has_partial_keys:
        return [int(frame) for frame in np.flatnonzero(table.is_key)[1:]]
    keys = np.flatnonzero(table.is_key)
    if not table.is_seekable or len(keys) == 0:
        return []
    keys = keys[np.argsort(table.decode_position[keys])]
    behind = np.searchsorted(table.decode_position[keys], table.decode_position, "right") - 1
    nearest = keys[np.maximum(behind, 0)]
    leading = np.flatnonzero((behind >= 0) & (nearest > np.arange(len(table))))
    if table.stream.codec == "hevc" and len(leading):
        leading = leading[_refers_back(path, table, leading)]
    return sorted({int(nearest[frame]) for frame in leading})


def _refers_back(path: str, table: FrameTable, frames: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of HEVC's leading pictures are RASL, as RADL pictures do without what came before."""
    position = table.decode_position[frames]
    if np.any(table.packet_offset[position] < 0):
        return np.ones(len(frames), np.bool_)
    length_size = nal_format_of("hevc", table.configuration).length_size
    with PacketPlaces(path) as places:
        packets = [
            places.read(int(table.packet_offset[at]), int(table.packet_size[at])) for at in position
        ]
    types = [hevc_nal_types(list(iter_nals(packet, length_size))) for packet in packets]
    return np.array([bool(found & RASL) for found in types], np.bool_)


def _fault(path: str, exc: ReelseekError) -> Facts:
    """Why a video can't be read, under the code that fits."""
    code = _fault_code(path, exc)
    is_told = code in ("video-corrupt", "video-unreadable") and exc.detail
    what = exc.what + (f" ({exc.detail})" if is_told else "")
    return {"code": code, "what": what, "remedy": exc.remedy}


def _fault_code(path: str, exc: ReelseekError) -> str:
    if isinstance(exc, CorruptVideoError):
        return _cut_code(path)
    if not isinstance(exc, NotAVideoError):
        return "video-unreadable"
    with open(path, "rb") as file:
        head = file.read(len(LFS_START)) if Path(path).is_file() else b""
    if not head:
        return "video-empty"
    return "video-lfs-pointer" if head == LFS_START.encode() else "video-no-video"


def _cut_code(path: str) -> str:
    return "video-truncated" if is_cut(path) or _ends_early(path) else "video-corrupt"


def _ends_early(path: str) -> bool:
    """True where a file's last MP4 box goes past its end, or it has no ``moov`` box."""
    size, position, kinds = Path(path).stat().st_size, 0, set()
    with open(path, "rb") as file:
        for _ in range(MAX_TOP_BOXES):
            file.seek(position)
            head = file.read(HEAD_BYTES)
            if len(head) < 8:
                break
            length = int.from_bytes(head[:4], "big")
            length = int.from_bytes(head[8:16], "big") if length == 1 else length
            kinds.add(head[4:8])
            if length == 0:
                break
            if length < 8 or position + length > size:
                return True
            position += length
    return b"moov" not in kinds
