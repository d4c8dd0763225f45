"""Bytes to records: codec headers read without a codec. No files, no FFmpeg.

Every length that is read here is bounded by the bytes that are left.
"""

from reelseek.bitstream._av1 import Av1Facts, Av1Reader
from reelseek.bitstream._h264 import H264Facts, read_h264_facts
from reelseek.bitstream._hevc import hevc_nal_types
from reelseek.bitstream._matroska import matroska_end
from reelseek.bitstream._nal import NalFormat, iter_nal_heads, iter_nals, nal_format_of
from reelseek.bitstream._vpx import (
    vp8_is_key,
    vp8_shows_frame,
    vp8_size,
    vp9_is_key,
    vp9_shown_frames,
    vp9_shows_frame,
    vp9_size,
)

__all__ = [
    "Av1Facts",
    "Av1Reader",
    "H264Facts",
    "NalFormat",
    "hevc_nal_types",
    "iter_nal_heads",
    "iter_nals",
    "matroska_end",
    "nal_format_of",
    "read_h264_facts",
    "vp8_is_key",
    "vp8_shows_frame",
    "vp8_size",
    "vp9_is_key",
    "vp9_shown_frames",
    "vp9_shows_frame",
    "vp9_size",
]
