"""All frame headers of AV1 streams at once, as arrays.

The same fields as ``Slots.read_frame_header`` reads, for the streams that encoders write nearly
always: one sequence header, no layers, frame numbers or decoder model, references named one by
one. Everything else is left to that reader, whose result this one must equal.

Several streams with one sequence header are read as one: each begins with a key frame, which
empties all slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream._av1_headers import (
    ALL_SLOTS,
    REFS_PER_FRAME,
    SELECT,
    FrameType,
    SequenceHeader,
    read_sequence_header,
)
from reelseek.bitstream._av1_tiles import SizeRules, tile_limits
from reelseek.bitstream._bit_columns import BitColumns, Ints, windows
from reelseek.bitstream._obu import ObuType

MAX_OBUS = 64
"""OBUs in one temporal unit after which it is left to the other reader."""
MAX_LENGTH_BYTES = 4
SAYS_NOTHING = np.zeros(16, np.bool_)
"""OBU types that aren't about a frame, to be indexed by them."""
SAYS_NOTHING[[ObuType.TEMPORAL_DELIMITER, ObuType.SEQUENCE_HEADER, ObuType.METADATA,
              ObuType.PADDING]] = True  # fmt: skip


class Av1Frames(NamedTuple):
    """The frames of a stream in decoding order, hidden ones and show_existing headers included."""

    packet: Ints
    """(U,) the temporal unit that each belongs to."""
    start: Ints
    """(U,) position of its OBU in the bytes."""
    end: Ints
    """(U,) position after it."""
    reads: Ints
    """(U,) bit s is set where decoding it reads slot s."""
    writes: Ints
    """(U,) bit s is set where it is stored in slot s."""
    is_shown: NDArray[np.bool_]
    """(U,) True where it displays a frame."""
    is_entry: NDArray[np.bool_]
    """(U,) True for a shown key frame behind a sequence header."""
    sequence: SequenceHeader
    sequence_bytes: bytes
    """The sequence header OBU."""

    def moved(self, distance: int) -> Av1Frames:
        """The same for bytes that lie further on, as in the file that they come from."""
        return self._replace(start=self.start + distance, end=self.end + distance)

    def of_packets(self, first: int, stop: int) -> Av1Frames:
        """The frames of some temporal units, which are numbered from the first of them on."""
        part = slice(*np.searchsorted(self.packet, (first, stop)).tolist())
        return Av1Frames(
            packet=self.packet[part] - first,
            start=self.start[part],
            end=self.end[part],
            reads=self.reads[part],
            writes=self.writes[part],
            is_shown=self.is_shown[part],
            is_entry=self.is_entry[part],
            sequence=self.sequence,
            sequence_bytes=self.sequence_bytes,
        )


def read_frames(
    data: NDArray[np.uint8], start: Ints, end: Ints, first: Sequence[int] = (0,)
) -> Av1Frames | None:
    """Read the headers of all temporal units.

    Args:
        data: Bytes that hold them, with ``PADDING_BYTES`` zeros at the end.
        start: (P,) position of each temporal unit, in decoding order.
        end: (P,) position after it.
        first: (S,) the numbers of the temporal units that begin a stream.

    Returns:
        None where the stream isn't of the usual kind.
    """
    obus = _walk(data, start, end)
    if obus is None:
        return None
    packet, kind, head, payload, tail = obus
    sequences = np.flatnonzero(kind == ObuType.SEQUENCE_HEADER)
    known = _sequence_of(data, head[sequences], payload[sequences], tail[sequences])
    if known is None:
        return None
    sequence, sequence_bytes = known
    is_frame = (kind == ObuType.FRAME) | (kind == ObuType.FRAME_HEADER)
    is_other = SAYS_NOTHING[kind]
    if not np.all(is_frame | is_other) or not is_frame.any():
        return None
    fields = _read_headers(data, payload[is_frame], tail[is_frame], sequence)
    if fields is None:
        return None
    frames = packet[is_frame]
    lone_header = (kind[is_frame] == ObuType.FRAME_HEADER) & ~fields.is_existing
    one_each = np.bincount(frames[fields.is_shown], minlength=len(start))
    # After a shown key frame no slot is empty, so that every reference is there.
    if lone_header.any() or np.any(one_each != 1):
        return None
    if not fields.is_shown_key[np.searchsorted(frames, first)].all():
        return None
    has_sequence = np.zeros(len(start), np.bool_)
    has_sequence[packet[sequences]] = True
    if not np.logical_or.reduceat(has_sequence, first).all():  # each stream has its own
        return None
    return Av1Frames(
        packet=frames,
        start=head[is_frame],
        end=tail[is_frame],
        reads=fields.reads,
        writes=fields.writes,
        is_shown=fields.is_shown,
        is_entry=fields.is_shown_key & has_sequence[frames],
        sequence=sequence,
        sequence_bytes=sequence_bytes,
    )


