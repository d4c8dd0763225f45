"""What H.264 access units say of themselves."""

from __future__ import annotations

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.bitstream import H264Facts, iter_nals, nal_format_of, read_h264_facts
from tests import corpus


def _facts(clip: str) -> tuple[H264Facts, list[bool]]:
    """The facts of a clip's parameter sets, and which of its packets hold an IDR picture."""
    with av.open(str(corpus.clip_path(clip))) as container:
        stream = container.streams.video[0]
        nal_format = nal_format_of("h264", stream.codec_context.extradata)
        units = [
            list(iter_nals(bytes(packet), nal_format.length_size))
            for packet in container.demux(stream)
            if packet.size
        ]
    return read_h264_facts(nal_format.parameter_sets), [
        read_h264_facts(some).has_idr for some in units
    ]


@given(st.lists(st.binary(min_size=1, max_size=120)))
def test_any_units_give_facts(units: list[bytes]) -> None:
    read_h264_facts(units)


@given(st.binary(max_size=200))
def test_any_parameter_set_gives_facts(rest: bytes) -> None:
    assert not read_h264_facts([b"\x67" + rest]).has_idr


@pytest.mark.parametrize(
    "clip", ["b_frames.mp4", "ten_bit.mp4", "odd_size_444.mp4", "grey.mp4", "audio_first.mp4"]
)
def test_progressive_parameter_set_allows_no_fields(clip: str) -> None:
    assert not _facts(clip)[0].may_hold_fields


def test_interlaced_parameter_set_may_hold_fields() -> None:
    assert _facts("interlaced.mp4")[0].may_hold_fields


@pytest.mark.parametrize("clip", ["b_frames.mp4", "interlaced.mp4"])
def test_parameter_set_cut_short_may_hold_fields(clip: str) -> None:
    with av.open(str(corpus.clip_path(clip))) as container:
        extradata = container.streams.video[0].codec_context.extradata
    sps = nal_format_of("h264", extradata).parameter_sets[0]
    assert read_h264_facts([sps[:5]]).may_hold_fields


def test_idr_pictures_are_those_that_the_container_marks_as_keys() -> None:
    with av.open(str(corpus.clip_path("b_frames.mp4"))) as container:
        keys = [packet.is_keyframe for packet in container.demux(video=0) if packet.size]
    _sets, idr = _facts("b_frames.mp4")
    assert sum(idr) >= 4
    assert idr == keys


@pytest.mark.parametrize("clip", ["open_gop.mp4", "intra_refresh.mp4"])
def test_stream_without_later_idr_pictures_has_only_the_first(clip: str) -> None:
    _sets, idr = _facts(clip)
    assert idr[0]
    assert not any(idr[1:])
