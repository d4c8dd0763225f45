"""All pictures of H.264 or HEVC streams at once, as arrays.

The same facts as ``H264Order`` and ``HevcOrder`` and the packets' NAL unit headers give one by one,
for the streams that encoders write into MP4 nearly always: parameter sets in the configuration
record only, one sequence, whole frames, no layers. Everything else is left to those readers, whose
result this one must equal.

Several streams with one configuration record are read as one: each begins where decoding can start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reelseek._small_cache import kept_where_small
from reelseek._truths import are_all, is_any
from reelseek.bitstream import _h264, _hevc
from reelseek.bitstream._bit_columns import MOST_WINDOW_BYTES, BitColumns, Ints, windows
from reelseek.bitstream._h264 import H264Sps
from reelseek.bitstream._hevc import HevcPps, HevcSps
from reelseek.bitstream._nal import NalFormat, PlainPicture
from reelseek.bitstream._pictures import (
    EPOCH,
    MAX_HELD,
    MAX_ORDER_BITS,
    SLICE_HEAD_BYTES,
    OrderUnknownError,
    ParameterSets,
    read_h264_set,
    read_h264_slice,
    read_hevc_set,
    read_hevc_slice,
)

MAX_UNITS = 64
"""NAL units in one packet after which the stream is left to the other readers."""
ESCAPED_BYTES = MOST_WINDOW_BYTES
"""Bytes of a slice in which emulation prevention is looked for, and none read behind."""
MOST_SETS = 64
"""Configurations whose parameter sets a process keeps parsed."""
Truths = NDArray[np.bool_]


def _kinds(numbers: Iterable[int]) -> Truths:
    """(64,) True for these nal_unit_types, to be indexed by them."""
    table = np.zeros(64, np.bool_)
    table[list(numbers)] = True
    return table


H264_SLICE, H264_ASIDE = _kinds(_h264.SLICES), _kinds(_h264.ASIDES)
HEVC_SLICE, HEVC_ASIDE = _kinds(_hevc.SLICES), _kinds(_hevc.ASIDES)
HEVC_NON_REFERENCE = _kinds(_hevc.NON_REFERENCE)
HEVC_RASL = _kinds(_hevc.RASL)
HEVC_IDR, HEVC_START = _kinds(_hevc.STARTS_WITHOUT_RASL), _kinds(_hevc.STARTS_DECODING)


class Pictures(NamedTuple):
    """The pictures of a stream in decoding order, one to a packet."""

    order: Ints
    """(P,) numbers that grow in display order."""
    is_start: Truths
    """(P,) True where decoding can start, if the container says so too."""
    is_droppable: Truths
    """(P,) True where no other picture refers to it."""
    picture: PlainPicture | None
    """Their size and colours; None where they aren't plain."""

    def of_packets(self, first: int, stop: int) -> Pictures:
        """The pictures of some packets."""
        part = slice(first, stop)
        return Pictures(
            self.order[part], self.is_start[part], self.is_droppable[part], self.picture
        )


def read_pictures(
    codec: str,
    data: NDArray[np.uint8],
    start: Ints,
    end: Ints,
    nal_format: NalFormat,
    first: Sequence[int] = (0,),
) -> Pictures | None:
    """Read the headers of all packets.

    Args:
        codec: ``h264`` or ``hevc``.
        data: Bytes that hold the packets, with ``PADDING_BYTES`` zeros at the end.
        start: (P,) position of each packet, in decoding order.
        end: (P,) position after it.
        nal_format: How its NAL units are separated, and the parameter sets in force.
        first: (S,) the numbers of the packets that begin a stream.

    Returns:
        None where the stream isn't of the usual kind.
    """
    if nal_format.length_size == 0 or len(start) == 0:
        return None
    units = _walk(data, start, end, nal_format.length_size)
    if units is None:
        return None
    known = _parsed(codec, nal_format.parameter_sets)
    begins = np.zeros(len(start), np.bool_)
    begins[np.asarray(first, np.int64)] = True
    stream = _Stream(data, units, begins, known)
    return _h264_pictures(stream) if codec == "h264" else _hevc_pictures(stream)


