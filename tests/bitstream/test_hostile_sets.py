"""Parameter sets that claim more than any encoder writes are read, or refused, in no time."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pytest

from reelseek.bitstream import NalFormat
from reelseek.bitstream._bit_columns import PADDING_BYTES
from reelseek.bitstream._bits import BitReader
from reelseek.bitstream._h264 import read_h264_sps
from reelseek.bitstream._hevc import read_hevc_sps
from reelseek.bitstream._picture_batch import read_pictures

LONG = 1 << 20
"""Bits, more than a configuration record holds."""
MOST_SECONDS = 0.2


def coded(*numbers: int) -> str:
    """Exp-Golomb numbers as bits."""
    lengths = [(number + 1).bit_length() for number in numbers]
    return "".join(
        format(number + 1, "b").zfill(2 * length - 1)
        for number, length in zip(numbers, lengths, strict=True)
    )


def as_bytes(bits: str) -> bytes:
    bits = bits.ljust(-(-len(bits) // 8) * 8, "1")
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def h264_sps(frame_num: int, order: str) -> bytes:
    start = format(66, "08b") + "0" * 16 + coded(0, frame_num - 4)
    return b"\x67" + as_bytes(start + order + coded(1) + "0" + coded(7, 7) + "1100")


def hevc_sps(sets: str) -> bytes:
    start = "0000" + "000" + "1" + "0" * 96 + coded(0, 1, 128, 128) + "0" + coded(0, 0, 4)
    rest = "0" + coded(0, 0, 0) + coded(*[0] * 6) + "0" + "00" + "0"
    return b"\x42\x01" + as_bytes(start + rest + sets)


@pytest.mark.parametrize(
    "unit",
    [
        h264_sps(8, coded(1) + "0" + coded(0, 0, 1 << 31) + "1" * LONG),  # a cycle without end
        hevc_sps(coded(1 << 31) + "11" + "011" * (LONG // 3)),  # sets without end
        hevc_sps(coded(1) + coded(1 << 31, 0) + "11" * LONG),  # one set without end
        hevc_sps(coded(0) + "1" + coded(1 << 31) + "1" * LONG),  # long-term pictures without end
    ],
)
def test_endless_parameter_set_takes_no_time(unit: bytes) -> None:
    started = time.process_time()
    with contextlib.suppress(EOFError):
        read_hevc_sps(unit) if unit[0] == 0x42 else read_h264_sps(unit)
    assert time.process_time() - started < MOST_SECONDS


@pytest.mark.parametrize("frame_num", [17, 60, 65, 70, 1 << 31])
def test_field_longer_than_the_standard_allows_is_refused(frame_num: int) -> None:
    sps, pps = h264_sps(frame_num, coded(0, 0)), b"\x68" + as_bytes(coded(0, 0) + "0" * 20)
    with pytest.raises(EOFError):
        read_h264_sps(sps)
    packet = b"\x65" + as_bytes(coded(0, 7, 0)) + b"\xaa" * 40
    packet = len(packet).to_bytes(4, "big") + packet
    data = np.frombuffer(packet + bytes(PADDING_BYTES), np.uint8)
    place = np.array([0]), np.array([len(packet)])
    assert read_pictures("h264", data, *place, NalFormat(4, (sps, pps))) is None


def test_count_above_what_is_allowed_ends_the_reading() -> None:
    assert BitReader(as_bytes(coded(16))).count(16) == 16
    with pytest.raises(EOFError):
        BitReader(as_bytes(coded(17))).count(16)
