"""What each decoder makes of a file, and the oracle that it is compared with."""

from __future__ import annotations

import importlib.util
import json
import math

import numpy as np
import pytest

import reelseek
from reelseek.bench import FileProbe, probe_file
from reelseek.bench._child import undecorated
from reelseek.bench._oracle import decode_all
from reelseek.bench.probe import SCHEMA, BackendProbe, document, frames_to_read
from tests.conftest import skip_without
from tests.corpus import clip_path

pytestmark = pytest.mark.slow


def one(probe: FileProbe, name: str) -> BackendProbe:
    return next(backend for backend in probe.backends if backend.name == name)


def need(package: str, name: str) -> None:
    if importlib.util.find_spec(package) is None:
        skip_without(name, f"{package} isn't installed")


def test_every_backend_is_probed_and_pyav_reads_av1_exactly() -> None:
    probe = probe_file(clip_path("av1_g20.mp4"), backends=None)
    assert [backend.name for backend in probe.backends] == list(reelseek.backend_names())
    pyav = one(probe, "pyav")
    assert (pyav.adapter.status, pyav.adapter.right) == ("right", len(probe.frames))
    assert pyav.median_seek_ms is not None and pyav.median_seek_ms > 0
    assert probe.is_readable


def test_decord_used_plainly_returns_other_frames_of_a_trimmed_file() -> None:
    need("decord", "decord")
    decord = one(probe_file(clip_path("trimmed.mp4"), backends=["decord"]), "decord")
    assert decord.adapter.status == "refuses"
    assert "120 frames where FFmpeg displays 99" in decord.adapter.explanation
    assert decord.plain is not None and decord.plain.status == "wrong"
    assert decord.plain_verdict.endswith("wrong")
    assert decord.plain.reason.startswith("returns frame ")


def test_opencv_used_plainly_reads_nothing_of_av1_after_a_seek() -> None:
    need("cv2", "opencv")
    opencv = one(probe_file(clip_path("av1_g20.mp4"), backends=["opencv"]), "opencv")
    assert opencv.adapter.status == "refuses"
    assert opencv.plain_verdict == "read() is False after a seek"
    assert "AV1" in opencv.adapter.detail  # FFmpeg's own words, which it printed to stderr


def test_torchcodec_in_approximate_mode_is_wrong_on_a_variable_rate() -> None:
    need("torchcodec", "torchcodec")
    probe = probe_file(clip_path("variable_rate.mp4"), backends=["torchcodec"])
    torchcodec = one(probe, "torchcodec")
    assert torchcodec.adapter.status == "right"
    assert torchcodec.plain is not None and torchcodec.plain.wrong > 0


@pytest.mark.usefixtures("faulty_backends")
def test_a_decoder_that_crashes_is_a_line_in_the_table() -> None:
    probe = probe_file(clip_path("b_frames.mp4"), backends=["crashes", "pyav"])
    crashes = one(probe, "crashes").adapter
    assert crashes.status == "crashed"
    assert "SIGSEGV" in crashes.reason
    assert "while reading frame 0" in crashes.reason
    assert crashes.detail == "cannot go on"  # the telling line, not the last one
    assert one(probe, "pyav").adapter.status == "right"


@pytest.mark.usefixtures("faulty_backends")
def test_a_decoder_that_hangs_is_stopped() -> None:
    probe = probe_file(clip_path("b_frames.mp4"), backends=["hangs"], timeout_seconds=5)
    hangs = one(probe, "hangs").adapter
    assert hangs.status == "timed out"
    assert "5 s" in hangs.reason
    assert not probe.is_readable


@pytest.mark.usefixtures("faulty_backends")
def test_a_decoder_that_returns_neighbours_is_found_out() -> None:
    probe = probe_file(clip_path("b_frames.mp4"), backends=["neighbour"])
    neighbour = one(probe, "neighbour").adapter
    assert neighbour.status == "wrong"
    assert neighbour.right == probe.frames.count(0)
    assert neighbour.reason == "returns frame 118 for 119"


def test_a_damaged_file_is_not_called_readable() -> None:
    probe = probe_file(clip_path("noise_in_media.mp4"), backends=["pyav"])
    assert probe.is_damaged
    assert not probe.is_readable


@pytest.mark.parametrize("name", ["text.mp4", "empty.mp4", "sound_only.mp4", "cut_no_moov.mp4"])
def test_no_video_is_one_typed_error(name: str) -> None:
    probe = probe_file(clip_path(name))
    assert probe.error is not None
    assert probe.error["type"] in ("NotAVideoError", "CorruptVideoError")
    assert str(clip_path(name)) in probe.error["message"]
    assert probe.backends == ()


def test_the_document_names_its_schema_and_holds_plain_json() -> None:
    probes = [probe_file(clip_path(name), backends=["pyav"]) for name in ("ntsc.mp4", "text.mp4")]
    written = json.loads(json.dumps(document(probes, timeout_seconds=9), allow_nan=False))
    assert written["schema"] == SCHEMA == "reelseek.probe/1"
    good, bad = written["files"]
    assert good["video"]["codec"] == "h264"
    assert good["error"] is None and bad["error"]["type"] == "NotAVideoError"
    (backend,) = good["backends"]
    assert backend["adapter"]["status"] == backend["raw"]["status"] == "right"
    assert len(backend["adapter"]["read_ms"]) == len(good["frames"])


def test_frames_go_back_and_forth_then_all_over_the_file() -> None:
    frames = frames_to_read(range(100), seed=0)
    assert frames[:4] == (0, 99, 50, 0)
    assert len(set(frames[4:])) == 24
    assert frames == frames_to_read(range(100), seed=0) != frames_to_read(range(100), seed=1)


@pytest.mark.parametrize("count", [1, 2, 23, 25])
def test_frames_of_short_videos_exist(count: int) -> None:
    assert set(frames_to_read(range(count), seed=0)) <= set(range(count))


def test_the_oracle_knows_a_frame_whose_colours_are_a_little_off() -> None:
    path = str(clip_path("b_frames.mp4"))
    _table, oracle = decode_all(path)
    with reelseek.open_video(path, backend="pyav") as video:
        pixels = np.clip(video[50].numpy().astype(np.int16) + 3, 0, 255).astype(np.uint8)
    assert oracle.match(50, pixels).is_right
    assert oracle.match(50, pixels).difference == 3
    match = oracle.match(51, pixels)
    assert (match.is_right, match.shown) == (False, 50)


def test_the_oracle_takes_a_repeated_picture_for_any_of_its_frames() -> None:
    path = str(clip_path("duplicates.mp4"))
    _table, oracle = decode_all(path)
    repeated = np.flatnonzero(oracle.digests[1:] == oracle.digests[:-1])
    assert len(repeated) > 0
    first = int(repeated[0])
    with reelseek.open_video(path, backend="pyav") as video:
        assert oracle.match(first, video[first + 1].numpy()).is_right


def test_the_oracle_gives_the_times_of_the_frame_table() -> None:
    table, oracle = decode_all(str(clip_path("starts_late.mp4")))
    assert math.isclose(oracle.pts_seconds[0], 1.5)
    assert np.array_equal(oracle.pts_seconds, table.pts_seconds())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[av1 @ 0x5651f4607c00] Failed to get pixel format.", "Failed to get pixel format."),
        ("[ERROR:0@0.034] global cap_ffmpeg.cpp:164 open no stream", "no stream"),
        ("[08:39:24] /src/video/video_reader.cc:151: Check failed", "Check failed"),
        ("plain words", "plain words"),
    ],
)
def test_a_native_message_loses_its_decoration(line: str, message: str) -> None:
    assert undecorated(line) == message
