"""What an HEVC access unit says of itself, as far as random access needs it.

Source: ITU-T H.265 (08/2021), 7.3.1.2 (nal_unit_header) and table 7-1 (nal_unit_type).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reelseek.bitstream._bits import BitReader, nal_bits
from reelseek.bitstream._nal import (
    LIMITED_RANGE,
    UNSAID,
    PlainPicture,
    plain_picture,
    read_vui_colours,
)

BLA_W_LP, BLA_N_LP = 16, 18
IDR_W_RADL, IDR_N_LP = 19, 20
CRA_NUT = 21
NAL_VPS, NAL_SPS, NAL_PPS = 32, 33, 34

SLICES = frozenset(range(32))
ASIDES = frozenset({35, 38, 39, 40})
"""NAL units that say nothing to other pictures: delimiters, filler data, further information."""
NON_REFERENCE = frozenset(range(0, 10, 2))
"""Sub-layer non-reference pictures among TRAIL, TSA, STSA, RADL and RASL, table 7-1."""
RASL = frozenset({8, 9})
MOST_SETS, MOST_REFERENCES, MOST_LONG_TERM = 64, 16, 32
"""Reference picture sets, pictures of one, and long-term pictures, at most (7.4.3.2, 7.4.8)."""

STARTS_DECODING = frozenset(range(16, 24))
"""Random access pictures: BLA, IDR, CRA and what is reserved for them."""
STARTS_WITHOUT_RASL = frozenset({IDR_W_RADL, IDR_N_LP})
"""Pictures that no skipped leading picture (RASL) can follow."""


def hevc_nal_types(units: Iterable[bytes]) -> frozenset[int]:
    """The nal_unit_type of each NAL unit of the base layer."""
    return frozenset(
        (unit[0] >> 1) & 0x3F
        for unit in units
        if len(unit) >= 2 and ((unit[0] & 1) << 5 | unit[1] >> 3) == 0
    )


@dataclass(frozen=True, slots=True)
class HevcSps:
    """What a sequence parameter set says, 7.3.2.2.1."""

    id: int
    order_bits: int
    """Length of slice_pic_order_cnt_lsb."""
    has_separate_planes: bool
    has_sub_layers: bool
    """True where there are temporal sub-layers."""
    reorder_limit: int
    """sps_max_num_reorder_pics of the highest sub-layer: how many pictures may precede one in
    decoding order and follow it in display order."""
    picture: PlainPicture | None
    """Size and colours; None where they aren't plain, or can't be read."""


@dataclass(frozen=True, slots=True)
class HevcPps:
    """What a picture parameter set says, 7.3.2.3.1."""

    id: int
    sps: int
    may_hide_pictures: bool
    """output_flag_present_flag: slices say whether their picture is displayed."""
    extra_bits: int
    """num_extra_slice_header_bits."""


def read_hevc_sps(unit: bytes) -> HevcSps:
    """Read a sequence parameter set; EOFError where it ends too soon."""
    bits = nal_bits(unit, 2)
    bits.take(4)  # sps_video_parameter_set_id
    sub_layers = bits.take(3)  # sps_max_sub_layers_minus1
    bits.take(1)
    _skip_profile_tier_level(bits, sub_layers)
    number = bits.exp_golomb()
    chroma_format_idc = bits.exp_golomb()
    has_separate_planes = chroma_format_idc == 3 and bits.flag()
    size = (bits.exp_golomb(), bits.exp_golomb())
    crop = [bits.exp_golomb() for _ in range(4)] if bits.flag() else [0] * 4
    extra_bits = bits.exp_golomb() + bits.exp_golomb()  # of luma and chroma
    order_bits = bits.count(12) + 4
    limit = 0
    for _ in range(sub_layers + 1 if bits.flag() else 1):
        bits.exp_golomb()  # sps_max_dec_pic_buffering_minus1
        limit = bits.exp_golomb()
        bits.exp_golomb()  # sps_max_latency_increase_plus1
    picture = None
    if chroma_format_idc == 1 and not extra_bits:
        picture = _read_picture(bits, size, crop, order_bits)
    return HevcSps(number, order_bits, has_separate_planes, sub_layers > 0, limit, picture)


def _read_picture(
    bits: BitReader, size: tuple[int, int], crop: list[int], order_bits: int
) -> PlainPicture | None:
    """The rest up to the colours in the VUI parameters, 7.3.2.2.1 and E.2.1."""
    try:
        for _ in range(6):  # log2_min_luma_coding_block_size_minus3 and what follows it
            bits.exp_golomb()
        if bits.flag() and bits.flag():  # scaling_list_enabled_flag, sps_scaling_list_data_present
            return None
        bits.take(2)  # amp_enabled_flag, sample_adaptive_offset_enabled_flag
        if bits.flag():  # pcm_enabled_flag
            return None
        if not _skip_reference_sets(bits, order_bits):
            return None
        bits.take(2)  # sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag
        if not bits.flag():  # vui_parameters_present_flag
            return plain_picture(size, crop, (LIMITED_RANGE, UNSAID))
        colours = read_vui_colours(bits, if_unsaid=LIMITED_RANGE)
        has_chroma_places = bits.flag()
        if has_chroma_places:
            bits.exp_golomb()
            bits.exp_golomb()
        bits.take(3)  # neutral_chroma_indication_flag, field_seq_flag, frame_field_info_present
        if bits.flag():  # default_display_window_flag
            return None
        return plain_picture(size, crop, colours)
    except EOFError:
        return None


def _skip_reference_sets(bits: BitReader, order_bits: int) -> bool:
    """st_ref_pic_set(), 7.3.7, and the long-term ones; False where they aren't followed."""
    for number in range(bits.count(MOST_SETS)):
        if number and bits.flag():  # inter_ref_pic_set_prediction_flag
            return False
        for _ in range(bits.count(MOST_REFERENCES) + bits.count(MOST_REFERENCES)):
            bits.exp_golomb()
            bits.take(1)
    if bits.flag():  # long_term_ref_pics_present_flag
        for _ in range(bits.count(MOST_LONG_TERM)):
            bits.take(order_bits + 1)
    return True


def _skip_profile_tier_level(bits: BitReader, sub_layers: int) -> None:
    """profile_tier_level(), 7.3.3."""
    bits.take(96)  # general_profile_space to general_level_idc
    has = [(bits.flag(), bits.flag()) for _ in range(sub_layers)]
    if sub_layers:
        bits.take(2 * (8 - sub_layers))
    for has_profile, has_level in has:
        bits.take(88 * has_profile + 8 * has_level)


def read_hevc_pps(unit: bytes) -> HevcPps:
    """Read the start of a picture parameter set; EOFError where it ends too soon."""
    bits = nal_bits(unit, 2)
    number, sps = bits.exp_golomb(), bits.exp_golomb()
    bits.take(1)  # dependent_slice_segments_enabled_flag
    return HevcPps(number, sps, bits.flag(), bits.take(3))
