"""Whether a VP8 or VP9 packet shows a frame.

Sources: RFC 6386 9.1 (VP8 frame header); VP9 bitstream specification 0.7, 6.2 (uncompressed
header) and Annex B (superframes).
"""

from __future__ import annotations


def vp8_shows_frame(data: bytes) -> bool:
    """False for an alternate reference frame, which is decoded but not shown."""
    return bool(data) and bool((data[0] >> 4) & 1)


def vp9_shows_frame(data: bytes) -> bool:
    """False for a lone hidden frame; a superframe ends in a shown one."""
    if not data or data[0] >> 6 != 2:  # frame_marker
        return False
    if data[-1] & 0xE0 == 0xC0:
        return True
    profile = (data[0] >> 5 & 1) | (data[0] >> 4 & 1) << 1
    bit = 2 if profile == 3 else 3
    if data[0] >> bit & 1:  # show_existing_frame
        return True
    return bool(data[0] >> (bit - 2) & 1)
