"""What is known of a stream's packets, and how to look at one for each codec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

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
    vp9_shown_frames,
    vp9_size,
)
from reelseek.bitstream._av1_batch import Av1Frames
from reelseek.bitstream._h264 import NAL_IDR_SLICE
from reelseek.bitstream._hevc import BLA_N_LP, BLA_W_LP, RASL, STARTS_DECODING, STARTS_WITHOUT_RASL
from reelseek.bitstream._picture_batch import Pictures
from reelseek.bitstream._pictures import (
    H264Order,
    HevcOrder,
    OrderUnknownError,
    ParameterSets,
    read_h264_set,
    read_hevc_set,
)

UNEVEN = "AV1 packets that don't show exactly one frame each"
NO_ORDER = np.iinfo(np.int64).min
"""Stands for a place in display order that a packet doesn't say."""
HEVC_ENDS_SEQUENCE = frozenset({36, 37})


@dataclass(frozen=True, slots=True)
class Look:
    """What a packet's bytes say."""

    is_shown: bool = True
    is_entry: bool = False
    is_damaged: bool = False
    size: bytes = b""
    """What the packet says of the picture size, as it is coded; empty where it says nothing."""
    order: int | None = None
    """A number that grows in display order, from the packet's bytes; None where they don't say."""
    changes_sets: bool = False
    """True where it brings a parameter set that wasn't in force already."""
    brings_sets: bool = True
    """True where it brings all parameter sets that are in force."""


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
    order: NDArray[np.int64] | None = None
    """(P,) numbers that grow in display order, from the packets' bytes; NO_ORDER where they can't
    be read; None for codecs whose packets are in display order."""
    is_completed_by_container: bool = False
    """True where the container says of the pictures (colours, size) what the stream leaves out."""
    av1_frames: Av1Frames | None = None
    """What all frame headers of AV1 say, where they were read in one go."""
    pictures: Pictures | None = None
    """The same of H.264 and HEVC."""


@dataclass(slots=True)
class PacketLooks:
    """What packets' bytes say, one entry each."""

    is_shown: list[bool] = field(default_factory=list)
    is_entry: list[bool] = field(default_factory=list)
    is_damaged: list[bool] = field(default_factory=list)
    doubts: set[str] = field(default_factory=set)
    sizes: set[bytes] = field(default_factory=set)
    orders: list[int | None] = field(default_factory=list)
    brings_sets: list[bool] = field(default_factory=list)
    sets_change: bool = False

    def add(self, seen: Look, *, is_hidden: bool = False) -> None:
        """Note what a packet's bytes say; a hidden one is decoded and not displayed."""
        self.is_shown.append(seen.is_shown and not is_hidden)
        self.is_entry.append(seen.is_entry)
        self.is_damaged.append(seen.is_damaged)
        self.sizes.add(seen.size)
        self.orders.append(seen.order)
        self.brings_sets.append(seen.brings_sets)
        self.sets_change |= seen.changes_sets

    def entries(self) -> NDArray[np.bool_]:
        """(P,) where decoding can start, whatever the decoder was fed before.

        Where a stream's parameter sets change, a decoder that was elsewhere in it, or in another
        file with the same configuration, has others than those that are in force here: decoding
        starts only at packets that bring all of them.
        """
        is_entry = np.array(self.is_entry, np.bool_)
        return is_entry & np.array(self.brings_sets, np.bool_) if self.sets_change else is_entry

    def display_order(self) -> NDArray[np.int64] | None:
        """(P,) numbers that grow in display order; None where no packet says any."""
        if not any(order is not None for order in self.orders):
            return None
        orders = (NO_ORDER if order is None else order for order in self.orders)
        return np.fromiter(orders, np.int64, len(self.orders))

    def columns(self) -> dict[str, Any]:
        """The fields of ``Packets`` that are found by looking at each packet."""
        return {
            "is_shown": np.array(self.is_shown, np.bool_),
            "is_entry": self.entries(),
            "order": self.display_order(),
            "is_damaged": np.array(self.is_damaged, np.bool_),
            "doubts": frozenset(self.doubts),
            "has_one_size": self.has_one_size,
        }

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
    first_data: list[bytes] = field(default_factory=list)
    """The packets up to the first frame."""


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
        return _VpxReader(vp9_shown_frames, vp9_is_key, vp9_size)
    return lambda _data, is_key, _doubts: Look(is_entry=is_key)


