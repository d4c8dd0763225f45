"""What an HEVC access unit says of itself, as far as random access needs it.

Source: ITU-T H.265 (08/2021), 7.3.1.2 (nal_unit_header) and table 7-1 (nal_unit_type).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reelseek.bitstream._bits import BitReader, nal_bits

NAL_VPS, NAL_SPS, NAL_PPS = 32, 33, 34
BLA_W_LP, BLA_N_LP = 16, 18
IDR_W_RADL, IDR_N_LP = 19, 20
CRA_NUT = 21
NAL_VPS, NAL_SPS, NAL_PPS = 32, 33, 34

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
    has_separate_planes = bits.exp_golomb() == 3 and bits.flag()  # chroma_format_idc
    bits.exp_golomb()  # pic_width_in_luma_samples
    bits.exp_golomb()  # pic_height_in_luma_samples
    if bits.flag():  # conformance_window_flag
        for _ in range(4):
            bits.exp_golomb()
    bits.exp_golomb()  # bit_depth_luma_minus8
    bits.exp_golomb()  # bit_depth_chroma_minus8
    order_bits = bits.exp_golomb() + 4
    limit = 0
    for _ in range(sub_layers + 1 if bits.flag() else 1):
        bits.exp_golomb()  # sps_max_dec_pic_buffering_minus1
        limit = bits.exp_golomb()
        bits.exp_golomb()  # sps_max_latency_increase_plus1
    return HevcSps(number, order_bits, has_separate_planes, sub_layers > 0, limit)


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
