"""What an H.264 access unit says of itself, as far as random access needs it.

Source: ITU-T H.264 (08/2021), table 7-1 (nal_unit_type) and 7.3.2.1.1 (seq_parameter_set_data).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reelseek.bitstream._bits import BitReader, nal_bits
from reelseek.bitstream._nal import UNSAID, PlainPicture, plain_picture, read_vui_colours

NAL_IDR_SLICE = 5
NAL_SPS, NAL_PPS, NAL_SPS_EXTENSION = 7, 8, 13
SLICES = frozenset(range(1, 6))
ASIDES = frozenset({6, 9, 12})
"""NAL units that say nothing to other pictures: further information, delimiters, filler data. All
others (parameter sets, ends of sequences) do, so that their packets are never left out."""

# 7.3.2.1.1: the profiles whose parameter sets carry chroma_format_idc and scaling matrices.
HIGH_PROFILES = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})

READ_OTHERWISE = frozenset({134, 135, 139, 144})
"""Profiles whose parameter sets FFmpeg reads otherwise than the standard says."""


@dataclass(frozen=True, slots=True)
class H264Facts:
    """What some NAL units say."""

    parameter_sets: bytes
    """The sequence parameter sets, one after the other."""
    has_idr: bool
    """True where the access unit is an IDR picture: decoding can start here, exactly."""
    may_hold_fields: bool
    """True where a sequence parameter set allows field coding, or can't be read."""


def read_h264_facts(units: Iterable[bytes]) -> H264Facts:
    """Read the facts from NAL units without their separators."""
    has_idr = may_hold_fields = False
    parameter_sets = b""
    for unit in units:
        nal_unit_type = unit[0] & 0x1F
        has_idr |= nal_unit_type == NAL_IDR_SLICE
        if nal_unit_type == NAL_SPS:
            parameter_sets += unit
            may_hold_fields |= not _only_whole_frames(unit)
    return H264Facts(parameter_sets, has_idr, may_hold_fields)


@dataclass(frozen=True, slots=True)
class H264Sps:
    """What a sequence parameter set says, 7.3.2.1.1."""

    id: int
    frame_num_bits: int
    order_type: int
    """pic_order_cnt_type."""
    order_bits: int
    """Length of pic_order_cnt_lsb; 0 where the type isn't 0."""
    has_separate_planes: bool
    only_whole_frames: bool
    """frame_mbs_only_flag."""
    reorder_limit: int | None
    """max_num_reorder_frames, Annex E: how many pictures may precede one in decoding order and
    follow it in display order; None where it doesn't say."""
    picture: PlainPicture | None
    """Size and colours; None where they aren't plain, or can't be read."""


def read_h264_sps(unit: bytes) -> H264Sps:
    """Read a sequence parameter set; EOFError where it ends too soon."""
    bits = nal_bits(unit, 1)
    profile_idc = bits.take(8)
    bits.take(16)  # constraint flags, level_idc
    number = bits.exp_golomb()
    has_separate_planes, is_plain = False, profile_idc not in READ_OTHERWISE
    if profile_idc in HIGH_PROFILES:
        has_separate_planes, is_of_8_bits = _read_high_profile_fields(bits)
        is_plain &= is_of_8_bits
    frame_num_bits = bits.count(12) + 4
    order_type, order_bits = bits.exp_golomb(), 0
    if order_type == 0:
        order_bits = bits.count(12) + 4
    elif order_type == 1:
        bits.take(1)
        bits.exp_golomb()
        bits.exp_golomb()
        for _ in range(bits.count(255)):
            bits.exp_golomb()
    bits.exp_golomb()  # max_num_ref_frames
    bits.take(1)
    size = (16 * bits.exp_golomb() + 16, 16 * bits.exp_golomb() + 16)
    only_whole_frames = bits.flag()
    picture, reorder_limit = _read_rest(bits, size, only_whole_frames)
    return H264Sps(
        id=number,
        frame_num_bits=frame_num_bits,
        order_type=order_type,
        order_bits=order_bits,
        has_separate_planes=has_separate_planes,
        only_whole_frames=only_whole_frames,
        reorder_limit=reorder_limit,
        picture=picture if is_plain and only_whole_frames else None,
    )


def _only_whole_frames(sps: bytes) -> bool:
    """frame_mbs_only_flag; False also for a parameter set that ends before it."""
    try:
        return read_h264_sps(sps).only_whole_frames
    except EOFError:
        return False


def _read_rest(
    bits: BitReader, size: tuple[int, int], only_whole_frames: bool
) -> tuple[PlainPicture | None, int | None]:
    """The picture, and max_num_reorder_frames; None where the parameter set ends before it."""
    picture = None
    try:
        if not only_whole_frames:
            bits.take(1)  # mb_adaptive_frame_field_flag
        bits.take(1)  # direct_8x8_inference_flag
        crop = [bits.exp_golomb() for _ in range(4)] if bits.flag() else [0] * 4
        if not bits.flag():  # vui_parameters_present_flag
            return plain_picture(size, crop, (0, UNSAID)), None
        picture = plain_picture(size, crop, read_vui_colours(bits, if_unsaid=0))
        return picture, _read_vui_reorder_limit(bits)
    except EOFError:
        return picture, None


def _read_vui_reorder_limit(bits: BitReader) -> int | None:
    """max_num_reorder_frames, which comes last."""
    if bits.flag():  # chroma_loc_info_present_flag
        bits.exp_golomb()
        bits.exp_golomb()
    if bits.flag():  # timing_info_present_flag
        bits.take(65)
    has_hrd = False
    for _ in ("nal", "vcl"):
        if bits.flag():
            _skip_hrd(bits)
            has_hrd = True
    if has_hrd:
        bits.take(1)  # low_delay_hrd_flag
    bits.take(1)  # pic_struct_present_flag
    if not bits.flag():  # bitstream_restriction_flag
        return None
    bits.take(1)
    for _ in range(4):
        bits.exp_golomb()
    return bits.exp_golomb()


def _skip_hrd(bits: BitReader) -> None:
    count = bits.count(31) + 1
    bits.take(8)
    for _ in range(count):
        bits.exp_golomb()
        bits.exp_golomb()
        bits.take(1)
    bits.take(20)


def _read_high_profile_fields(bits: BitReader) -> tuple[bool, bool]:
    """The fields up to the scaling matrices: separate_colour_plane_flag, and is it 8-bit 4:2:0?"""
    chroma_format_idc = bits.exp_golomb()
    has_separate_planes = chroma_format_idc == 3 and bits.flag()
    extra_bits = bits.exp_golomb() + bits.exp_golomb()  # of luma and chroma
    is_lossless = bits.flag()  # qpprime_y_zero_transform_bypass_flag
    if bits.take(1):  # seq_scaling_matrix_present_flag
        for index in range(8 if chroma_format_idc != 3 else 12):
            if bits.take(1):
                _skip_scaling_list(bits, 16 if index < 6 else 64)
    return has_separate_planes, chroma_format_idc == 1 and not extra_bits and not is_lossless


def _skip_scaling_list(bits: BitReader, size: int) -> None:
    # 7.3.2.1.1.1: the list ends where the next scale becomes 0.
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.signed_exp_golomb()) % 256
        last = following or last
