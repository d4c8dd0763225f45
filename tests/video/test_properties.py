"""Random reads, and videos encoded at random, against FFmpeg's sequential decode."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reelseek
from reelseek.errors import UnsupportedVideoError
from tests import corpus, oracle
from tests.patience import PATIENCE

CLIPS = (
    "b_frames.mp4",
    "trimmed.mp4",
    "hevc_open_gop.mp4",
    "av1_g20.mp4",
    "vp9.webm",
    "dropped.mp4",
)
PACKAGES = {"pyav": "av", "torchcodec": "torchcodec", "decord": "decord", "opencv": "cv2"}
BACKENDS = [name for name, package in PACKAGES.items() if importlib.util.find_spec(package)]
IN_CI = bool(os.environ.get("CI"))

GOP = st.sampled_from([1, 2, 5, 12, 48])
X264 = st.builds(
    "-c:v libx264 -g {} -bf {} -x264-params b-pyramid={}:open-gop={}:b-adapt=0:weightp={}".format,
    GOP, st.integers(0, 6), st.sampled_from(["none", "strict", "normal"]), st.integers(0, 1),
    st.integers(0, 2),
)  # fmt: skip
X265 = st.builds(
    "-c:v libx265 -x265-params "
    "log-level=error:keyint={}:bframes={}:b-pyramid={}:open-gop={}".format,
    GOP, st.integers(0, 5), st.integers(0, 1), st.integers(0, 1),
)  # fmt: skip
SVT_AV1 = st.builds(
    "-c:v libsvtav1 -svtav1-params lp=1 -preset {} -g {}".format, st.sampled_from([8, 12]), GOP
)
VP9 = st.builds(
    "-c:v libvpx-vp9 -cpu-used 8 -g {} -deadline {} -lag-in-frames {}".format,
    GOP, st.sampled_from(["good", "realtime"]), st.sampled_from([0, 12]),
)  # fmt: skip
MPEG4 = st.builds("-c:v mpeg4 -g {} -bf {}".format, GOP, st.integers(0, 3))
ENCODERS = st.one_of(X264, X265, SVT_AV1, VP9, MPEG4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("clip", CLIPS)
@settings(max_examples=8, deadline=None, derandomize=IN_CI)
@given(data=st.data())
def test_any_sequence_of_reads_gives_what_ffmpeg_displays(
    backend: str, clip: str, data: st.DataObject
) -> None:
    expected = oracle.clip(clip).frames
    reads = data.draw(
        st.lists(st.lists(st.integers(0, len(expected) - 1), max_size=5), min_size=1, max_size=8)
    )
    try:
        video = reelseek.open_video(corpus.clip_path(clip), backend=backend)
    except UnsupportedVideoError:
        return
    with video:
        for frames in reads:
            pictures = video.get_frames_at(frames).numpy()
            for frame, picture in zip(frames, pictures, strict=True):
                assert np.array_equal(picture, expected[frame])


@pytest.mark.slow
@settings(
    max_examples=25, deadline=None, derandomize=IN_CI,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(
    encoder=ENCODERS, suffix=st.sampled_from(["mp4", "mkv"]), trim=st.sampled_from([0, 0.4, 1.1])
)
def test_videos_encoded_at_random_read_as_ffmpeg_displays(
    encoder: str, suffix: str, trim: float
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"encoded.{suffix}"
        corpus.ffmpeg("-f", "lavfi", "-i", corpus.bars(seconds=2), *encoder.split(), path)
        if trim:
            whole, path = path, path.with_name(f"trimmed.{suffix}")
            corpus.ffmpeg("-ss", str(trim), "-i", whole, "-c", "copy", path)
        displayed = oracle.decode(str(path))
        for backend in ("pyav", "torchcodec"):
            _assert_reads_as_displayed(path, backend, displayed)


def _assert_reads_as_displayed(path: Path, backend: str, displayed: oracle.Decoded) -> None:
    try:
        video = reelseek.open_video(path, backend=backend)
    except UnsupportedVideoError:
        assert backend != "pyav"
        return
    with video:
        assert len(video) == len(displayed.frames)
        for frame in np.random.default_rng(0).permutation(len(video)).tolist():
            assert np.array_equal(video[frame].numpy(), displayed.frames[frame])


def test_ffmpeg_program_has_the_encoders_that_are_drawn() -> None:
    listed = subprocess.run(
        [corpus.ffmpeg_program(), "-v", "quiet", "-encoders"],
        capture_output=True, text=True, check=True, timeout=PATIENCE,
    ).stdout  # fmt: skip
    for name in ("libx264", "libx265", "libsvtav1", "libvpx-vp9", "mpeg4"):
        assert name in listed
