"""All packets of a VP9 stream at once; ``_vpx`` reads them one by one.

Most packets are one frame, whose first byte says all that is asked for. The others, superframes,
are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream._vpx import SUPERFRAME_MARKER, SUPERFRAME_MASK, vp9_shown_frames

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Vp9Packets:
    """What P packets say."""

    shown_frames: Integers
    """(P,) the number of frames that each shows."""
    is_key: NDArray[np.bool_]
    """(P,) True where its first frame is a key frame."""


def read_vp9_packets(data: NDArray[np.uint8], start: Integers, end: Integers) -> Vp9Packets:
    """What ``vp9_shown_frames`` and ``vp9_is_key`` say of each packet.

    Args:
        data: Bytes.
        start: (P,) where each packet begins in them.
        end: (P,) where each ends; none is empty.
    """
    # VP9 bitstream specification 6.2: frame_marker in two bits, the profile in two or three, then
    # show_existing_frame, frame_type and show_frame.
    first = data[start]
    is_frame = first >> 6 == 2
    bit = np.where(first & 0x30 == 0x30, 2, 3).astype(np.uint8)
    shows_existing = (first >> bit & 1).astype(np.bool_)
    is_inter = (first >> (bit - 1) & 1).astype(np.bool_)
    is_shown = (first >> (bit - 2) & 1).astype(np.bool_)
    shown = (is_frame & (shows_existing | is_shown)).astype(np.int64)
    for packet in np.flatnonzero(data[end - 1] & SUPERFRAME_MASK == SUPERFRAME_MARKER).tolist():
        shown[packet] = vp9_shown_frames(data[start[packet] : end[packet]].tobytes())
    return Vp9Packets(shown, is_frame & ~shows_existing & ~is_inter)
