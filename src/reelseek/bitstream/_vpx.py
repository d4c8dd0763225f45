"""Whether a VP8 or VP9 packet shows a frame, and whether it is a key frame.

Sources: RFC 6386 9.1 (VP8 frame header); VP9 bitstream specification 0.7, 6.2 (uncompressed
header) and Annex B (superframes).
"""

from __future__ import annotations

from typing import NamedTuple

SUPERFRAME_MARKER, SUPERFRAME_MASK = 0xC0, 0xE0
"""Of the last byte of a superframe, Annex B."""
VP9_SYNC_CODE = b"\x49\x83\x42"
VP9_MATRICES = {0: 2, 1: 5, 2: 1, 3: 6, 4: 7, 5: 9}
"""Of color_space (7.2.2): matrix_coefficients, ISO/IEC 23091-2; unsaid is 2."""


def vp8_shows_frame(data: bytes) -> bool:
    """False for an alternate reference frame, which is decoded but not shown."""
    return bool(data) and bool((data[0] >> 4) & 1)


def vp8_is_key(data: bytes) -> bool:
    """True for a key frame."""
    return bool(data) and not data[0] & 1


def vp9_shows_frame(data: bytes) -> bool:
    """False for a packet of hidden frames only."""
    return vp9_shown_frames(data) > 0


def vp9_shown_frames(data: bytes) -> int:
    """The number of frames that a packet shows: one, but for hidden ones and for layers."""
    return sum(map(_vp9_frame_is_shown, _vp9_frames(data)))


def _vp9_frames(data: bytes) -> list[bytes]:
    """The frames of a superframe, Annex B; the packet itself where it is none."""
    marker = data[-1] if data else 0
    count, length = (marker & 7) + 1, (marker >> 3 & 3) + 1
    index = len(data) - 2 - count * length
    if marker & SUPERFRAME_MASK != SUPERFRAME_MARKER or index < 0 or data[index] != marker:
        return [data]
    frames, position = [], 0
    for place in range(index + 1, len(data) - 1, length):
        size = int.from_bytes(data[place : place + length], "little")
        frames.append(data[position : min(position + size, index)])
        position += size
    return frames


def _vp9_frame_is_shown(data: bytes) -> bool:
    if not data or data[0] >> 6 != 2:  # frame_marker
        return False
    bit = _vp9_show_existing_bit(data[0])
    return bool(data[0] >> bit & 1 or data[0] >> (bit - 2) & 1)


def vp9_is_key(data: bytes) -> bool:
    """True where the first frame of the packet is a key frame."""
    if not data or data[0] >> 6 != 2:  # frame_marker
        return False
    bit = _vp9_show_existing_bit(data[0])
    return not data[0] >> bit & 1 and not data[0] >> (bit - 1) & 1


def vp8_size(data: bytes) -> bytes:
    """The picture size in a key frame, as it is coded."""
    return data[6:10]


def vp9_size(data: bytes) -> bytes:
    """The picture size in a key frame, as it is coded, with the colour format before it.

    6.2: after the frame type and two flags come a sync code of 24 bits, 3 to 6 bits of colour
    format and the size in 32 bits.
    """
    bits = int.from_bytes(data[1:10], "big")  # from the second byte on
    profile = (data[0] >> 5 & 1) | (data[0] >> 4 & 1) << 1
    length = 24 + {0: 4, 1: 6, 2: 5, 3: 8}[profile] + 32
    return (bits >> max(len(data[1:10]) * 8 - length, 0)).to_bytes(9, "big")


class Vp9Picture(NamedTuple):
    """What the pictures of an 8-bit 4:2:0 stream (profile 0) are."""

    width: int
    height: int
    matrix: int
    """matrix_coefficients, ISO/IEC 23091-2."""


def vp9_picture(data: bytes) -> Vp9Picture | None:
    """What a key frame says of the pictures; None for other profiles, and where it is damaged.

    6.2: after the first byte come the sync code, color_space in 3 bits, color_range in one, and
    width and height, less one, in 16 bits each.
    """
    head = data[1:9]
    if len(head) < 8 or data[0] & 0xFC != 0x80 or head[:3] != VP9_SYNC_CODE:
        return None
    bits = int.from_bytes(head[3:], "big") >> 4
    matrix = VP9_MATRICES.get(bits >> 33)
    if matrix is None:
        return None
    return Vp9Picture((bits >> 16 & 0xFFFF) + 1, (bits & 0xFFFF) + 1, matrix)


def _vp9_show_existing_bit(first_byte: int) -> int:
    """The position of show_existing_frame, which frame_type and show_frame follow."""
    is_profile_3 = first_byte & 0x30 == 0x30
    return 2 if is_profile_3 else 3
