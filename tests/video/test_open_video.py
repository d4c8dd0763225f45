"""Opening a video: bad input, the choice of the backend, and what is known afterwards."""

from __future__ import annotations

import os
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import reelseek
from reelseek.errors import (
    BackendUnavailableError,
    CorruptVideoError,
    DeviceUnavailableError,
    NotAVideoError,
    UnknownBackendError,
    UnsupportedVideoError,
    VideoError,
    VideoNotFoundError,
)
from reelseek.video.backends import _indexed
from tests import corpus, oracle, surgery
from tests.conftest import needs

PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:4,\n{}\n#EXT-X-ENDLIST\n"
SCRIPT = "ffconcat version 1.0\nfile '{}'\n"


def _missing(folder: Path) -> Path:
    return folder / "missing.mp4"


def _broken_link(folder: Path) -> Path:
    link = folder / "link.mp4"
    link.symlink_to(folder / "gone.mp4")
    return link


def _folder(folder: Path) -> Path:
    return folder


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.mp4")
    return folder / "pipe.mp4"


def _noise(folder: Path) -> Path:
    path = folder / "noise.mp4"
    path.write_bytes(np.random.default_rng(1).bytes(5000))
    return path


MADE = (
    (_missing, VideoNotFoundError, "no such file"),
    (_broken_link, VideoNotFoundError, "a symbolic link to a file that doesn't exist"),
    (_folder, NotAVideoError, "a folder"),
    (_fifo, NotAVideoError, "a device or pipe"),
    (_noise, NotAVideoError, "not a video that FFmpeg knows"),
)
OF_THE_CORPUS = (
    ("empty.mp4", NotAVideoError, "an empty file"),
    ("text.mp4", NotAVideoError, "a text file"),
    ("lfs_pointer.mp4", NotAVideoError, "a Git LFS pointer"),
    ("cut_no_moov.mp4", CorruptVideoError, "without a readable index (moov)"),
    ("no_frame.mp4", NotAVideoError, "no frame"),
    ("sound_only.mp4", NotAVideoError, "no video stream"),
)


def _assert_is_refused(path: Path, error: type[VideoError], fault: str) -> None:
    with pytest.raises(error) as caught:
        reelseek.open_video(path)
    assert str(path) in str(caught.value)
    assert fault in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(("make", "error", "fault"), MADE)
def test_what_is_no_file_is_refused(
    make: object, error: type[VideoError], fault: str, tmp_path: Path
) -> None:
    assert callable(make)
    _assert_is_refused(make(tmp_path), error, fault)


@pytest.mark.parametrize(("clip", "error", "fault"), OF_THE_CORPUS)
def test_what_is_no_video_is_refused(clip: str, error: type[VideoError], fault: str) -> None:
    _assert_is_refused(corpus.clip_path(clip), error, fault)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "closed.mp4"
    path.write_bytes(corpus.clip_path("b_frames.mp4").read_bytes())
    path.chmod(0)
    _assert_is_refused(path, VideoNotFoundError, "can't be read")


@pytest.mark.parametrize("text", [PLAYLIST, SCRIPT])
def test_playlist_in_disguise_opens_no_other_file(text: str, tmp_path: Path) -> None:
    other = tmp_path / "other.mp4"
    other.write_bytes(corpus.clip_path("b_frames.mp4").read_bytes())
    disguised = tmp_path / "disguised.mp4"
    disguised.write_text(text.format(other))
    _assert_is_refused(disguised, NotAVideoError, "text")


