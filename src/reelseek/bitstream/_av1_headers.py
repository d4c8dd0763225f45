"""AV1 sequence and frame headers, as far as the fields that say what a frame reads and writes.

Source: AV1 Bitstream & Decoding Process Specification, version 1.0.0 with errata 1: 5.5 (sequence
header), 5.9 (frame header), 7.8 (set frame refs), 7.20 and 7.21 (reference frame update, loading).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from reelseek.bitstream._av1_tiles import FrameSize, FrameStart, SizeRules, read_tiles
from reelseek.bitstream._bits import BitReader

NUM_SLOTS = 8  # NUM_REF_FRAMES
REFS_PER_FRAME = 7
SHORT_HEADER_BYTES, LONG_HEADER_BYTES = 24, 1024
"""Bytes that hold the fields read here: nearly always, and always."""
SELECT = 2  # SELECT_SCREEN_CONTENT_TOOLS, SELECT_INTEGER_MV
ALL_SLOTS = 0xFF


class FrameType(IntEnum):
    """frame_type, 6.8.2."""

    KEY = 0
    INTER = 1
    INTRA_ONLY = 2
    SWITCH = 3


FRAME_TYPES = tuple(FrameType)


class UnprovenError(ValueError):
    """The stream uses something whose dependencies aren't followed; the text says what."""


@dataclass(frozen=True, slots=True)
class ColorConfig:
    """color_config(), 5.5.2, as far as the pixel format needs it."""

    bit_depth: int
    is_monochrome: bool
    subsampling: tuple[int, int]
    """subsampling_x and subsampling_y."""
    matrix: int
    """matrix_coefficients, as ITU-T H.273 numbers them; 2 where the stream doesn't say."""


@dataclass(frozen=True, slots=True)
class SequenceHeader:
    """What frame headers need from a sequence header, 5.5."""

    is_reduced_still_picture: bool
    has_equal_picture_interval: bool
    buffer_removal_time_bits: int
    presentation_time_bits: int
    has_decoder_model: bool
    operating_points: tuple[tuple[int, bool], ...]
    """operating_point_idc and decoder_model_present_for_this_op of each."""
    has_frame_ids: bool
    delta_frame_id_bits: int
    frame_id_bits: int
    screen_content_tools: int
    integer_mv: int
    order_hint_bits: int
    sizes: SizeRules
    color: ColorConfig

    @property
    def max_width(self) -> int:
        """In pixels: the width of frames that don't override it."""
        return self.sizes.max_size.width

    @property
    def max_height(self) -> int:
        """In pixels: the height of frames that don't override it."""
        return self.sizes.max_size.height

    @property
    def has_layers(self) -> bool:
        """True where an operating point selects spatial or temporal layers."""
        return any(idc for idc, _has_model in self.operating_points)


class FrameHeader(NamedTuple):
    """What a frame header says of a frame's place among the others."""

    frame_type: FrameType
    shows: bool
    """True where the frame, or the slot that it names, is displayed."""
    shows_slot: int
    """The slot that show_existing_frame displays; -1 for a coded frame."""
    reads: int
    """Bit s is set where decoding it reads slot s (ref_frame_idx)."""
    writes: int
    """Bit s is set where the frame is stored in slot s (refresh_frame_flags)."""
    order_hint: int
    """OrderHint, as it is stored with the frame."""
    tiles: int
    """The number of its tiles; 0 where it is shown from a slot, or not coded as a header."""


