"""The indexed engine on every way in which encoders let frames refer to each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import reelseek
from reelseek.errors import UnsupportedVideoError
from reelseek.index import index_video
from reelseek.index._unit_build import build_units
from reelseek.index._units import Pruning, UnitTable
from tests import corpus, oracle
from tests.figures import compared, refused
from tests.structures import STRUCTURES

BY_NAME = {clip.name: clip for clip in STRUCTURES}
REFUSES = {
    "x265_five_layers.mp4": "start of the file",  # its times are in another order than its frames
}
READ = sorted(set(BY_NAME) - set(REFUSES))
BY_SLOTS = [clip.name for clip in STRUCTURES if clip.name.startswith(("aom", "svt", "rav1e"))]
BY_PICTURES = ["x264_two_pyramid.mp4", "x264_pyramid.mkv", "x265_pyramid.mp4",
               "x265_three_layers.mp4", "x265_no_pyramid.mp4"]  # fmt: skip


def _path(name: str) -> Path:
    return corpus.made(BY_NAME[name], corpus.corpus_folder())


@lru_cache(maxsize=8)
def _displayed(name: str) -> oracle.Decoded:
    return oracle.decode(str(_path(name)))


def _units(name: str) -> UnitTable:
    path = str(_path(name))
    units = build_units(path, index_video(path))
    assert isinstance(units, UnitTable)
    return units


def _assert_equal(video: reelseek.Video, name: str, frames: Sequence[int]) -> None:
    expected = _displayed(name).frames
    pictures = video.get_frames_at(frames).numpy()
    wrong = [
        frame
        for frame, picture in zip(frames, pictures, strict=True)
        if not np.array_equal(picture, expected[frame])
    ]
    assert not wrong
    compared["indexed"] += len(frames)


@pytest.mark.parametrize("name", READ)
def test_every_frame_is_the_one_that_ffmpeg_displays(name: str) -> None:
    with reelseek.open_video(_path(name), backend="indexed") as video:
        count = len(video)
        assert count == len(_displayed(name).frames)
        assert tuple(video.table.pts.tolist()) == _displayed(name).pts
        order: list[int] = np.random.default_rng(count).permutation(count).tolist()
        for frame in order:
            _assert_equal(video, name, [frame])
        for frame in reversed(range(count)):
            _assert_equal(video, name, [frame])
        for step in (1, 2, 7):
            for frame in range(0, count, step):
                _assert_equal(video, name, [frame])
        for frame in order:
            _assert_equal(video, name, [frame, min(frame + 16, count - 1)])
        _assert_equal(video, name, [*order, 0, count - 1])


@pytest.mark.parametrize("name", sorted(REFUSES))
def test_clip_is_refused_with_its_reason(name: str) -> None:
    with pytest.raises(UnsupportedVideoError, match=REFUSES[name]):
        reelseek.open_video(_path(name), backend="indexed")
    refused["indexed"] += 1


@pytest.mark.parametrize("name", sorted(REFUSES))
def test_clip_that_is_refused_is_read_by_another_backend(name: str) -> None:
    expected = _displayed(name).frames
    with reelseek.open_video(_path(name)) as video:
        for frame in np.random.default_rng(0).permutation(len(video))[:20].tolist():
            assert np.array_equal(video[frame].numpy(), expected[frame])


@pytest.mark.parametrize("name", BY_SLOTS)
def test_av1_is_pruned_to_the_references(name: str) -> None:
    assert _units(name).pruning is Pruning.SLOTS


@pytest.mark.parametrize("name", BY_PICTURES)
def test_pictures_that_nothing_refers_to_are_left_out(name: str) -> None:
    assert _units(name).pruning is Pruning.DROPPABLE


@pytest.mark.parametrize("name", ["vp9_layers.webm", "vp8_layers.webm", "x264_fields.mp4"])
def test_what_cannot_be_pruned_is_decoded_from_its_key_frame(name: str) -> None:
    assert _units(name).pruning is Pruning.NONE