@pytest.mark.parametrize("name", ["a:b.mp4", "http:x.mp4", "%03d.mp4", "-i.mp4", "ü 'q\".mp4"])
def test_name_that_ffmpeg_could_take_for_something_else_is_a_file(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(corpus.clip_path("b_frames.mp4").read_bytes())
    for backend in ("indexed", "pyav", "torchcodec"):
        if backend == "torchcodec":
            needs("torchcodec")
        with reelseek.open_video(path, backend=backend) as video:
            assert corpus.number_shown(video[7].numpy()) == 7


def test_relative_path_survives_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.mp4").write_bytes(corpus.clip_path("b_frames.mp4").read_bytes())
    monkeypatch.chdir(tmp_path)
    video = reelseek.open_video("a.mp4")
    monkeypatch.chdir("/")
    assert corpus.number_shown(video[5].numpy()) == 5
    assert video.path == str(tmp_path / "a.mp4")


def test_auto_takes_the_indexed_engine_and_says_so() -> None:
    with reelseek.open_video(corpus.clip_path("b_frames.mp4")) as video:
        assert video.info.backend == "indexed"
        assert video.info.backend_reason == "the first choice"


def test_auto_takes_torchcodec_where_pieces_cannot_be_fed_and_says_why() -> None:
    needs("torchcodec")
    with reelseek.open_video(corpus.clip_path("mpeg4.mp4")) as video:
        assert video.info.backend == "torchcodec"
        assert video.info.backend_reason.startswith("not indexed: it isn't known how to feed mpeg4")


def test_codec_that_pyav_was_built_without_is_left_to_another_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs("torchcodec")
    monkeypatch.setattr(_indexed, "has_decoder", lambda codec: codec != "h264")
    with reelseek.open_video(corpus.clip_path("b_frames.mp4")) as video:
        assert video.info.backend == "torchcodec"
        assert "not indexed: the FFmpeg in PyAV has no decoder" in video.info.backend_reason
    with pytest.raises(UnsupportedVideoError, match="pip install"):
        reelseek.open_video(corpus.clip_path("b_frames.mp4"), backend="indexed")


@pytest.mark.parametrize("name", [["indexed"], 1, b"indexed"])
def test_backend_that_is_no_name_is_refused_like_an_unknown_one(name: object) -> None:
    with pytest.raises(UnknownBackendError, match="Choose one of"):
        reelseek.open_video(corpus.clip_path("b_frames.mp4"), backend=name)  # type: ignore[arg-type]


def test_auto_takes_pyav_where_no_other_can_and_says_why() -> None:
    needs("torchcodec")
    with reelseek.open_video(corpus.clip_path("joined.mp4")) as video:
        assert video.info.backend == "pyav"
        assert "not torchcodec: it finds frames by timestamp" in video.info.backend_reason


def test_auto_takes_pyav_where_torchcodec_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torchcodec", None)
    monkeypatch.setitem(sys.modules, "torchcodec.decoders", None)
    with reelseek.open_video(corpus.clip_path("mpeg4.mp4")) as video:
        assert video.info.backend == "pyav"
        assert "torchcodec" in video.info.backend_reason


def test_environment_variable_pins_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REELSEEK_BACKEND", "pyav")
    with reelseek.open_video(corpus.clip_path("b_frames.mp4")) as video:
        assert video.info.backend == "pyav"
        assert video.info.backend_reason == "set by REELSEEK_BACKEND"


def test_argument_goes_before_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REELSEEK_BACKEND", "torchcodec")
    with reelseek.open_video(corpus.clip_path("b_frames.mp4"), backend="pyav") as video:
        assert video.info.backend == "pyav"
        assert video.info.backend_reason == "asked for"


def test_unknown_backend_lists_the_known() -> None:
    with pytest.raises(UnknownBackendError) as caught:
        reelseek.open_video(corpus.clip_path("b_frames.mp4"), backend="ffmpeg")
    for name in ("auto", *reelseek.backend_names()):
        assert name in caught.value.remedy


def test_unknown_backend_in_the_environment_is_said_to_be_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REELSEEK_BACKEND", "ffmpeg")
    with pytest.raises(UnknownBackendError, match="REELSEEK_BACKEND"):
        reelseek.open_video(corpus.clip_path("b_frames.mp4"))


def test_backend_asked_for_is_not_replaced() -> None:
    needs("decord")
    with pytest.raises(UnsupportedVideoError) as caught:
        reelseek.open_video(corpus.clip_path("av1_g2.mp4"), backend="decord")
    assert caught.value.backend == "decord"


@pytest.mark.parametrize(
    ("backend", "package", "command"),
    [
        ("decord", "decord", "pip install decord"),
        ("opencv", "cv2", "pip install opencv-python-headless"),
        ("torchvision", "torchvision", "backend='torchcodec'"),
        ("torchcodec", "torchcodec.decoders", "backend='pyav'"),
    ],
)
def test_backend_that_is_not_installed_says_how_to_install_it(
    backend: str, package: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BackendUnavailableError) as caught:
        reelseek.open_video(corpus.clip_path("b_frames.mp4"), backend=backend)
    assert command in caught.value.remedy
    assert caught.value.backend == backend


@pytest.mark.parametrize("backend", ["auto", *reelseek.backend_names()])
def test_no_gpu_is_said(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("torch")
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises((DeviceUnavailableError, BackendUnavailableError)) as caught:
        reelseek.open_video(corpus.clip_path("b_frames.mp4"), backend=backend, device="cuda")
    assert caught.value.remedy


def test_a_gpu_is_torchcodecs_to_refuse_or_use(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("torchcodec")
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceUnavailableError) as caught:
        reelseek.open_video(corpus.clip_path("b_frames.mp4"), device="cuda")
    assert caught.value.backend == "torchcodec"


def test_unknown_device_is_refused() -> None:
    needs("torchcodec")
    with pytest.raises(DeviceUnavailableError, match="tpu"):
        reelseek.open_video(corpus.clip_path("b_frames.mp4"), device="tpu")


def test_negative_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="threads=-1"):
        reelseek.open_video(corpus.clip_path("b_frames.mp4"), threads=-1)


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("backend", ["indexed", "pyav", "torchcodec"])
def test_threads_change_no_frame(backend: str, threads: int) -> None:
    if backend == "torchcodec":
        needs("torchcodec")
    path = corpus.clip_path("b_pyramid_8.mp4")
    with reelseek.open_video(path, backend=backend, threads=threads) as video:
        for frame in (100, 3, 59, 60, 119):
            assert corpus.number_shown(video[frame].numpy()) == frame


def test_info_says_what_the_file_is() -> None:
    with reelseek.open_video(corpus.clip_path("ntsc.mp4"), backend="pyav") as video:
        info = video.info
    assert info.path == str(corpus.clip_path("ntsc.mp4"))
    assert (info.codec, info.width, info.height, info.num_frames) == ("h264", 320, 64, 300)
    assert info.stream.average_fps == Fraction(30000, 1001)
    assert info.stream.pixel_format == "yuv420p"
    assert info.stream.num_frames_from_header == 300
    assert info.duration_seconds == pytest.approx(300 * 1001 / 30000)
    assert info.key_frames[0] == 0
    assert info.notes == ()


def test_info_gives_the_size_as_displayed() -> None:
    with reelseek.open_video(corpus.clip_path("rotated.mp4"), backend="pyav") as video:
        assert (video.info.width, video.info.height) == (64, 320)
        assert video.info.stream.orientation.swaps_axes


def test_info_notes_that_the_file_is_cut_short() -> None:
    with reelseek.open_video(corpus.clip_path("cut_moov_in_front.mp4")) as video:
        assert "cut short" in video.info.notes[0]
        assert "of 120" in video.info.notes[0]


def test_repr_names_the_file_and_the_backend() -> None:
    with reelseek.open_video(corpus.clip_path("b_frames.mp4"), backend="pyav") as video:
        assert "120 frames, 320x64 h264, backend='pyav'" in repr(video)


@pytest.mark.parametrize("container", ["mp4", "mkv"])
def test_size_of_the_container_cuts_h264_as_ffmpeg_does(container: str, tmp_path: Path) -> None:
    data = corpus.clip_path("b_frames.mp4").read_bytes()
    path = tmp_path / "cut.mp4"
    path.write_bytes(surgery.with_size_in_container(data, b"avc1", 318, 60))
    if container == "mkv":
        corpus.ffmpeg("-i", path, "-c", "copy", tmp_path / "cut.mkv")
        path = tmp_path / "cut.mkv"
    right = oracle.decode(str(path))
    assert right.frames[7].shape == (60, 318, 3)
    for backend in ("auto", "pyav"):
        with reelseek.open_video(path, backend=backend) as video:
            assert np.array_equal(video[7].numpy(), right.frames[7])
    with pytest.raises(UnsupportedVideoError, match="colours or size"):
        reelseek.open_video(path, backend="indexed")