def _walk(
    data: NDArray[np.uint8], start: Ints, end: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints] | None:
    """Every OBU, 5.3: its packet, type, and the positions of header, payload and end."""
    steps = []
    packet = np.arange(len(start))
    position = start.copy()
    for _ in range(MAX_OBUS):
        header = data[position].astype(np.int64)
        if np.any(header & 0x86 != 0x02):  # forbidden bit, extension, no size
            return None
        size, payload = _lengths(data, position + 1)
        tail = payload + size
        if np.any(tail > end[packet]):
            return None
        steps.append((packet, header >> 3 & 15, position, payload, tail))
        goes_on = tail < end[packet]
        packet, position = packet[goes_on], tail[goes_on]
        if len(packet) == 0:
            columns = [np.concatenate(column) for column in zip(*steps, strict=True)]
            order = np.argsort(columns[0], kind="stable")  # each packet's are in order already
            frames, kind, head, payload, tail = (column[order] for column in columns)
            return frames, kind, head, payload, tail
    return None


def _lengths(data: NDArray[np.uint8], position: Ints) -> tuple[Ints, Ints]:
    """leb128(), 4.10.5, and the positions after it; an impossible length where it is too long."""
    size = np.zeros(len(position), np.int64)
    goes_on: NDArray[np.bool_] = np.ones(len(position), np.bool_)
    for index in range(MAX_LENGTH_BYTES):
        byte = data[position].astype(np.int64)
        size |= np.where(goes_on, (byte & 0x7F) << (7 * index), 0)
        position = position + goes_on
        goes_on = goes_on & (byte >= 0x80)
        if not goes_on.any():
            return size, position
    return np.where(goes_on, len(data), size), position


def _sequence_of(
    data: NDArray[np.uint8], head: Ints, payload: Ints, tail: Ints
) -> tuple[SequenceHeader, bytes] | None:
    """The stream's sequence header, where it is the same throughout and of the usual kind."""
    if len(head) == 0:
        return None
    first = data[head[0] : tail[0]]
    if np.any(tail - head != len(first)) or np.any(windows(data, len(first))[head] != first):
        return None
    try:
        sequence = read_sequence_header(data[payload[0] : tail[0]].tobytes())
    except EOFError:
        return None
    unusual = sequence.is_reduced_still_picture or sequence.has_decoder_model
    if unusual or sequence.has_frame_ids or sequence.has_layers:
        return None
    return sequence, first.tobytes()


class _Fields(NamedTuple):
    is_existing: NDArray[np.bool_]
    is_shown: NDArray[np.bool_]
    is_shown_key: NDArray[np.bool_]
    reads: Ints
    writes: Ints