@kept_where_small(MOST_SETS)
def _parsed(codec: str, parameter_sets: tuple[bytes, ...]) -> Mapping[tuple[int, int], Any]:
    """The parameter sets by type and number; a dataset's files mostly have the same."""
    sets = ParameterSets(read_h264_set if codec == "h264" else read_hevc_set)
    sets.take(parameter_sets)
    return sets.known


class _Units(NamedTuple):
    """NAL units, sorted by packet and position."""

    packet: Ints
    start: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class _Stream:
    data: NDArray[np.uint8]
    units: _Units
    begins: Truths
    """(P,) True for the packets with which a stream begins."""
    known: Mapping[tuple[int, int], Any]
    """The parameter sets in force, by type and number."""

    @property
    def num_packets(self) -> int:
        """Of all streams."""
        return len(self.begins)

    def byte(self, number: int, unit: Ints | slice = slice(None)) -> Ints:
        """A byte of each of some units."""
        return self.data[self.units.start[unit] + number].astype(np.int64)

    def unit(self, number: int) -> bytes:
        """One unit's first bytes."""
        start, end = int(self.units.start[number]), int(self.units.end[number])
        return self.data[start : min(end, start + SLICE_HEAD_BYTES)].tobytes()

    def first_of_each(self, is_slice: Truths) -> Ints | None:
        """The first slice of each packet; None where a packet has none."""
        slices = np.flatnonzero(is_slice)
        packets = self.units.packet[slices]
        is_first = np.ones(len(slices), np.bool_)
        is_first[1:] = packets[1:] != packets[:-1]
        first = slices[is_first]
        return first if len(first) == self.num_packets else None

    def of_packets(self, of_units: Truths) -> Truths:
        """True for packets with a unit that it is true for."""
        found = np.zeros(self.num_packets, np.bool_)
        found[self.units.packet[of_units]] = True
        return found

    def needs_a_closer_look(self, slices: Ints, bits: BitColumns, header_bytes: int) -> Truths:
        """True where a slice's header holds emulation prevention, is odd, or ends too soon."""
        window = windows(self.data, ESCAPED_BYTES)[self.units.start[slices]]
        is_zero = window == 0
        two_zeros = np.flatnonzero(is_zero[:, :-2] & is_zero[:, 1:-1])
        number, place = np.divmod(two_zeros, ESCAPED_BYTES - 2)
        length = self.units.end[slices] - self.units.start[slices]
        most = np.minimum(length, ESCAPED_BYTES - 2) - header_bytes
        closer: Truths = bits.num_read() > most * 8
        closer[number[window[number, place + 2] == 3]] = True
        return closer


def _walk(data: NDArray[np.uint8], start: Ints, end: Ints, length_size: int) -> _Units | None:
    """Every NAL unit that isn't empty; None where one reaches beyond its packet."""
    steps: list[tuple[Ints, Ints, Ints]] = []
    packet, position = np.arange(len(start)), start
    for _ in range(MAX_UNITS):
        goes_on = position + length_size <= end[packet]
        packet, position = packet[goes_on], position[goes_on]
        if len(packet) == 0:
            if not steps:
                return None
            columns = [np.concatenate(column) for column in zip(*steps, strict=True)]
            order = np.argsort(columns[0], kind="stable")  # each packet's are in order already
            return _Units(*(column[order] for column in columns))
        size = np.zeros(len(packet), np.int64)
        for number in range(length_size):
            size = size << 8 | data[position + number]
        first, position = position + length_size, position + length_size + size
        if is_any(position > end[packet]):
            return None
        is_there = size > 0
        steps.append((packet[is_there], first[is_there], position[is_there]))
    return None


def _only(known: Mapping[tuple[int, int], Any], kind: int) -> Any:
    """The only parameter set of its type; None where there are several, or none."""
    found = [content for (of_kind, _number), content in known.items() if of_kind == kind]
    return found[0] if len(found) == 1 else None


