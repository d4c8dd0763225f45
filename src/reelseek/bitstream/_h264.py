"""What an H.264 access unit says of itself, as far as random access needs it.

Source: ITU-T H.264 (08/2021), table 7-1 (nal_unit_type) and 7.3.2.1.1 (seq_parameter_set_data).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NAL_IDR_SLICE = 5
NAL_SPS = 7

# 7.3.2.1.1: the profiles whose parameter sets carry chroma_format_idc and scaling matrices.
HIGH_PROFILES = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})


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


def _only_whole_frames(sps: bytes) -> bool:
    """frame_mbs_only_flag; False also for a parameter set that ends before it."""
    try:
        return _read_frame_mbs_only_flag(_Bits(sps[1:]))
    except EOFError:
        return False


def _read_frame_mbs_only_flag(bits: _Bits) -> bool:
    profile_idc = bits.take(8)
    bits.take(16)  # constraint flags, level_idc
    bits.exp_golomb()  # seq_parameter_set_id
    if profile_idc in HIGH_PROFILES:
        _skip_high_profile_fields(bits)
    bits.exp_golomb()  # log2_max_frame_num_minus4
    pic_order_cnt_type = bits.exp_golomb()
    if pic_order_cnt_type == 0:
        bits.exp_golomb()  # log2_max_pic_order_cnt_lsb_minus4
    elif pic_order_cnt_type == 1:
        bits.take(1)
        bits.exp_golomb()
        bits.exp_golomb()
        for _ in range(bits.exp_golomb()):
            bits.exp_golomb()
    bits.exp_golomb()  # max_num_ref_frames
    bits.take(1)
    bits.exp_golomb()  # pic_width_in_mbs_minus1
    bits.exp_golomb()  # pic_height_in_map_units_minus1
    return bits.take(1) == 1


def _skip_high_profile_fields(bits: _Bits) -> None:
    chroma_format_idc = bits.exp_golomb()
    if chroma_format_idc == 3:
        bits.take(1)
    bits.exp_golomb()
    bits.exp_golomb()
    bits.take(1)
    if bits.take(1):  # seq_scaling_matrix_present_flag
        for index in range(8 if chroma_format_idc != 3 else 12):
            if bits.take(1):
                _skip_scaling_list(bits, 16 if index < 6 else 64)


def _skip_scaling_list(bits: _Bits, size: int) -> None:
    # 7.3.2.1.1.1: the list ends where the next scale becomes 0.
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.signed_exp_golomb()) % 256
        last = following or last


class _Bits:
    """A reader of bits from a NAL unit; raises EOFError at its end."""

    def __init__(self, unit: bytes) -> None:
        # 7.4.1.1: emulation prevention bytes are no part of the payload.
        payload = unit.replace(b"\0\0\3", b"\0\0")
        self._value = int.from_bytes(payload, "big")
        self._left = len(payload) * 8

    def take(self, count: int) -> int:
        if count > self._left:
            raise EOFError
        self._left -= count
        return (self._value >> self._left) & ((1 << count) - 1)

    def exp_golomb(self) -> int:
        zeros = 0
        while not self.take(1):
            zeros += 1
            if zeros > 32:
                raise EOFError
        return (1 << zeros) - 1 + self.take(zeros)

    def signed_exp_golomb(self) -> int:
        value = self.exp_golomb()
        return (value + 1) // 2 if value % 2 else -(value // 2)