def _read_headers(
    data: NDArray[np.uint8], payload: Ints, tail: Ints, sequence: SequenceHeader
) -> _Fields | None:
    """uncompressed_header(), 5.9.2, of all frames; None where one is of an unusual kind."""
    bits = BitColumns(data, payload)
    first = bits.take(4)
    existing, coded = first & 8 != 0, first & 8 == 0
    frame_type, shows = first >> 1 & 3, first & 1 == 1
    bits.take(1, coded & ~shows)  # showable_frame
    is_key = coded & (frame_type == FrameType.KEY)
    shown_key = is_key & shows
    resilient = shown_key | bits.flag(coded & ~shown_key)
    updates_cdf = ~bits.flag()  # disable_cdf_update
    tools = sequence.screen_content_tools
    has_tools = bits.flag() if tools == SELECT else np.full(len(payload), bool(tools))
    chooses_mv = sequence.integer_mv == SELECT
    integer_mv = bits.flag(has_tools) if chooses_mv else has_tools & bool(sequence.integer_mv)
    overrides = bits.flag(coded)
    bits.take(sequence.order_hint_bits)
    intra = is_key | (frame_type == FrameType.INTRA_ONLY)
    bits.take(3, ~intra & ~resilient)  # primary_ref_frame
    writes = np.where(shown_key, ALL_SLOTS, bits.take(8, coded & ~shown_key))  # 0: existing ones
    names_hints = resilient & ((~intra) | (writes != ALL_SLOTS)) & (sequence.order_hint_bits > 0)
    is_inter = coded & ~intra
    is_short = bits.flag(is_inter) if sequence.order_hint_bits else is_inter & False
    unusual = (is_key & ~shows) | (coded & (frame_type == FrameType.SWITCH)) | is_short
    if np.any(unusual | overrides | (coded & names_hints)):
        return None
    packed = bits.take(3 * REFS_PER_FRAME, is_inter)
    reads: Ints = np.zeros(len(payload), np.int64)
    for shift in range(0, 3 * REFS_PER_FRAME, 3):
        reads |= 1 << (packed >> shift & 7)
    if _shows_a_key_frame(existing, first & 7, is_key, writes):
        return None
    frames = _Coding(coded, is_inter, has_tools, integer_mv, resilient, updates_cdf)
    if not _has_one_tile_each(bits, sequence.sizes, frames):
        return None
    if np.any(payload == tail) or np.any(coded & (bits.num_read() > 8 * (tail - payload))):
        return None
    reads = np.where(existing, 1 << (first & 7), np.where(is_inter, reads, 0))
    return _Fields(
        is_existing=existing,
        is_shown=existing | shows,
        is_shown_key=shown_key,
        reads=reads,
        writes=writes,
    )


class _Coding(NamedTuple):
    coded: NDArray[np.bool_]
    is_inter: NDArray[np.bool_]
    has_tools: NDArray[np.bool_]
    integer_mv: NDArray[np.bool_]
    resilient: NDArray[np.bool_]
    updates_cdf: NDArray[np.bool_]


def _has_one_tile_each(bits: BitColumns, rules: SizeRules, frames: _Coding) -> bool:
    """Read on from the size to the tiles; False where a frame has several, or a size of its own."""
    limits = tile_limits(*rules.max_size, rules.has_large_blocks)
    if rules.may_reduce_width or limits.min_bits > 0:
        return False
    coded, is_inter = frames.coded, frames.is_inter
    if bits.flag(coded).any():  # render_and_frame_size_different
        return False
    bits.take(1, coded & ~is_inter & frames.has_tools)  # allow_intrabc
    bits.take(1, is_inter & ~frames.integer_mv)  # allow_high_precision_mv
    is_switchable = bits.flag(is_inter)
    bits.take(2, is_inter & ~is_switchable)  # interpolation_filter
    bits.take(1, is_inter)  # is_motion_mode_switchable
    if rules.may_use_motion_fields:
        bits.take(1, is_inter & ~frames.resilient)  # use_ref_frame_mvs
    bits.take(1, coded & frames.updates_cdf)  # disable_frame_end_update_cdf
    is_uniform = bits.flag(coded)
    for most in (limits.max_column_bits, limits.max_row_bits):
        if most > 0 and bits.flag(coded).any():
            return False
    return bool(np.all(is_uniform | ~coded))


def _shows_a_key_frame(
    existing: NDArray[np.bool_], slot: Ints, is_key: NDArray[np.bool_], writes: Ints
) -> bool:
    """True where show_existing_frame shows a key frame, which fills every slot, 7.21."""
    numbers = np.arange(len(slot))
    for place in np.unique(slot[existing]).tolist():
        writer = np.maximum.accumulate(np.where(writes >> place & 1, numbers, 0))
        if is_key[writer[existing & (slot == place)]].any():
            return True
    return False