def read_sequence_header(payload: bytes) -> SequenceHeader:
    """sequence_header_obu(), up to the fields that frame headers need."""
    bits = BitReader(payload)
    profile = bits.take(3)
    bits.take(1)  # still_picture
    is_reduced = bits.flag()
    has_equal_interval = has_model = False
    removal_bits = presentation_bits = delay_bits = 0
    points: list[tuple[int, bool]] = []
    if is_reduced:
        bits.take(5)  # seq_level_idx[0]
        points.append((0, False))
    else:
        if bits.flag():  # timing_info_present_flag
            bits.take(64)  # num_units_in_display_tick, time_scale
            has_equal_interval = bits.flag()
            if has_equal_interval:
                bits.uvlc()
            has_model = bits.flag()
            if has_model:
                delay_bits = bits.take(5) + 1
                bits.take(32)  # num_units_in_decoding_tick
                removal_bits = bits.take(5) + 1
                presentation_bits = bits.take(5) + 1
        has_initial_delay = bits.flag()
        for _ in range(bits.take(5) + 1):
            points.append(_operating_point(bits, has_model, delay_bits, has_initial_delay))
    width_bits, height_bits = bits.take(4) + 1, bits.take(4) + 1
    width, height = bits.take(width_bits) + 1, bits.take(height_bits) + 1
    has_ids = not is_reduced and bits.flag()
    delta_bits = bits.take(4) + 2 if has_ids else 0
    id_bits = bits.take(3) + delta_bits + 1 if has_ids else 0
    has_large_blocks = bits.flag()
    bits.take(2)  # enable_filter_intra, enable_intra_edge_filter
    tools = _InterTools(SELECT, SELECT, 0, may_use_motion_fields=False)
    if not is_reduced:
        tools = _inter_tools(bits)
    may_reduce_width = bits.flag()
    bits.take(2)  # enable_cdef, enable_restoration
    return SequenceHeader(
        is_reduced_still_picture=is_reduced,
        has_equal_picture_interval=has_equal_interval,
        buffer_removal_time_bits=removal_bits,
        presentation_time_bits=presentation_bits,
        has_decoder_model=has_model,
        operating_points=tuple(points),
        has_frame_ids=has_ids,
        delta_frame_id_bits=delta_bits,
        frame_id_bits=id_bits,
        screen_content_tools=tools.screen_content,
        integer_mv=tools.integer_mv,
        order_hint_bits=tools.hint_bits,
        sizes=SizeRules(
            FrameSize(width, height),
            width_bits,
            height_bits,
            may_reduce_width=may_reduce_width,
            has_large_blocks=has_large_blocks,
            may_use_motion_fields=tools.may_use_motion_fields,
        ),
        color=_color_config(bits, profile),
    )


def _color_config(bits: BitReader, profile: int) -> ColorConfig:
    is_high = bits.flag()
    depth = 8
    if is_high:
        depth = 12 if profile == 2 and bits.flag() else 10
    is_monochrome = profile != 1 and bits.flag()
    primaries = transfer = matrix = 2
    if bits.flag():  # color_description_present_flag
        primaries, transfer, matrix = bits.take(8), bits.take(8), bits.take(8)
    if is_monochrome:
        return ColorConfig(depth, True, (1, 1), matrix)
    if (primaries, transfer, matrix) == (1, 13, 0):  # sRGB
        return ColorConfig(depth, False, (0, 0), matrix)
    bits.take(1)  # color_range
    if profile == 0:
        return ColorConfig(depth, False, (1, 1), matrix)
    if profile == 1:
        return ColorConfig(depth, False, (0, 0), matrix)
    if depth < 12:
        return ColorConfig(depth, False, (1, 0), matrix)
    halves_x = bits.take(1)
    return ColorConfig(depth, False, (halves_x, bits.take(1) if halves_x else 0), matrix)


def _operating_point(
    bits: BitReader, has_model: bool, delay_bits: int, has_initial_delay: bool
) -> tuple[int, bool]:
    idc = bits.take(12)
    if bits.take(5) > 7:  # seq_level_idx
        bits.take(1)  # seq_tier
    has_own_model = has_model and bits.flag()
    if has_own_model:
        bits.take(delay_bits)  # decoder_buffer_delay
        bits.take(delay_bits)  # encoder_buffer_delay
        bits.take(1)  # low_delay_mode_flag
    if has_initial_delay and bits.flag():
        bits.take(4)
    return idc, has_own_model