def _h264_pictures(stream: _Stream) -> Pictures | None:
    sps: H264Sps | None = _only(stream.known, _h264.NAL_SPS)
    if sps is None or not sps.only_whole_frames or sps.order_type not in (0, 2):
        return None
    if sps.order_bits > MAX_ORDER_BITS:
        return None
    header = stream.byte(0)
    kind = header & 0x1F
    is_slice = H264_SLICE[kind]
    if not are_all(is_slice | H264_ASIDE[kind]):
        return None
    first = stream.first_of_each(is_slice)
    if first is None:
        return None
    is_idr = stream.of_packets(kind == _h264.NAL_IDR_SLICE)
    if not are_all(is_idr[stream.begins]) or is_any(is_idr != (kind[first] == _h264.NAL_IDR_SLICE)):
        return None
    is_referred_to = stream.of_packets(is_slice & (header & 0x60 != 0))
    if is_any(is_idr & ~is_referred_to) or is_any(is_referred_to != (header[first] & 0x60 != 0)):
        return None
    lsb = _h264_lsb(stream, first, is_idr, sps)
    if lsb is None:
        return None
    if sps.order_type == 2:
        order: Ints | None = np.arange(1, len(lsb) + 1)
    else:
        order = _order(lsb, is_idr, is_referred_to, sps.order_bits, sps.reorder_limit or 0)
    return None if order is None else Pictures(order, is_idr, ~is_referred_to, sps.picture)


def _h264_lsb(stream: _Stream, first: Ints, is_idr: Truths, sps: H264Sps) -> Ints | None:
    """pic_order_cnt_lsb of each packet's first slice, 7.3.3."""
    bits = BitColumns(stream.data, stream.units.start[first] + 1)
    _number, odd = bits.exp_golomb()  # first_mb_in_slice
    odd = odd | bits.exp_golomb()[1]  # slice_type
    pps, is_odd = bits.exp_golomb()
    odd = odd | is_odd
    lsb: Ints = np.zeros(len(first), np.int64)
    if sps.order_type == 0:
        bits.take(2 * sps.has_separate_planes + sps.frame_num_bits)
        odd = odd | bits.exp_golomb(is_idr)[1]  # idr_pic_id
        lsb = bits.take(sps.order_bits)
    closer = odd | stream.needs_a_closer_look(first, bits, 1)
    for packet in np.flatnonzero(closer).tolist():
        try:
            _sps, lsb[packet] = read_h264_slice(stream.unit(first[packet]), stream.known)
        except (EOFError, KeyError, OrderUnknownError):
            return None
    numbers = set(pps[~closer].tolist())
    known = all(stream.known.get((_h264.NAL_PPS, number)) == sps.id for number in numbers)
    return lsb if known and not lsb[is_idr].any() else None


def _hevc_pictures(stream: _Stream) -> Pictures | None:
    sps: HevcSps | None = _only(stream.known, _hevc.NAL_SPS)
    pps: HevcPps | None = _only(stream.known, _hevc.NAL_PPS)
    if sps is None or pps is None or sps.has_sub_layers or sps.order_bits > MAX_ORDER_BITS:
        return None
    if pps.may_hide_pictures or is_any(stream.units.end - stream.units.start < 3):
        return None
    header = stream.byte(0)
    kind, second = header >> 1 & 0x3F, stream.byte(1)
    if is_any((header & 1) == 1) or is_any(second != 1):  # layers, nuh_layer_id and TemporalId
        return None
    is_slice = HEVC_SLICE[kind]
    if not are_all(is_slice | HEVC_ASIDE[kind]):
        return None
    first = stream.first_of_each(is_slice)
    if first is None or is_any(np.repeat(kind[first], _counts(stream, is_slice)) != kind[is_slice]):
        return None
    kind = kind[first]
    is_idr = HEVC_IDR[kind]
    is_start = HEVC_START[kind]
    is_broken_link = (kind >= _hevc.BLA_W_LP) & (kind <= _hevc.BLA_N_LP)
    if not are_all(is_start[stream.begins]) or is_any(is_broken_link):
        return None
    # Behind another start than IDR, FFmpeg leaves out pictures whose references it lacks.
    if not are_all(is_idr[stream.begins]) and is_any(HEVC_RASL[kind]):
        return None
    lsb = _hevc_lsb(stream, first, is_idr, is_start, sps, pps)
    if lsb is None:
        return None
    starts_anew = stream.begins | (is_start & (kind != _hevc.CRA_NUT))
    # prevTid0Pic is no leading picture and no sub-layer non-reference picture, 8.3.1.
    is_kept = (kind >= 16) | ((kind % 2 == 1) & (kind < 6))
    order = _order(lsb, starts_anew, is_kept, sps.order_bits, sps.reorder_limit)
    if order is None:
        return None
    return Pictures(order, is_start, HEVC_NON_REFERENCE[kind], sps.picture)


