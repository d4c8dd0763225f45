"""The frame table against FFmpeg's sequential decode."""

from __future__ import annotations

import numpy as np
import pytest

from reelseek.index import NO_PTS, FrameTable, index_video
from tests import corpus, oracle

SEEKABLE = sorted(set(oracle.whole_clips()) - {
    "joined.mp4", "no_timestamps.h264", "decoding_times.mp4", "vp8.webm", "mpeg2.mpg", "h264.avi",
    "h264.ts",
})  # fmt: skip


def _table(clip: str) -> FrameTable:
    return index_video(str(corpus.clip_path(clip)))


@pytest.mark.parametrize("clip", oracle.whole_clips())
def test_timestamps_are_those_that_ffmpeg_displays(clip: str) -> None:
    expected = [NO_PTS if pts is None else pts for pts in oracle.clip(clip).pts]
    assert _table(clip).pts.tolist() == expected


@pytest.mark.parametrize("clip", oracle.whole_clips())
def test_size_is_that_of_the_displayed_frames(clip: str) -> None:
    stream = _table(clip).stream
    assert (stream.height, stream.width, 3) == oracle.clip(clip).frames[0].shape


@pytest.mark.parametrize("clip", SEEKABLE)
def test_each_frame_is_decoded_from_a_packet_before_its_own(clip: str) -> None:
    table = _table(clip)
    assert table.is_seekable
    assert np.all(table.entry <= table.decode_position)
    assert np.all(table.packet_pts[table.decode_position] == table.pts)


@pytest.mark.parametrize("clip", sorted(set(oracle.whole_clips()) - set(SEEKABLE)))
def test_frames_that_timestamps_cannot_find_are_counted_from_the_start(clip: str) -> None:
    table = _table(clip)
    assert not table.is_seekable
    assert np.all(table.entry == -1)
    assert "decoding the whole file" in table.notes[0]


def test_whole_file_has_no_notes() -> None:
    assert _table("b_frames.mp4").notes == ()


def test_leading_pictures_are_decoded_from_the_key_frame_before_theirs() -> None:
    table = _table("hevc_open_gop.mp4")
    keys = np.flatnonzero(table.is_key)
    just_before_a_key = keys[1:] - 1
    own = table.decode_position[just_before_a_key]
    key_positions = table.decode_position[keys[1:]]
    assert np.any(own > key_positions)  # they stand behind the key frame in the file
    assert np.all(table.entry[just_before_a_key] < key_positions)


def test_key_frames_of_an_open_h264_gop_are_no_entries() -> None:
    table = _table("open_gop.mp4")
    assert table.has_partial_keys
    assert set(table.entry.tolist()) == {0}


def test_cut_file_lists_the_frames_that_its_bytes_hold() -> None:
    table = _table("cut_moov_in_front.mp4")
    assert table.is_cut_short
    assert table.stream.num_frames_from_header == 120
    assert 0 < len(table) < 120
    assert table.pts.tolist() == list(oracle.clip("faststart.mp4").pts[: len(table)])


def test_frames_behind_a_damaged_packet_are_marked_until_the_next_key_frame() -> None:
    table = _table("noise_in_av1.mp4")
    damaged = np.flatnonzero(table.is_damaged)
    key_behind = table.is_key.nonzero()[0]
    assert len(damaged) > 0
    assert not table.is_damaged[0]
    assert damaged[-1] + 1 in [*key_behind.tolist(), len(table)]


def test_second_video_stream_is_taken_where_it_is_the_default() -> None:
    table = _table("two_videos.mkv")
    assert not table.is_first_video
    assert len(table) == 120


def test_cover_picture_is_no_video() -> None:
    assert _table("cover.mp4").pts.tolist() == _table("b_frames.mp4").pts.tolist()


def test_durations_last_until_the_next_frame() -> None:
    table = _table("variable_rate.mp4")
    assert np.array_equal(table.duration[:-1], np.diff(table.pts))
    assert table.duration[-1] > 0


def test_seconds_of_a_frame_are_ticks_times_the_time_base() -> None:
    table = _table("ntsc.mp4")
    assert table.pts_seconds(np.array([30])).tolist() == [30 * 1001 / 30000]


def test_file_without_timestamps_has_no_seconds() -> None:
    table = _table("no_timestamps.h264")
    assert np.isnan(table.pts_seconds()).all()
    assert np.isnan(table.end_seconds())
