"""What is known of a stream's packets, and how to look at one for each codec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream import (
    Av1Reader,
    NalFormat,
    hevc_nal_types,
    iter_nal_heads,
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
from reelseek.bitstream._av1_batch import Av1Frames
from reelseek.bitstream._hevc import BLA_N_LP, BLA_W_LP, STARTS_DECODING, STARTS_WITHOUT_RASL

UNEVEN = "AV1 packets that don't show exactly one frame each"
HEVC_RASL = frozenset({8, 9})
HEVC_ENDS_SEQUENCE = frozenset({36, 37})


@dataclass(frozen=True, slots=True)
class Look:
    """What a packet's bytes say."""

    is_shown: bool = True
    is_entry: bool = False
    is_damaged: bool = False
    size: bytes = b""
    """What the packet says of the picture size, as it is coded; empty where it says nothing."""


PacketReader = Callable[[bytes, bool, set[str]], Look]
"""(packet, whether the container marks it as a key frame, doubts to add to) -> what it says."""


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """A stream's packets in decoding order."""

    pts: NDArray[np.int64]
    """(P,) presentation timestamps in ticks; NO_PTS where there is none."""
    dts: NDArray[np.int64]
    """(P,) decoding timestamps in ticks; NO_PTS where there is none."""
    duration: NDArray[np.int64]
    """(P,) durations in ticks; 0 where the file doesn't say."""
    offset: NDArray[np.int64]
    """(P,) positions in the file; -1 where the bytes aren't stored as the decoder gets them."""
    size: NDArray[np.int64]
    """(P,) lengths in bytes."""
    is_key: NDArray[np.bool_]
    """(P,) what the container marks as a key frame."""
    is_shown: NDArray[np.bool_]
    """(P,) True where a frame is displayed."""
    is_entry: NDArray[np.bool_]
    """(P,) True where decoding can start."""
    is_damaged: NDArray[np.bool_]
    """(P,) True where the bytes can't be what the encoder wrote."""
    doubts: frozenset[str]
    """Why packets may not be frames one by one."""
    has_one_size: bool
    """True where no key frame announces another picture size."""
    configuration: bytes
    """The codec's configuration record."""
    lost_bytes: bool = False
    """True where the file ends before its last packet does."""
    decoder_reorders: bool = False
    """True where the decoder expects frames in another order than packets."""
    is_first_video: bool = True
    """True where the stream is the first of the file's video streams."""
    av1_frames: Av1Frames | None = None
    """What all frame headers say, where they were read in one go."""


@dataclass(slots=True)
class PacketLooks:
    """What packets' bytes say, one entry each."""

    is_shown: list[bool] = field(default_factory=list)
    is_entry: list[bool] = field(default_factory=list)
    is_damaged: list[bool] = field(default_factory=list)
    doubts: set[str] = field(default_factory=set)
    sizes: set[bytes] = field(default_factory=set)

    def add(self, seen: Look, *, is_hidden: bool = False) -> None:
        """Note what a packet's bytes say; a hidden one is decoded and not displayed."""
        self.is_shown.append(seen.is_shown and not is_hidden)
        self.is_entry.append(seen.is_entry)
        self.is_damaged.append(seen.is_damaged)
        self.sizes.add(seen.size)

    @property
    def has_one_size(self) -> bool:
        """True where no key frame announces another picture size."""
        return len(self.sizes - {b""}) <= 1


@dataclass(slots=True)
class PacketLog:
    """Packets as they come, one entry each in decoding order; see ``Packets``."""

    pts: list[int] = field(default_factory=list)
    dts: list[int] = field(default_factory=list)
    duration: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    is_key: list[bool] = field(default_factory=list)
    looks: PacketLooks = field(default_factory=PacketLooks)
    lost_bytes: bool = False
    first_frame: Any = None


def packet_reader(codec: str, configuration: bytes | None) -> PacketReader:
    """How to look at a packet of this codec."""
    if codec in ("h264", "hevc"):
        nal_format = nal_format_of(codec, configuration)
        return _H264Reader(nal_format) if codec == "h264" else _HevcReader(nal_format)
    if codec == "av1":
        return _Av1Reader()
    if codec == "vp8":
        return _VpxReader(vp8_shows_frame, vp8_is_key, vp8_size)
    if codec == "vp9":
        return _VpxReader(vp9_shows_frame, vp9_is_key, vp9_size)
    return lambda _data, is_key, _doubts: Look(is_entry=is_key)


@dataclass(frozen=True, slots=True)
class _VpxReader:
    """Finds hidden frames, and key frames that aren't any."""

    shows_frame: Callable[[bytes], bool]
    is_key: Callable[[bytes], bool]
    size: Callable[[bytes], bytes]

    def __call__(self, data: bytes, is_key: bool, _doubts: set[str]) -> Look:
        is_entry = is_key and self.is_key(data)
        size = self.size(data) if is_entry else b""
        return Look(self.shows_frame(data), is_entry, size=size)


class _Av1Reader:
    """Finds packets that aren't one temporal unit, as a damaged index cuts them.

    A unit shows one frame (AV1 specification 7.5); with spatial layers, one of each.
    """

    def __init__(self) -> None:
        self._reader = Av1Reader()

    def __call__(self, data: bytes, is_key: bool, _doubts: set[str]) -> Look:
        facts = self._reader.read(data)
        is_entry = is_key and facts.starts_with_key
        return Look(
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

    def __call__(self, data: bytes, is_key: bool, doubts: set[str]) -> Look:
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
        return Look(is_entry=has_idr, size=size)


class _HevcReader:
    """Finds leading pictures that FFmpeg skips after the start of a sequence."""

    def __init__(self, nal_format: NalFormat) -> None:
        self._length_size = nal_format.length_size
        self._skips_leading = True

    def __call__(self, data: bytes, is_key: bool, doubts: set[str]) -> Look:
        types = hevc_nal_types(iter_nal_heads(data, self._length_size))
        starts = is_key and not types.isdisjoint(STARTS_DECODING)
        if starts:
            starts_anew = self._skips_leading or any(BLA_W_LP <= t <= BLA_N_LP for t in types)
            self._skips_leading = starts_anew and not types & STARTS_WITHOUT_RASL
        if self._skips_leading and types & HEVC_RASL:
            doubts.add("leading pictures without their references")
        self._skips_leading |= bool(types & HEVC_ENDS_SEQUENCE)
        return Look(is_entry=starts)
