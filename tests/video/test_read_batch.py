"""Batches whose numbers and times are looked up when somebody looks at them."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reelseek
from reelseek import Video
from reelseek.errors import IndexFileError
from reelseek.index import FrameTable, index_video
from reelseek.types import FrameBatch
from tests import corpus

CLIP = "b_frames.mp4"
NUM_FRAMES = 120
FIELDS = [field.name for field in dataclasses.fields(FrameBatch)]


@pytest.fixture(scope="module")
def video() -> Iterator[Video]:
    with reelseek.open_video(corpus.clip_path(CLIP)) as opened:
        yield opened


def _assert_is(batch: FrameBatch, frames: list[int]) -> None:
    """Its fields are those of these frames, made at once."""
    pts_seconds, duration_seconds = index_video(str(corpus.clip_path(CLIP))).times_at(frames)
    assert batch.indices.dtype == np.int64
    assert batch.indices.tolist() == frames
    np.testing.assert_array_equal(batch.pts_seconds, pts_seconds)
    np.testing.assert_array_equal(batch.duration_seconds, duration_seconds)
    assert [corpus.number_shown(frame) for frame in batch.numpy()] == frames


@given(st.lists(st.integers(-NUM_FRAMES, NUM_FRAMES - 1), max_size=5), st.permutations(FIELDS))
def test_fields_are_the_same_in_whatever_order_they_are_looked_at(
    video: Video, indices: list[int], order: list[str]
) -> None:
    batch = video.get_frames_at(indices)
    for name in order:
        assert getattr(batch, name) is getattr(batch, name)
    assert len(batch) == len(indices)
    _assert_is(batch, [index % NUM_FRAMES for index in indices])


def test_fields_stay_those_of_the_read_when_the_caller_changes_its_list(video: Video) -> None:
    asked = [7, 3]
    batch = video.get_frames_at(asked)
    asked[:] = [1, 1]
    _assert_is(batch, [7, 3])


def test_fields_are_there_when_the_video_is_closed() -> None:
    with reelseek.open_video(corpus.clip_path(CLIP)) as opened:
        batch = opened.get_frames_at([7, 3])
    _assert_is(batch, [7, 3])


def test_batch_whose_times_were_looked_at_keeps_no_table() -> None:
    with reelseek.open_video(corpus.clip_path(CLIP)) as opened:
        batch = opened.get_frames_at([7, 3])
        table = weakref.ref(opened.table)
    del opened
    assert table() is not None
    assert len(batch.pts_seconds) == 2
    gc.collect()
    assert table() is None
    _assert_is(batch, [7, 3])


def test_times_that_the_index_file_has_damaged_name_the_video(
    video: Video, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(_table: FrameTable, _frames: list[int]) -> None:
        raise IndexFileError("damaged")

    batch = video.get_frames_at([7])
    monkeypatch.setattr(FrameTable, "times_at", damaged)
    with pytest.raises(IndexFileError, match=f"{CLIP}: damaged"):
        batch.pts_seconds  # noqa: B018


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda batch: pickle.loads(pickle.dumps(batch)),
        lambda batch: dataclasses.replace(batch, pixels=batch.pixels.copy()),
        lambda batch: FrameBatch(**{name: getattr(batch, name) for name in FIELDS}),
    ],
    ids=["copy", "deepcopy", "pickle", "replace", "fields"],
)
def test_copies_are_plain_batches_of_the_same_frames(
    video: Video, copied: Callable[[FrameBatch], FrameBatch]
) -> None:
    other = copied(video.get_frames_at([7, 3]))
    assert type(other) is FrameBatch
    _assert_is(other, [7, 3])


def test_batch_of_a_read_can_not_be_changed_and_has_no_other_fields(video: Video) -> None:
    batch = video.get_frames_at([7])
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.indices = np.zeros(1, np.int64)  # type: ignore[misc]
    for name in ("other", "_frames"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(batch, name, [9])
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(batch, name)
    with pytest.raises(AttributeError, match="'FrameBatch' object has no attribute 'frames'"):
        batch.frames  # type: ignore[attr-defined]  # noqa: B018
    assert repr(batch) == "FrameBatch(indices=[7], shape=(1, 64, 320, 3))"
