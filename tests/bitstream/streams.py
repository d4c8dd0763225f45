"""Streams one behind the other, cut and damaged, for the readers of many headers at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from reelseek.bitstream._bit_columns import PADDING_BYTES

Joined = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], list[int]]


def joined(*streams: Sequence[bytes]) -> Joined:
    """Their bytes, where each packet begins and ends, and the first packet of each stream."""
    packets = [packet for stream in streams for packet in stream]
    data = np.frombuffer(b"".join(packets) + bytes(PADDING_BYTES), np.uint8)
    size = np.array([len(packet) for packet in packets], np.int64)
    end = np.cumsum(size)
    first = [0, *np.cumsum([len(stream) for stream in streams]).tolist()][:-1]
    return data, end - size, end, first


@st.composite
def cut_and_damaged(
    draw: st.DrawFn, packets: Sequence[bytes], starts: Sequence[int] = (0,)
) -> list[list[bytes]]:
    """Two or three pieces of a stream, with one packet damaged in some of them."""
    streams = []
    for _ in range(draw(st.integers(2, 3))):
        start = draw(st.sampled_from(starts))
        stream = list(packets[start : start + draw(st.integers(1, 30))])
        if draw(st.booleans()):
            number = draw(st.integers(0, len(stream) - 1))
            damaged = bytearray(stream[number][: draw(st.integers(1, 60))])
            damaged[draw(st.integers(0, len(damaged) - 1))] = draw(st.integers(0, 255))
            stream[number] = bytes(damaged)
        streams.append(stream)
    return streams
