"""The oracle against the ffmpeg program: another build of FFmpeg, another code around it."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from tests import corpus, oracle
from tests.patience import PATIENCE


def _by_the_program(name: str) -> bytes:
    command = [
        corpus.ffmpeg_program(), "-v", "error", "-i", str(corpus.clip_path(name)), "-an",
        "-fps_mode", "passthrough", "-sws_flags", "bicubic",
        "-f", "rawvideo", "-pix_fmt", "rgb24", "-",
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE).stdout


@pytest.mark.parametrize("name", oracle.whole_clips())
def test_ffmpeg_program_displays_the_same_frames(name: str) -> None:
    expected = oracle.clip(name).frames
    got = np.frombuffer(_by_the_program(name), np.uint8).reshape(-1, *expected[0].shape)
    assert len(got) == len(expected)
    assert np.array_equal(got, np.stack(expected))
