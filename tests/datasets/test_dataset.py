"""Samples: which frames and rows they hold, at every index of every kind of dataset."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reelseek
from reelseek.datasets import Dataset
from reelseek.errors import FeatureNotFoundError, SampleIndexError, UnknownBackendError
from tests.conftest import needed
from tests.datasets.conftest import need_backend
from tests.datasets.makers import (
    HEIGHT,
    SPEC,
    TASKS,
    TOP,
    WIDTH,
    WRIST,
    numbers,
    shown,
)
from tests.patience import PATIENCE

torch = needed("torch")

NUM_ROWS = sum(SPEC.lengths)
CAMERAS = "observation.images.*"
OFFSETS = [-3, -1, 0, 2, 8, 16]


def episode_of(index: int) -> int:
    return int(np.searchsorted(SPEC.starts, index, side="right")) - 1


def window(index: int, offsets: list[int]) -> tuple[list[int], list[bool]]:
    """The rows that a sample holds, and which stand in for missing ones: the plain way."""
    episode = episode_of(index)
    first, end = SPEC.starts[episode], SPEC.starts[episode + 1]
    rows, is_pad = [], []
    for offset in offsets:
        row = index + offset
        is_pad.append(row < first or row >= end)
        rows.append(min(max(row, first), end - 1))
    return rows, is_pad


def assert_equal(left: Any, right: Any) -> None:
    assert type(left) is type(right)
    if isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype
        assert torch.equal(left, right)
    else:
        assert left == right


def assert_same_sample(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert list(left) == list(right)
    for key, value in left.items():
        assert_equal(value, right[key])


# Which frames and rows


def test_every_sample_holds_its_own_frames(root: Path) -> None:
    ds = reelseek.open_dataset(root)
    assert len(ds) == NUM_ROWS
    for index in range(NUM_ROWS):
        sample = ds[index]
        assert sample["index"] == index
        for camera in ds.cameras:
            assert numbers(sample[camera]) == shown(camera, index)


def test_offsets_take_frames_of_the_same_episode_only(root: Path) -> None:
    ds = reelseek.open_dataset(root, delta_indices={CAMERAS: OFFSETS, "action": OFFSETS})
    for index in range(NUM_ROWS):
        sample = ds[index]
        rows, is_pad = window(index, OFFSETS)
        assert sample["action"][:, 1].tolist() == [-row for row in rows]
        assert sample["action_is_pad"].tolist() == is_pad
        for camera in ds.cameras:
            assert numbers(sample[camera]) == [shown(camera, row) for row in rows]
            assert sample[f"{camera}_is_pad"].tolist() == is_pad


def test_samples_are_the_same_whatever_was_read_before(root: Path) -> None:
    ds = reelseek.open_dataset(root, delta_indices={CAMERAS: [0, 3]})
    in_order = [ds[index] for index in range(NUM_ROWS)]
    for index in np.random.default_rng(1).permutation(NUM_ROWS):
        assert_same_sample(ds[int(index)], in_order[index])


@pytest.mark.parametrize("backend", ["indexed", "torchcodec", "pyav", "decord", "opencv"])
def test_every_backend_gives_the_same_frames(roots: dict[str, Path], backend: str) -> None:
    need_backend(backend)
    ds = reelseek.open_dataset(roots["v3.0"], backend=backend, delta_indices={CAMERAS: [0, 4]})
    for index in range(0, NUM_ROWS, 3):
        rows, _is_pad = window(index, [0, 4])
        for camera in ds.cameras:
            assert numbers(ds[index][camera]) == [shown(camera, row) for row in rows]


def test_av1_frames_are_found_too(tmp_path: Path) -> None:
    from tests.datasets.makers import Spec, make_v30

    spec = Spec(lengths=(4, 3), cameras=(TOP,), codec="libsvtav1")
    root = make_v30(tmp_path, spec, data_files=[[0, 1]], video_files=[[0, 1]], meta_files=[[0, 1]])
    ds = reelseek.open_dataset(root)
    assert [numbers(ds[index][TOP]) for index in range(7)] == list(range(7))


# delta_timestamps


def test_delta_timestamps_are_delta_indices_in_seconds(root: Path) -> None:
    by_time = reelseek.open_dataset(
        root, delta_timestamps={CAMERAS: [-0.2, 0, 0.3], "action": [i / 10 for i in range(4)]}
    )
    by_frame = reelseek.open_dataset(root, delta_indices={CAMERAS: [-2, 0, 3], "action": range(4)})
    for index in (0, 6, 7, 24):
        assert_same_sample(by_time[index], by_frame[index])


def test_pattern_fits_several_keys(root: Path) -> None:
    ds = reelseek.open_dataset(root, delta_indices={CAMERAS: [0, 1], "a[c]tion": [0, 1, 2]})
    assert ds.offsets_of("action") == (0, 1, 2)
    assert all(ds.offsets_of(camera) == (0, 1) for camera in ds.cameras)
    assert ds.offsets_of("observation.state") == (0,)


def test_every_key_can_have_deltas(root: Path) -> None:
    ds = reelseek.open_dataset(root, delta_indices={"*": [0, 1]})
    sample = ds[SPEC.starts[1] - 1]
    assert sample["task"] == [TASKS[0]] * 2
    assert sample["index"].tolist() == [SPEC.starts[1] - 1] * 2
    assert all(sample[f"{key}_is_pad"].tolist() == [False, True] for key in ds.sample_keys.names)


# Types and shapes


def test_dtypes_and_shapes_are_lerobots(root: Path) -> None:
    ds = reelseek.open_dataset(root, delta_indices={CAMERAS: [0, 2], "action": range(5)})
    sample = ds[3]
    for camera in ds.cameras:
        assert sample[camera].shape == (2, 3, HEIGHT, WIDTH)
        assert sample[camera].dtype == torch.uint8
        assert sample[f"{camera}_is_pad"].dtype == torch.bool
    facts = {key: (tuple(sample[key].shape), sample[key].dtype) for key in (
        "observation.state", "action", "next.reward", "next.done", "timestamp", "episode_index",
        "index", "task_index")}  # fmt: skip
    assert facts == {
        "observation.state": ((4,), torch.float32),
        "action": ((5, 2), torch.float32),
        "next.reward": ((), torch.float32),
        "next.done": ((), torch.bool),
        "timestamp": ((), torch.float32),
        "episode_index": ((), torch.int64),
        "index": ((), torch.int64),
        "task_index": ((), torch.int64),
    }
    assert sample["task"] == TASKS[0]


def test_keys_lists_what_a_sample_holds(root: Path) -> None:
    ds = reelseek.open_dataset(root, delta_indices={CAMERAS: [0, 2]})
    assert set(ds.keys) == set(ds[0])


def test_camera_without_deltas_has_no_time_dimension(root: Path) -> None:
    ds = reelseek.open_dataset(root)
    assert all(ds[0][camera].shape == (3, HEIGHT, WIDTH) for camera in ds.cameras)


def test_frames_are_views_of_contiguous_rows_of_pixels(root: Path) -> None:
    ds = reelseek.open_dataset(root, delta_indices={TOP: [0, 2]})
    assert ds[3][TOP].permute(0, 2, 3, 1).is_contiguous()
    assert ds.get_batch([3, 1])[TOP].permute(0, 1, 3, 4, 2).is_contiguous()


def test_numpy_output_holds_the_same_values(root: Path) -> None:
    deltas = {CAMERAS: [0, 2], "action": [0, 1]}
    tensors = reelseek.open_dataset(root, delta_indices=deltas)[5]
    arrays = reelseek.open_dataset(root, delta_indices=deltas, output="numpy")[5]
    assert list(arrays) == list(tensors)
    for key, value in arrays.items():
        if isinstance(value, str):
            assert value == tensors[key]
        else:
            assert isinstance(value, np.ndarray | np.generic)
            assert torch.equal(torch.from_numpy(np.asarray(value)), tensors[key])


def test_numpy_output_needs_no_torch(roots: dict[str, Path]) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import reelseek; "
        f"ds = reelseek.open_dataset({str(roots['v3.0'])!r}, output='numpy', "
        "delta_indices={'observation.images.*': [0, 1]}); "
        "print(ds[9]['observation.images.top'].shape, ds[9]['task'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stdout.strip() == f"(2, 3, {HEIGHT}, {WIDTH}) {TASKS[1]}", done.stderr


def test_tensors_without_torch_are_a_dependency_error(roots: dict[str, Path]) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import reelseek\n"
        f"ds = reelseek.open_dataset({str(roots['v3.0'])!r}, backend='pyav')\n"
        "try: ds[0]\n"
        "except reelseek.errors.DependencyError as exc: print(exc)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert "output='numpy'" in done.stdout, done.stderr


# Numbers of samples


def test_negative_index_counts_from_the_end(root: Path) -> None:
    ds = reelseek.open_dataset(root)
    assert ds[-1]["index"] == NUM_ROWS - 1
    assert ds[-NUM_ROWS]["index"] == 0


@pytest.mark.parametrize("index", [NUM_ROWS, -NUM_ROWS - 1, 10**30])
def test_index_out_of_range_is_an_index_error(root: Path, index: int) -> None:
    ds = reelseek.open_dataset(root)
    with pytest.raises(SampleIndexError, match=r"no sample .*The 25 samples are 0 to 24"):
        ds[index]


@pytest.mark.parametrize("kind", [np.int64, np.uint8, torch.tensor])
def test_any_whole_number_is_an_index(roots: dict[str, Path], kind: Callable[[int], Any]) -> None:
    assert reelseek.open_dataset(roots["v2.1"])[kind(8)]["index"] == 8


@pytest.mark.parametrize("index", [1.0, "1", None])
def test_other_things_are_no_index(roots: dict[str, Path], index: Any) -> None:
    with pytest.raises(TypeError):
        reelseek.open_dataset(roots["v2.1"])[index]


# Batches


@pytest.fixture(scope="module", params=["v2.1", "v3.0", "images"])
def with_deltas(request: pytest.FixtureRequest, roots: dict[str, Path]) -> Dataset:
    return reelseek.open_dataset(
        roots[request.param], delta_indices={CAMERAS: [-2, 0, 5], "action": range(3)}
    )


@settings(deadline=None, max_examples=30)
@given(indices=st.lists(st.integers(-NUM_ROWS, NUM_ROWS - 1), min_size=1, max_size=9))
def test_batch_equals_stacked_samples(with_deltas: Dataset, indices: list[int]) -> None:
    batch = with_deltas.get_batch(indices)
    samples = [with_deltas[index] for index in indices]
    assert list(batch) == list(samples[0])
    for key, values in batch.items():
        parts = [sample[key] for sample in samples]
        assert_equal(values, parts if key == "task" else torch.stack(parts))


@settings(deadline=None, max_examples=30)
@given(indices=st.lists(st.integers(-NUM_ROWS, NUM_ROWS - 1), max_size=5))
def test_getitems_equals_samples_one_by_one(with_deltas: Dataset, indices: list[int]) -> None:
    samples = with_deltas.__getitems__(indices)
    assert len(samples) == len(indices)
    for sample, index in zip(samples, indices, strict=True):
        assert_same_sample(sample, with_deltas[index])


def test_a_batch_needs_an_index(root: Path) -> None:
    with pytest.raises(ValueError, match=r"at least one"):
        reelseek.open_dataset(root).get_batch([])


# Places


def test_location_is_where_the_frames_are(root: Path) -> None:
    ds = reelseek.open_dataset(root)
    camera = next(camera for camera in ds.cameras if ds.features[camera].dtype == "video")
    for index in (0, 6, 7, 20, 24):
        place = ds.locate(index, camera, [-1, 0, 3])
        rows, _is_pad = window(index, [-1, 0, 3])
        with reelseek.open_video(place.path) as video:
            frames = video.get_frames_at(place.frames).torch()
            assert video.indices_nearest(place.seconds).tolist() == list(place.frames)
        assert numbers(frames) == [shown(camera, row) for row in rows]


def test_location_of_no_camera_lists_those_there_are(root: Path) -> None:
    with pytest.raises(FeatureNotFoundError, match=TOP):
        reelseek.open_dataset(root).locate(0, "observation.images.none")


def test_location_of_an_image_column_is_refused(roots: dict[str, Path]) -> None:
    with pytest.raises(FeatureNotFoundError, match="in parquet files"):
        reelseek.open_dataset(roots["images"]).locate(0, TOP)


def test_place_is_the_episode_and_the_row(root: Path) -> None:
    ds = reelseek.open_dataset(root)
    episode, row = ds.place_of(13)
    assert (episode.index, episode.start, row) == (2, 12, 1)


# Options


@pytest.mark.parametrize("option", [{"keys": "openpi"}, {"output": "jax"}])
def test_option_of_no_known_value_lists_the_known(
    roots: dict[str, Path], option: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="choose one of"):
        reelseek.open_dataset(roots["v2.1"], **option)


def test_unknown_backend_is_refused_at_once(roots: dict[str, Path]) -> None:
    with pytest.raises(UnknownBackendError, match=r"pyav"):
        reelseek.open_dataset(roots["v2.1"], backend="vhs")


def test_closed_dataset_opens_its_videos_again(root: Path) -> None:
    ds = reelseek.open_dataset(root)
    first = ds[0]
    ds.close()
    assert_same_sample(ds[0], first)


def test_repr_says_what_it_is(root: Path) -> None:
    text = repr(reelseek.open_dataset(root))
    assert "4 episodes, 25 samples" in text
    assert WRIST in text or TOP in text
