"""Where a Matroska file says that it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.bitstream import matroska_end
from tests import corpus

EBML = b"\x1a\x45\xdf\xa3"
SEGMENT = b"\x18\x53\x80\x67"


@given(st.binary(max_size=60), st.sampled_from([b"", EBML, EBML + b"\x80" + SEGMENT]))
def test_any_bytes_end_somewhere_or_nowhere(data: bytes, start: bytes) -> None:
    end = matroska_end(start + data)
    assert end is None or end >= 0


@pytest.mark.parametrize("clip", ["matroska.mkv", "av1.webm", "vp8.webm", "rgb.mkv"])
def test_whole_file_ends_where_it_says(clip: str) -> None:
    data = corpus.clip_path(clip).read_bytes()
    assert matroska_end(data[:512]) == len(data)


def test_segment_of_unknown_size_has_no_end() -> None:
    assert matroska_end(EBML + b"\x80" + SEGMENT + b"\x01" + b"\xff" * 7) is None


def test_mp4_has_no_such_end() -> None:
    assert matroska_end(corpus.clip_path("b_frames.mp4").read_bytes()[:512]) is None