@dataclass(frozen=True, slots=True)
class _VpxReader:
    """Finds hidden frames, and key frames that aren't any."""

    shown_frames: Callable[[bytes], int]
    is_key: Callable[[bytes], bool]
    size: Callable[[bytes], bytes]

    def __call__(self, data: bytes, is_key: bool, doubts: set[str]) -> Look:
        is_entry = is_key and self.is_key(data)
        size = self.size(data) if is_entry else b""
        shown = self.shown_frames(data)
        if shown > 1:
            doubts.add("packets that show several frames")
        return Look(shown > 0, is_entry, size=size)


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
    """Finds IDR pictures, the order of display, and streams that may hold one field per packet."""

    def __init__(self, nal_format: NalFormat) -> None:
        self._length_size = nal_format.length_size
        self._sets = ParameterSets(read_h264_set)
        self._sets.take(nal_format.parameter_sets)
        self._order = H264Order(self._sets)
        self._fields = read_h264_facts(nal_format.parameter_sets).may_hold_fields
        self._first = True

    def __call__(self, data: bytes, is_key: bool, doubts: set[str]) -> Look:
        has_idr = False
        size = b""
        units = list(iter_nals(data, self._length_size))
        starts = is_key or self._first or any(unit[0] & 0x1F == NAL_IDR_SLICE for unit in units)
        self._sets.take(units, only_of_pictures=not starts)
        if starts:
            facts = read_h264_facts(units)
            has_idr, size = facts.has_idr, facts.parameter_sets
            if facts.may_hold_fields or self._fields:
                doubts.add("interlaced H.264, where a packet may hold one field")
            if self._first and not has_idr:
                doubts.add("the stream doesn't start with an IDR picture")
        self._first = False
        order = _order_of(self._order, units, doubts)
        return Look(
            is_entry=is_key and has_idr,
            size=size,
            order=order,
            changes_sets=self._sets.changed,
            brings_sets=self._sets.brought_all,
        )


class _HevcReader:
    """Finds the order of display, and leading pictures that FFmpeg skips at a sequence's start."""

    def __init__(self, nal_format: NalFormat) -> None:
        self._length_size = nal_format.length_size
        self._sets = ParameterSets(read_hevc_set)
        self._sets.take(nal_format.parameter_sets)
        self._order = HevcOrder(self._sets)
        self._skips_leading = True

    def __call__(self, data: bytes, is_key: bool, doubts: set[str]) -> Look:
        units = list(iter_nals(data, self._length_size))
        types = hevc_nal_types(units)
        self._sets.take(units, only_of_pictures=types.isdisjoint(STARTS_DECODING))
        starts = is_key and not types.isdisjoint(STARTS_DECODING)
        if starts:
            starts_anew = self._skips_leading or any(BLA_W_LP <= t <= BLA_N_LP for t in types)
            self._skips_leading = starts_anew and not types & STARTS_WITHOUT_RASL
        if self._skips_leading and types & RASL:
            doubts.add("leading pictures without their references")
        order = _order_of(self._order, units, doubts)
        if types & HEVC_ENDS_SEQUENCE:
            self._skips_leading = True
            self._order.end_sequence()
            doubts.add("HEVC sequences that end, after which pictures may not be displayed")
        return Look(
            is_entry=starts,
            order=order,
            changes_sets=self._sets.changed,
            brings_sets=self._sets.brought_all,
        )


def _order_of(order: H264Order | HevcOrder, units: Sequence[bytes], doubts: set[str]) -> int | None:
    try:
        place = order.of(units)
    except OrderUnknownError as exc:
        doubts.add(str(exc))
        return None
    if order.doubt:
        doubts.add(order.doubt)
    return place
