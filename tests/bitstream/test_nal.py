"""Splitting access units into NAL units."""

from __future__ import annotations

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.bitstream import iter_nals, nal_format_of
from tests import corpus

UNIT = st.binary(min_size=1, max_size=40).filter(
    lambda unit: b"\0\0" not in unit and unit[-1] != 0 and unit[0] != 0
)


@given(st.binary(max_size=300), st.sampled_from([0, 1, 2, 3, 4]))
def test_any_bytes_split_into_units_that_are_not_empty(data: bytes, length_size: int) -> None:
    units = list(iter_nals(data, length_size))
    assert all(units)
    assert sum(map(len, units)) <= len(data)


@given(st.sampled_from(["h264", "hevc"]), st.binary(max_size=300))
def test_any_extradata_gives_a_format(codec: str, extradata: bytes) -> None:
    nal_format = nal_format_of(codec, extradata)
    assert nal_format.length_size in (0, 1, 2, 3, 4)
    assert all(nal_format.parameter_sets)


@given(st.sampled_from(["h264", "hevc"]), st.binary(max_size=300))
def test_any_configuration_record_gives_units_within_its_bytes(codec: str, rest: bytes) -> None:
    nal_format = nal_format_of(codec, b"\1" + rest)
    assert sum(map(len, nal_format.parameter_sets)) <= 1 + len(rest)


@given(st.lists(UNIT, max_size=8), st.sampled_from([1, 2, 4]))
def test_units_with_lengths_are_found_again(units: list[bytes], size: int) -> None:
    data = b"".join(len(unit).to_bytes(size, "big") + unit for unit in units)
    assert list(iter_nals(data, size)) == units


@given(st.lists(UNIT, max_size=8), st.sampled_from([b"\0\0\1", b"\0\0\0\1"]))
def test_units_with_start_codes_are_found_again(units: list[bytes], separator: bytes) -> None:
    assert list(iter_nals(b"".join(separator + unit for unit in units), 0)) == units


@pytest.mark.parametrize(
    ("clip", "codec", "length_size", "first_unit_types"),
    [
        ("b_frames.mp4", "h264", 4, [7, 8]),
        ("hevc.mp4", "hevc", 4, [32, 33, 34]),
        ("no_timestamps.h264", "h264", 0, [7, 8]),
    ],
)
def test_parameter_sets_of_real_files(
    clip: str, codec: str, length_size: int, first_unit_types: list[int]
) -> None:
    with av.open(str(corpus.clip_path(clip))) as container:
        nal_format = nal_format_of(codec, container.streams.video[0].codec_context.extradata)
    kinds = [
        unit[0] & 0x1F if codec == "h264" else unit[0] >> 1 & 0x3F
        for unit in nal_format.parameter_sets
    ]
    assert nal_format.length_size == length_size
    assert kinds[: len(first_unit_types)] == first_unit_types
