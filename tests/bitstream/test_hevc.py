"""What HEVC access units say of themselves."""

from __future__ import annotations

import av
from hypothesis import given
from hypothesis import strategies as st

from reelseek.bitstream import hevc_nal_types, iter_nals, nal_format_of
from tests import corpus

RASL = {8, 9}
IDR = {19, 20}
CRA = 21


def _types(clip: str) -> list[frozenset[int]]:
    with av.open(str(corpus.clip_path(clip))) as container:
        stream = container.streams.video[0]
        size = nal_format_of("hevc", stream.codec_context.extradata).length_size
        return [
            hevc_nal_types(iter_nals(bytes(packet), size))
            for packet in container.demux(stream)
            if packet.size
        ]


@given(st.lists(st.binary(max_size=60)))
def test_any_units_give_types_of_six_bits(units: list[bytes]) -> None:
    assert hevc_nal_types(units) <= frozenset(range(64))


def test_units_of_another_layer_are_left_out() -> None:
    assert hevc_nal_types([bytes([19 << 1, 1 << 3 | 1])]) == frozenset()
    assert hevc_nal_types([bytes([19 << 1, 1])]) == {19}


def test_open_gops_have_leading_pictures_after_a_clean_random_access_picture() -> None:
    types = _types("hevc_open_gop.mp4")
    assert any(kinds & RASL for kinds in types)
    assert any(CRA in kinds for kinds in types[1:])


def test_closed_gops_start_with_idr_pictures() -> None:
    types = _types("hevc_closed_gop.mp4")
    assert types[0] & IDR
    assert not any(kinds & RASL for kinds in types)
