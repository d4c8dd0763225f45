"""In which order a decoder displays the pictures of H.264 and HEVC, and what they rest on.

Containers give each packet a time, and muxers have been seen to make up times that contradict the
stream. The stream itself says the order, by picture order counts: ITU-T H.264 8.2.1, H.265 8.3.1.
It also brings parameter sets, which stay in force until another one of the same number comes:
H.264 7.4.1.2.1, H.265 7.4.2.4.2.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reelseek.bitstream import _h264, _hevc
from reelseek.bitstream._bits import nal_bits
from reelseek.bitstream._h264 import H264Sps
from reelseek.bitstream._hevc import HevcPps, HevcSps

SLICE_HEAD_BYTES = 32
"""Bytes that hold a slice header up to its picture order count."""
EPOCH = 1 << 34
"""More than any two picture order counts are apart."""
SEQUENCE_SETS = frozenset({_h264.NAL_SPS, _h264.NAL_SPS_EXTENSION, _hevc.NAL_SPS, _hevc.NAL_VPS})
H264_EXCEEDS = "H.264 that reorders further than it says"
HEVC_EXCEEDS = "HEVC that reorders further than it says"
MAX_HELD = 16
"""Pictures that a decoder holds back, at most."""
MAX_ORDER_BITS = 16
"""Length of the field that holds the lower bits of a picture order count, at most."""


class OrderUnknownError(ValueError):
    """The stream counts its pictures, or hides some, in a way that isn't followed."""


@dataclass(slots=True)
class ParameterSets:
    """The parameter sets in force."""

    read: Callable[[bytes], tuple[tuple[int, int], Any] | None]
    """A NAL unit -> its type and number, and what it says; None for another unit."""
    known: dict[tuple[int, int], Any] = field(default_factory=dict)
    """What each says, by type and number."""
    _bytes: dict[tuple[int, int], bytes] = field(default_factory=dict)
    changed: bool = False
    """True where the last access unit brought one that wasn't in force already."""
    brought_all: bool = True
    """True where the last access unit brought all that are in force now."""

    def take(self, units: Iterable[bytes], *, only_of_pictures: bool = False) -> None:
        """Put an access unit's parameter sets in force; those that can't be read are ignored.

        Args:
            units: Its NAL units.
            only_of_pictures: True where it can't start a sequence: what looks like a sequence's
                parameter set in it is damage.
        """
        brought = {}
        self.changed = False
        for unit in units:
            try:
                found = self.read(unit)
            except EOFError:
                continue
            if found is None or (only_of_pictures and found[0][0] in SEQUENCE_SETS):
                continue
            key, self.known[key] = found
            brought[key] = unit.rstrip(b"\0")
            self.changed |= self._bytes.get(key) != brought[key]
        self._bytes.update(brought)
        self.brought_all = self._bytes.keys() <= brought.keys()


def read_h264_set(unit: bytes) -> tuple[tuple[int, int], Any] | None:
    """What an H.264 parameter set says: an H264Sps, or the number of the SPS of a PPS."""
    kind = unit[0] & 0x1F
    if kind == _h264.NAL_SPS:
        sps = _h264.read_h264_sps(unit)
        return (kind, sps.id), sps
    if kind in (_h264.NAL_PPS, _h264.NAL_SPS_EXTENSION):
        bits = nal_bits(unit[:SLICE_HEAD_BYTES], 1)
        number = bits.exp_golomb()
        return (kind, number), bits.exp_golomb()
    return None


def read_hevc_set(unit: bytes) -> tuple[tuple[int, int], Any] | None:
    """What an HEVC parameter set says: an HevcSps or HevcPps; nothing for a VPS."""
    kind = unit[0] >> 1 & 0x3F
    if len(unit) < 3 or _is_of_a_layer(unit):
        return None
    if kind == _hevc.NAL_SPS:
        sps = _hevc.read_hevc_sps(unit)
        return (kind, sps.id), sps
    if kind == _hevc.NAL_PPS:
        pps = _hevc.read_hevc_pps(unit)
        return (kind, pps.id), pps
    if kind == _hevc.NAL_VPS:
        return (kind, nal_bits(unit, 2).take(4)), None
    return None