def _counts(stream: _Stream, is_slice: Truths) -> Ints:
    """How many slices each packet has."""
    counts: Ints = np.bincount(stream.units.packet[is_slice], minlength=stream.num_packets)
    return counts


def _hevc_lsb(
    stream: _Stream, first: Ints, is_idr: Truths, is_start: Truths, sps: HevcSps, pps: HevcPps
) -> Ints | None:
    """slice_pic_order_cnt_lsb of each packet's first slice, 7.3.6.1."""
    bits = BitColumns(stream.data, stream.units.start[first] + 2)
    is_first = bits.flag()
    hides_earlier = bits.flag(is_start)
    number, odd = bits.exp_golomb()
    bits.take(pps.extra_bits)
    odd = odd | bits.exp_golomb()[1]  # slice_type
    bits.take(2 * sps.has_separate_planes)
    lsb = bits.take(sps.order_bits, ~is_idr)
    closer = odd | stream.needs_a_closer_look(first, bits, 2)
    for packet in np.flatnonzero(closer).tolist():
        try:
            found = read_hevc_slice(stream.unit(first[packet]), stream.known)
        except (EOFError, KeyError, OrderUnknownError):
            return None
        if found is None:
            return None
        _sps, lsb[packet], hides_earlier[packet] = found
        is_first[packet], number[packet] = True, pps.id
    usual = is_first & (number == pps.id)
    return lsb if are_all(usual) and not is_any(hides_earlier[~stream.begins]) else None


def _order(
    lsb: Ints, starts_anew: Truths, is_kept: Truths, order_bits: int, limit: int
) -> Ints | None:
    """Picture order counts from their lower bits, H.264 8.2.1.1 and H.265 8.3.1.

    Returns:
        Numbers that grow over the whole stream; None where pictures share one, or come so late
        that a decoder which holds ``limit`` of them back has put out a later one.
    """
    wraps_at = 1 << order_bits
    kept = np.flatnonzero(is_kept)
    if not are_all(is_kept[starts_anew]):
        return None
    anew = starts_anew[kept]
    before = np.concatenate(([0], lsb[kept][:-1]))
    steps = np.where(anew, 0, _step(before, lsb[kept], wraps_at))
    total = np.cumsum(steps)
    since_start = total - total[np.maximum.accumulate(np.where(anew, np.arange(len(kept)), 0))]
    # Each picture is counted from the last one before it that is kept, and a kept one from itself.
    last = np.cumsum(is_kept) - 1
    msb = since_start[last] + _step(lsb[kept][last], lsb, wraps_at)
    order: Ints = np.cumsum(starts_anew) * EPOCH + msb + lsb
    by_display = np.argsort(order, kind="stable")
    place = np.empty(len(order), np.int64)
    place[by_display] = np.arange(len(order))
    ascending = order[by_display]
    if is_any(ascending[1:] == ascending[:-1]):
        return None
    # The picture of place r goes out when the one after the next ``limit`` has come.
    if is_any(np.arange(len(order)) > place + min(limit, MAX_HELD)):
        return None
    return order


def _step(before: Ints, lsb: Ints, wraps_at: int) -> Ints:
    """What the upper bits of a count change by, from one picture to another."""
    half = wraps_at // 2
    wraps_up = (lsb < before) & (before - lsb >= half)
    wraps_down = (lsb > before) & (lsb - before > half)
    steps: Ints = wraps_at * (wraps_up.astype(np.int64) - wraps_down)
    return steps
