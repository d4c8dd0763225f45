"""VP9 packets read at once say what they say one by one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reelseek.bitstream import vp9_is_key, vp9_shown_frames
from reelseek.bitstream._vp9_batch import read_vp9_packets
from reelseek.bitstream._vpx import vp9_picture
from tests import corpus


def superframe(frames: list[bytes], length: int) -> bytes:
    """Annex B: the frames, then their sizes between two markers."""
    marker = bytes([0xC0 | (length - 1) << 3 | len(frames) - 1])
    sizes = b"".join(len(frame).to_bytes(length, "little") for frame in frames)
    return b"".join(frames) + marker + sizes + marker


SUPERFRAMES = st.builds(
    superframe,
    st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=8),
    st.integers(1, 4),
)
FRAMES = st.builds(
    lambda head, rest: bytes([head]) + rest,
    st.sampled_from([*range(0x80, 0xC0), 0x00, 0xC0]),
    st.binary(max_size=6),
)


@settings(deadline=None)
@given(st.lists(SUPERFRAMES | FRAMES | st.binary(min_size=1, max_size=9), min_size=1, max_size=12))
def test_packets_say_the_same_at_once_and_one_by_one(packets: list[bytes]) -> None:
    sizes = np.array([len(packet) for packet in packets])
    end = np.cumsum(sizes)
    found = read_vp9_packets(np.frombuffer(b"".join(packets), np.uint8), end - sizes, end)
    assert found.shown_frames.tolist() == [vp9_shown_frames(packet) for packet in packets]
    assert found.is_key.tolist() == [vp9_is_key(packet) for packet in packets]


@given(st.binary(max_size=12))
def test_any_bytes_are_a_picture_or_none(data: bytes) -> None:
    picture = vp9_picture(data)
    assert picture is None or (1 <= picture.width <= 65536 and 1 <= picture.height <= 65536)


@pytest.mark.parametrize("name", ["vp9.mp4", "vp9.webm"])
def test_a_key_frame_says_what_the_decoder_says_of_the_picture(name: str) -> None:
    with av.open(str(corpus.clip_path(name))) as container:
        packet = next(packet for packet in container.demux(video=0) if packet.size)
        picture = vp9_picture(bytes(packet))
        frame = next(iter(packet.decode()))
    assert isinstance(frame, av.VideoFrame)
    assert picture == (frame.width, frame.height, int(frame.colorspace))


@pytest.mark.parametrize("matrix", [1, 2, 5, 6, 7, 9])
def test_colour_matrices_are_the_decoders(matrix: int) -> None:
    encoder: Any = av.CodecContext.create("libvpx-vp9", "w")
    encoder.width, encoder.height, encoder.pix_fmt = 34, 18, "yuv420p"
    encoder.time_base, encoder.colorspace = Fraction(1, 30), matrix
    frame = av.VideoFrame(34, 18, "yuv420p")
    frame.pts = 0
    packet = [*encoder.encode(frame), *encoder.encode(None)][0]
    picture = vp9_picture(bytes(packet))
    decoded: Any = av.CodecContext.create("vp9", "r").decode(packet)[0]
    assert picture == (34, 18, matrix)
    assert int(decoded.colorspace) == matrix