class Reordering:
    """Holds pictures back as FFmpeg does: as many as the stream says, then the first goes out."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self._last = -1
        self.is_exceeded = False
        """True where a picture came after one that follows it in display order had gone out."""

    def add(self, order: int, limit: int) -> None:
        """The next picture in decoding order."""
        self.is_exceeded |= order < self._last
        bisect.insort(self._held, order)
        while len(self._held) > limit:
            self._last = self._held.pop(0)


def read_h264_slice(unit: bytes, known: Mapping[tuple[int, int], Any]) -> tuple[H264Sps, int]:
    """A slice's sequence parameter set and pic_order_cnt_lsb (0 where it has none), 7.3.3.

    Raises:
        OrderUnknownError: Its pictures aren't counted like this.
        EOFError: It ends before.
        KeyError: Its parameter sets aren't there.
    """
    bits = nal_bits(unit[:SLICE_HEAD_BYTES], 1)
    bits.exp_golomb()  # first_mb_in_slice
    bits.exp_golomb()  # slice_type
    sps: H264Sps = known[_h264.NAL_SPS, known[_h264.NAL_PPS, bits.exp_golomb()]]
    if sps.order_type == 1 or not sps.only_whole_frames:
        raise OrderUnknownError("H.264 pictures that aren't counted one by one")
    if sps.order_type == 2 or sps.order_bits > MAX_ORDER_BITS:
        return sps, 0
    bits.take(2 * sps.has_separate_planes + sps.frame_num_bits)
    if unit[0] & 0x1F == _h264.NAL_IDR_SLICE:
        bits.exp_golomb()  # idr_pic_id
    return sps, bits.take(sps.order_bits)


class H264Order:
    """Follows picture order counts, 8.2.1; without memory_management_control_operation 5."""

    def __init__(self, sets: ParameterSets) -> None:
        self._sets = sets
        self._epoch = self._msb = self._lsb = 0
        self._number = 0
        self._reordering = Reordering()

    @property
    def doubt(self) -> str:
        """Why pictures may be displayed in another order; empty where there is no reason."""
        return H264_EXCEEDS * self._reordering.is_exceeded

    def of(self, units: Sequence[bytes]) -> int | None:
        """A number that grows with the place in display order; None where it can't be read.

        Raises:
            OrderUnknownError: The order isn't followed.
        """
        first = next((unit for unit in units if 1 <= unit[0] & 0x1F <= _h264.NAL_IDR_SLICE), None)
        if first is None:
            return None
        try:
            return self._of(first)
        except (EOFError, KeyError):
            return None

    def _of(self, unit: bytes) -> int | None:
        sps, lsb = read_h264_slice(unit, self._sets.known)
        if sps.order_bits > MAX_ORDER_BITS:
            return None
        self._number += 1
        if sps.order_type == 2:  # display order is decoding order
            return self._number
        if unit[0] & 0x1F == _h264.NAL_IDR_SLICE:
            self._epoch += EPOCH
            self._msb = self._lsb = 0
        msb = _next_msb(self._msb, self._lsb, lsb, 1 << sps.order_bits)
        if unit[0] & 0x60:  # nal_ref_idc
            self._msb, self._lsb = msb, lsb
        order = self._epoch + msb + lsb
        # Without a limit FFmpeg guesses one, and drops the pictures that come too late for it.
        self._reordering.add(order, min(sps.reorder_limit or 0, MAX_HELD))
        return order


def read_hevc_slice(
    unit: bytes, known: Mapping[tuple[int, int], Any]
) -> tuple[HevcSps, int, bool] | None:
    """What a slice says of its picture, 7.3.6.1; None where it isn't the picture's first slice.

    Returns:
        Its sequence parameter set; slice_pic_order_cnt_lsb, 0 for an IDR picture; and
        no_output_of_prior_pics_flag: pictures before this one may stay hidden.

    Raises:
        OrderUnknownError: Its picture may stay hidden.
        EOFError: It ends before.
        KeyError: Its parameter sets aren't there.
    """
    kind = unit[0] >> 1 & 0x3F
    bits = nal_bits(unit[:SLICE_HEAD_BYTES], 2)
    is_first = bits.flag()
    hides_earlier = kind in _hevc.STARTS_DECODING and bits.flag()
    pps: HevcPps = known[_hevc.NAL_PPS, bits.exp_golomb()]
    sps: HevcSps = known[_hevc.NAL_SPS, pps.sps]
    if not is_first or sps.order_bits > MAX_ORDER_BITS:
        return None
    if pps.may_hide_pictures:
        raise OrderUnknownError("HEVC pictures that may not be displayed")
    bits.take(pps.extra_bits)
    bits.exp_golomb()  # slice_type
    bits.take(2 * sps.has_separate_planes)
    lsb = 0 if kind in _hevc.STARTS_WITHOUT_RASL else bits.take(sps.order_bits)
    return sps, lsb, hides_earlier


class HevcOrder:
    """Follows picture order counts, 8.3.1."""

    def __init__(self, sets: ParameterSets) -> None:
        self._sets = sets
        self._epoch = self._msb = self._lsb = 0
        self._starts_anew = True
        self._reordering = Reordering()
        self._has_sub_layers = False

    @property
    def doubt(self) -> str:
        """Why pictures may be displayed in another order; empty where there is no reason."""
        if self._has_sub_layers:  # encoders have been seen to give too small limits for them
            return "HEVC with temporal layers"
        return HEVC_EXCEEDS * self._reordering.is_exceeded

    def end_sequence(self) -> None:
        """The next random access picture starts another sequence (end_of_seq_rbsp)."""
        self._starts_anew = True

    def of(self, units: Sequence[bytes]) -> int | None:
        """A number that grows with the place in display order; None where it can't be read.

        Raises:
            OrderUnknownError: The order isn't followed, or pictures may stay hidden.
        """
        slices = (unit for unit in units if unit[0] >> 1 & 0x3F < _hevc.NAL_VPS)
        first = next((unit for unit in slices if len(unit) > 2 and not _is_of_a_layer(unit)), None)
        if first is None:
            return None
        try:
            return self._of(first, first[0] >> 1 & 0x3F)
        except (EOFError, KeyError):
            return None

    def _of(self, unit: bytes, kind: int) -> int | None:
        found = read_hevc_slice(unit, self._sets.known)
        if found is None:
            return None
        sps, lsb, hides_earlier = found
        if hides_earlier and self._epoch:
            raise OrderUnknownError("HEVC pictures that may not be displayed")
        starts_anew = kind in _hevc.STARTS_DECODING and (kind != _hevc.CRA_NUT or self._starts_anew)
        if starts_anew:
            self._starts_anew = False
            self._epoch += EPOCH
            msb = 0
        else:
            msb = _next_msb(self._msb, self._lsb, lsb, 1 << sps.order_bits)
        # prevTid0Pic is no leading picture and no sub-layer non-reference picture.
        is_kept = kind >= 16 or (kind % 2 == 1 and kind < 6)
        if unit[1] & 7 == 1 and is_kept:
            self._msb, self._lsb = msb, lsb
        order = self._epoch + msb + lsb
        self._reordering.add(order, min(sps.reorder_limit, MAX_HELD))
        self._has_sub_layers |= sps.has_sub_layers
        return order


def _is_of_a_layer(unit: bytes) -> bool:
    """nuh_layer_id above 0, H.265 7.3.1.2: it is no part of what a plain decoder shows."""
    return bool(unit[0] & 1 or unit[1] >> 3)


def _next_msb(msb: int, lsb_before: int, lsb: int, wraps_at: int) -> int:
    if lsb < lsb_before and lsb_before - lsb >= wraps_at // 2:
        return msb + wraps_at
    if lsb > lsb_before and lsb - lsb_before > wraps_at // 2:
        return msb - wraps_at
    return msb
