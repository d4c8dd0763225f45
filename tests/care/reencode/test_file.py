"""One video made anew: its frames, times, colours and key frames, and that this is proved."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import reelseek
from reelseek.care.reencode import Encoding
from reelseek.care.reencode._clock import KEPT, clock_of
from reelseek.care.reencode._encoder import Output, _threads, write_video
from reelseek.care.reencode._faults import raise_if_of_disk
from reelseek.care.reencode._file import SETTINGS, SPANS, TOKEN, copy_file, reencode_file
from reelseek.care.reencode._prove import prove
from reelseek.care.reencode._source import Colours, Source, _loss, decoded
from reelseek.errors import (
    CorruptVideoError,
    DecodeError,
    OutputError,
    ReelseekError,
    UnsupportedVideoError,
    VideoLengthError,
)
from reelseek.index import index_video
from tests.conftest import needs
from tests.corpus import clip_path, number_shown

FAST = Encoding("h264", 12, preset="veryfast")


def made(
    clip: str,
    folder: Path,
    encoding: Encoding | None = FAST,
    spans: Any = (),
    *,
    restamp: bool = False,
    num_rows: int = 0,
    token: str = "ours",
) -> tuple[Path, dict[str, Any]]:
    """The path of a clip made anew, and the facts."""
    path = clip_path(clip)
    (folder / SETTINGS).write_text(json.dumps({TOKEN: "ours"}))
    (folder / SPANS).write_text(json.dumps({clip: (num_rows, spans)}))
    where: dict[str, Any] = {
        "root": str(path.parent), "partial": str(folder), "token": token, "fps": 30.0,
        "restamp": restamp,
    }  # fmt: skip
    if encoding is None:
        facts = copy_file(clip, **where)
    else:
        facts = reencode_file(clip, **where, encoding=encoding.document())
    return folder / "dataset" / clip, facts


def shown(path: Path) -> list[int]:
    with reelseek.open_video(path) as video:
        return [number_shown(frame.numpy()) for frame in video]


ODDITIES = ("trimmed.mp4", "variable_rate.mp4", "hevc_open_gop.mp4", "vp9.mp4", "rotated.mp4",
            "flipped.mp4", "sets_once.mp4", "ten_bit.mp4", "one_frame.mp4")  # fmt: skip


@pytest.mark.parametrize("clip", ODDITIES)
def test_frames_are_those_that_ffmpeg_displays(clip: str, tmp_path: Path) -> None:
    path, facts = made(clip, tmp_path)
    assert shown(path) == shown(clip_path(clip))
    assert facts["num_frames"] == len(index_video(str(clip_path(clip))))
    assert facts["psnr_db"] > 40


REMUXED = ("b_frames.mp4", "hevc_open_gop.mp4", "av1_default.mp4", "vp9.mp4", "starts_late.mp4",
           "no_moov_duration.mp4", "dropped.mp4")  # fmt: skip


@pytest.mark.parametrize("clip", REMUXED)
def test_copied_frames_are_the_same(clip: str, tmp_path: Path) -> None:
    path, _facts = made(clip, tmp_path, None)
    assert shown(path) == shown(clip_path(clip))
    with reelseek.open_video(path) as video:
        assert (video.pts_seconds[0], video.info.notes) == (0.0, ())
        assert video.info.backend == "indexed"


@pytest.mark.parametrize("backend", ["torchcodec", "pyav"])
def test_copy_without_an_edit_list_is_read_by_others(backend: str, tmp_path: Path) -> None:
    needs(backend.replace("pyav", "av"))
    path, _facts = made("b_frames.mp4", tmp_path, None)
    with reelseek.open_video(path, backend=backend) as video:
        assert [number_shown(video[frame].numpy()) for frame in (70, 3, 31, 0)] == [70, 3, 31, 0]


@pytest.mark.parametrize(
    ("clip", "note"),
    [
        ("starts_late.mp4", "its first frame was at 1.500000 s: now at 0"),
        ("dropped.mp4", f"its frames aren't 30 a second throughout; {KEPT}"),
        ("ntsc.mp4", f"it has 29.97003 frames a second, and info.json says 30; {KEPT}"),
        ("b_frames.mp4", ""),
    ],
)
def test_times_are_i_over_fps_or_kept(clip: str, note: str, tmp_path: Path) -> None:
    path, facts = made(clip, tmp_path)
    assert facts["note"] == note
    before = index_video(str(clip_path(clip))).pts_seconds()
    after = index_video(str(path)).pts_seconds()
    assert after == pytest.approx(before - before[0] * ("now at 0" in note), abs=1e-9)


@pytest.mark.parametrize("encoding", [FAST, None], ids=["encoded", "copied"])
@pytest.mark.parametrize("clip", ["ntsc.mp4", "dropped.mp4", "variable_rate.mp4"])
def test_restamped_frame_is_at_its_number_over_fps(
    clip: str, encoding: Encoding | None, tmp_path: Path
) -> None:
    table = index_video(str(clip_path(clip)))
    path, facts = made(clip, tmp_path, encoding, restamp=True, num_rows=len(table))
    after = index_video(str(path)).pts_seconds()
    assert after == pytest.approx(np.arange(len(table)) / 30, abs=1e-9)
    assert shown(path) == shown(clip_path(clip))
    assert "s from i/30: now there" in facts["note"]


def test_restamped_episodes_begin_after_the_rows_before_them(tmp_path: Path) -> None:
    spans = [[0.0, 50], [50 / 30 + 0.3, 100]]  # the second isn't where a frame is
    _path, facts = made("one_gop.mp4", tmp_path, FAST, spans, restamp=True, num_rows=150)
    assert facts["spans"] == [(0.0, 50 / 30), (50 / 30, 5.0)]


@pytest.mark.parametrize("encoding", [FAST, None], ids=["encoded", "copied"])
def test_restamping_other_frames_than_rows_is_refused(
    encoding: Encoding | None, tmp_path: Path
) -> None:
    with pytest.raises(VideoLengthError, match="has 150 frames, and its episodes 149 rows"):
        made("one_gop.mp4", tmp_path, encoding, restamp=True, num_rows=149)


@pytest.mark.parametrize("codec", ["av1", "h264", "hevc"])
@pytest.mark.parametrize("b_frames", [False, True])
def test_episodes_begin_with_key_frames(codec: str, b_frames: bool, tmp_path: Path) -> None:
    encoding = Encoding(codec, 12, b_frames=b_frames)
    spans = [[0.0, 1], [1 / 30, 30], [31 / 30, 5]]
    path, facts = made("one_gop.mp4", tmp_path, encoding, spans)
    assert facts["spans"] == [(0.0, 1 / 30), (1 / 30, 31 / 30), (31 / 30, 1.2)]
    with reelseek.open_video(path) as video:
        assert {0, 1, 31} <= set(video.info.key_frames)
    assert shown(path) == list(range(150))


def test_episode_that_begins_where_no_frame_is_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VideoLengthError, match=r"begins at 6\.000000 s .* to 4\.966667 s"):
        made("one_gop.mp4", tmp_path, FAST, [[0.0, 30], [6.0, 5]])


@pytest.mark.parametrize("codec", ["av1", "h264", "hevc"])
def test_gop_of_one_is_all_key_frames(codec: str, tmp_path: Path) -> None:
    _path, facts = made("edit_list_ignored_tail.mp4", tmp_path, Encoding(codec, 1))
    assert facts["num_key_frames"] == facts["num_frames"] == 21


@pytest.mark.parametrize("codec", ["av1", "h264", "hevc"])
def test_best_quality_is_read_too(codec: str, tmp_path: Path) -> None:
    _path, facts = made("bt709_limited_tagged.mp4", tmp_path, Encoding(codec, 4, 0))
    assert facts["psnr_db"] > 50


COLOURED = ("bt709_full_tagged.mp4", "bt709_limited_tagged.mp4", "bt601_limited_untagged.mp4",
            "rgb.mkv")  # fmt: skip


@pytest.mark.parametrize("codec", ["av1", "h264", "hevc"])
@pytest.mark.parametrize("clip", COLOURED)
def test_colours_are_kept_and_said(codec: str, clip: str, tmp_path: Path) -> None:
    path, _facts = made(clip, tmp_path, Encoding(codec, 12, 5))
    new = path.rename(tmp_path / "new.mp4")  # which is an MP4 file whatever the clip is
    with reelseek.open_video(clip_path(clip)) as old, reelseek.open_video(new) as video:
        difference = np.abs(old[7].numpy().astype(int) - video[7].numpy())
        assert difference.mean() < 0.1
    said = Colours.of(next(decoded(str(new), video.table, 0, 1)))
    assert said.matrix == (1 if "bt709" in clip else 2)
    assert said.range in ((2,) if "full" in clip else (0, 1))


@pytest.mark.parametrize("encoding", [FAST, None], ids=["encoded", "copied"])
@pytest.mark.parametrize("clip", ["zeroed_tail.mp4", "noise_in_av1.mp4", "cut_fragmented.mp4"])
def test_damaged_video_is_refused(clip: str, encoding: Encoding | None, tmp_path: Path) -> None:
    with pytest.raises(CorruptVideoError, match="Copy it again"):
        made(clip, tmp_path, encoding)
    assert not list(tmp_path.glob("work/*"))


def test_size_that_changes_on_the_way_is_refused_unless_one_is_chosen(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedVideoError, match="its size changes on the way"):
        made("two_sizes.webm", tmp_path)
    made("two_sizes.webm", tmp_path, Encoding("h264", 12, size=(64, 64)))


def test_bits_that_are_not_kept_are_noted(tmp_path: Path) -> None:
    _path, facts = made("ten_bit.mp4", tmp_path)
    assert facts["note"] == "it was yuv420p10le: 10 bits a value, now 8"


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ("yuv444p", "yuv420p", "colours for more of the pixels than yuv420p has"),
        ("bgr0", "yuv422p", "colours for more of the pixels than yuv422p has"),
        ("yuva420p", "yuv420p", "transparency, now left out"),
        ("rgb24", "yuv444p", ""),
        ("yuv422p", "yuv444p", ""),
        ("nv12", "yuv420p", ""),
        ("gray", "yuv420p", ""),
    ],
)
def test_colours_that_are_not_kept_are_noted(before: str, after: str, lost: str) -> None:
    assert _loss(before, after) == (f"it was {before}: {lost}" if lost else "")


def test_copy_that_would_change_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedVideoError, match="without --copy"):
        made("trimmed.mp4", tmp_path, None)
    assert not (tmp_path / "dataset").exists()


@pytest.mark.parametrize("encoding", [FAST, None], ids=["encoded", "copied"])
def test_video_made_for_a_former_copy_is_not_put_in_this_one(
    encoding: Encoding | None, tmp_path: Path
) -> None:
    with pytest.raises(OutputError, match="is there no more"):
        made("b_frames.mp4", tmp_path, encoding, token="a former one's")
    assert not (tmp_path / "dataset").exists()
    assert not list((tmp_path / "work").iterdir())


@pytest.mark.parametrize("encoding", [FAST, None], ids=["encoded", "copied"])
def test_disk_that_takes_no_more_is_no_fault_of_the_codec(
    encoding: Encoding | None, tmp_path: Path
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    try:
        with pytest.raises(OutputError, match=r"the disk takes no more .*File too large"):
            made("b_frames.mp4", tmp_path, encoding)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_read_error_that_may_pass_is_tried_again() -> None:
    with pytest.raises(OSError, match="Stale") as caught:
        raise_if_of_disk(av.error.OSError(errno.ESTALE, "Stale file handle"), "a.mp4")
    assert caught.value.errno == errno.ESTALE
    assert not isinstance(caught.value, (ReelseekError, av.error.FFmpegError))


@pytest.fixture(scope="module")
def source() -> Source:
    path = str(clip_path("b_frames.mp4"))
    return Source(path, index_video(path), FAST)


def _output(source: Source, path: Path) -> Output:
    return Output(str(path), FAST, source.size, source.colours(), clock_of(source.table, 30.0))


def test_file_without_a_frame_is_found_out(source: Source, tmp_path: Path) -> None:
    output = _output(source, tmp_path / "a.mp4")
    write_video(output, list(source.frames())[:-1])
    with pytest.raises(DecodeError, match="has 119 frames of 120"):
        prove(source, output, [])


def test_file_of_another_clock_is_found_out(source: Source, tmp_path: Path) -> None:
    output = _output(source, tmp_path / "a.mp4")
    slower = clock_of(source.table, 30.0)
    slow = Output(output.path, FAST, output.size, output.colours, type(slower)(
        slower.time_base * 2, slower.pts, slower.rate / 2))  # fmt: skip
    write_video(slow, source.frames())
    with pytest.raises(DecodeError, match="frame 1 is at"):
        prove(source, output, [])


def test_file_without_a_key_frame_where_an_episode_begins_is_found_out(
    source: Source, tmp_path: Path
) -> None:
    output = _output(source, tmp_path / "a.mp4")
    write_video(output, source.frames())
    assert prove(source, output, [24]).num_frames == 120
    with pytest.raises(DecodeError, match="first frame is no key frame"):
        prove(source, output, [25])


def test_swapped_frames_show_in_the_worst_psnr(source: Source, tmp_path: Path) -> None:
    output = _output(source, tmp_path / "a.mp4")
    frames = list(source.frames())
    frames[50], frames[51] = frames[51], frames[50]
    write_video(output, frames)
    quality = prove(source, output, []).quality
    assert quality.worst_psnr_db < 15 and quality.worst_frame in (50, 51)


def test_no_thread_is_a_real_time_one_beside_an_encoder(source: Source, tmp_path: Path) -> None:
    # Those of SVT-AV1 are where it may make them so: where root runs this test.
    output = dataclasses.replace(_output(source, tmp_path / "a.mp4"), encoding=Encoding("av1", 2))
    before, others = os.sched_getscheduler(0), _threads()
    seen: set[int] = set()

    def frames() -> Iterator[av.VideoFrame]:
        for frame in source.frames():
            yield frame
            for thread in {threading.get_native_id(), *(_threads() - others)}:
                with contextlib.suppress(ProcessLookupError):  # the first part's threads end
                    assert os.sched_getscheduler(thread) == before
                    seen.add(thread)

    write_video(output, frames(), starts=[60])
    assert threading.get_native_id() in seen  # newer encoders have no thread of their own
    assert os.sched_getscheduler(0) == before