class _InterTools(NamedTuple):
    screen_content: int
    """seq_force_screen_content_tools."""
    integer_mv: int
    """seq_force_integer_mv."""
    hint_bits: int
    """OrderHintBits."""
    may_use_motion_fields: bool
    """enable_ref_frame_mvs."""


def _inter_tools(bits: BitReader) -> _InterTools:
    bits.take(4)  # interintra, masked compound, warped motion, dual filter
    has_order_hint = bits.flag()
    may_use_motion_fields = False
    if has_order_hint:
        bits.take(1)  # enable_jnt_comp
        may_use_motion_fields = bits.flag()
    screen_content = SELECT if bits.flag() else bits.take(1)
    integer_mv = SELECT
    if screen_content > 0 and not bits.flag():  # seq_choose_integer_mv
        integer_mv = bits.take(1)
    hint_bits = bits.take(3) + 1 if has_order_hint else 0
    return _InterTools(screen_content, integer_mv, hint_bits, may_use_motion_fields)


class _Slot(NamedTuple):
    """What is stored with a frame in a reference slot."""

    frame_type: FrameType
    order_hint: int
    size: FrameSize


class _Identity(NamedTuple):
    """What a frame header says from disable_cdf_update to order_hint."""

    updates_cdf: bool
    has_screen_tools: bool
    has_integer_mv: bool
    overrides_size: bool
    order_hint: int


