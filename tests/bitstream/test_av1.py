"""What AV1 temporal units say of themselves."""

from __future__ import annotations

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.bitstream import Av1Facts, Av1Reader
from tests import corpus

CLIPS = ["av1_g2.mp4", "av1_g20.mp4", "av1_default.mp4", "av1_libaom.mp4", "av1_rav1e.mp4",
         "av1.webm", "av1.mkv", "ten_bit_av1.mp4"]  # fmt: skip


def _facts(clip: str) -> tuple[list[Av1Facts], list[bool]]:
    """What each packet says, and whether the container marks it as a key frame."""
    reader = Av1Reader()
    with av.open(str(corpus.clip_path(clip))) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        facts = [reader.read(bytes(packet)) for packet in packets]
        return facts, [packet.is_keyframe for packet in packets]


@given(st.lists(st.binary(max_size=80)))
def test_any_bytes_give_facts(units: list[bytes]) -> None:
    reader = Av1Reader()
    for unit in units:
        facts = reader.read(unit)
        assert 0 <= facts.shown_frames <= len(unit)


@pytest.mark.parametrize("clip", CLIPS)
def test_every_unit_shows_one_frame(clip: str) -> None:
    facts, _keys = _facts(clip)
    assert all(fact.is_whole and fact.shown_frames == 1 for fact in facts)


@pytest.mark.parametrize("clip", CLIPS)
def test_units_that_start_decoding_are_those_that_the_container_marks(clip: str) -> None:
    facts, keys = _facts(clip)
    assert [fact.starts_with_key for fact in facts] == keys


def test_unit_cut_in_two_is_not_whole() -> None:
    with av.open(str(corpus.clip_path("av1_g20.mp4"))) as container:
        unit = bytes(next(iter(container.demux(video=0))))
    assert not Av1Reader().read(unit[: len(unit) // 2]).is_whole
    assert Av1Reader().read(unit[len(unit) // 2 :]).shown_frames != 1


def test_length_that_never_ends_is_not_whole() -> None:
    assert not Av1Reader().read(bytes([0x32]) + b"\xff" * 12).is_whole