class Slots:
    """The eight reference slots, as far as reading further headers needs them."""

    def __init__(self) -> None:
        self._slots: list[_Slot | None] = [None] * NUM_SLOTS

    def read_frame_header(self, payload: bytes, sequence: SequenceHeader) -> FrameHeader:
        """uncompressed_header(), 5.9.2, and the update of the slots, 7.20.

        Raises:
            EOFError: The header ends too soon.
            UnprovenError: It refers to an empty slot, or to something not followed here.
        """
        try:
            header, size = self._read(BitReader(payload[:SHORT_HEADER_BYTES]), sequence)
        except EOFError:  # decoder models and frame numbers make long ones
            header, size = self._read(BitReader(payload[:LONG_HEADER_BYTES]), sequence)
        if header.writes:
            stored = _Slot(header.frame_type, header.order_hint, size)
            for slot in range(NUM_SLOTS):
                if header.writes >> slot & 1:
                    self._slots[slot] = stored
        return header

    def _read(self, bits: BitReader, sequence: SequenceHeader) -> tuple[FrameHeader, FrameSize]:
        if sequence.is_reduced_still_picture:
            size = sequence.sizes.max_size
            return FrameHeader(FrameType.KEY, True, -1, 0, ALL_SLOTS, 0, 0), size
        first = bits.take(4)
        if first & 8:  # show_existing_frame, then frame_to_show_map_idx
            return self._existing(first & 7)
        frame_type = FRAME_TYPES[first >> 1]
        shows = bool(first & 1)
        if shows:
            self._skip_presentation_time(bits, sequence)
        else:
            bits.take(1)  # showable_frame
        is_shown_key = frame_type is FrameType.KEY and shows
        is_resilient = frame_type is FrameType.SWITCH or is_shown_key or bits.flag()
        if is_shown_key:
            self._slots = [None] * NUM_SLOTS
        identity = self._read_identity(bits, sequence, frame_type)
        is_intra = frame_type in (FrameType.KEY, FrameType.INTRA_ONLY)
        if not is_intra and not is_resilient:
            bits.take(3)  # primary_ref_frame: one of the references below
        self._skip_removal_times(bits, sequence)
        writes = ALL_SLOTS
        if frame_type is not FrameType.SWITCH and not is_shown_key:
            writes = bits.take(8)
        if (not is_intra or writes != ALL_SLOTS) and is_resilient and sequence.order_hint_bits:
            self._check_order_hints(bits, sequence)
        references = [] if is_intra else self._read_references(bits, sequence)
        start = FrameStart(
            is_intra=is_intra,
            is_resilient=is_resilient,
            overrides_size=identity.overrides_size,
            has_screen_tools=identity.has_screen_tools,
            has_integer_mv=identity.has_integer_mv,
            ends_in_cdf_flag=identity.updates_cdf,
            references=[self._stored(slot).size for slot in references],
        )
        size, tiles = read_tiles(bits, sequence.sizes, start)
        reads = 0
        for slot in references:
            reads |= 1 << slot
        hint = identity.order_hint
        return FrameHeader(frame_type, shows, -1, reads, writes, hint, tiles), size

    def _stored(self, slot: int) -> _Slot:
        stored = self._slots[slot]
        if stored is None:
            raise UnprovenError("reads a reference that isn't there")
        return stored

    def _existing(self, slot: int) -> tuple[FrameHeader, FrameSize]:
        stored = self._slots[slot]
        if stored is None:
            raise UnprovenError("shows a reference that isn't there")
        # 7.21: showing a key frame loads it into every slot.
        writes = ALL_SLOTS if stored.frame_type is FrameType.KEY else 0
        hint = stored.order_hint
        header = FrameHeader(stored.frame_type, True, slot, 1 << slot, writes, hint, 0)
        return header, stored.size

    @staticmethod
    def _skip_presentation_time(bits: BitReader, sequence: SequenceHeader) -> None:
        if sequence.has_decoder_model and not sequence.has_equal_picture_interval:
            bits.take(sequence.presentation_time_bits)

    @staticmethod
    def _read_identity(
        bits: BitReader, sequence: SequenceHeader, frame_type: FrameType
    ) -> _Identity:
        updates_cdf = not bits.flag()  # disable_cdf_update
        tools = sequence.screen_content_tools
        has_screen_tools = bits.flag() if tools == SELECT else bool(tools)
        has_integer_mv = False
        if has_screen_tools:
            chooses = sequence.integer_mv == SELECT
            has_integer_mv = bits.flag() if chooses else bool(sequence.integer_mv)
        if sequence.has_frame_ids:
            bits.take(sequence.frame_id_bits)
        overrides_size = frame_type is FrameType.SWITCH or bits.flag()
        hint = bits.take(sequence.order_hint_bits)
        return _Identity(updates_cdf, has_screen_tools, has_integer_mv, overrides_size, hint)

    @staticmethod
    def _skip_removal_times(bits: BitReader, sequence: SequenceHeader) -> None:
        if not sequence.has_decoder_model or not bits.flag():
            return
        for idc, has_model in sequence.operating_points:
            if has_model:
                if idc:
                    raise UnprovenError("has a decoder model for layers")
                bits.take(sequence.buffer_removal_time_bits)

    def _check_order_hints(self, bits: BitReader, sequence: SequenceHeader) -> None:
        """ref_order_hint[]: another hint than the stored one announces a lost frame, 7.20."""
        for slot in self._slots:
            hint = bits.take(sequence.order_hint_bits)
            if slot is not None and slot.order_hint != hint:
                raise UnprovenError("announces a lost reference")

    def _read_references(self, bits: BitReader, sequence: SequenceHeader) -> list[int]:
        """The slots that ref_frame_idx[] names, in its order."""
        if sequence.order_hint_bits and bits.flag():  # frame_refs_short_signaling
            # 7.8 finds the references by the order hints of all slots, so that other frames in
            # slots that it doesn't choose would make it choose others.
            if len({self._stored(slot).size for slot in range(NUM_SLOTS)}) > 1:
                raise UnprovenError("signals references of several sizes briefly")
            return list(range(NUM_SLOTS))
        references = []
        for _ in range(REFS_PER_FRAME):
            references.append(bits.take(3))
            if sequence.has_frame_ids:
                bits.take(sequence.delta_frame_id_bits)
            self._stored(references[-1])
        return references
