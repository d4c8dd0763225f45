"""GR00T's functions, and GR00T's own datasets with the drop-in on, give the frames asked for."""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.errors import DependencyError, FrameIndexError, TimestampToleranceError
from reelseek.integrations import gr00t as drop_in
from reelseek.sample import sample_dataset
from tests import oracle
from tests.conftest import needed, needs
from tests.corpus import clip_path, number_shown

SAMPLE = str(sample_dataset() / "videos/chunk-000/observation.images.top/episode_000000.mp4")
CLIP = "b_frames.mp4"
ASKED = [70, 3, 3, 86]


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    drop_in.disable()


def expected(numbers: Any) -> Any:
    return np.stack([oracle.clip(CLIP).frames[number] for number in numbers])


def clip_times() -> Any:
    return reelseek.open_video(clip_path(CLIP)).pts_seconds


@pytest.mark.parametrize("backend", ["decord", "torchcodec", "torchvision_av", "pyav", "ffmpeg"])
def test_every_backend_name_gives_the_frames_asked_for(backend: str) -> None:
    path = str(clip_path(CLIP))
    by_number = drop_in.get_frames_by_indices(path, ASKED, backend)
    by_time = drop_in.get_frames_by_timestamps(path, clip_times()[ASKED], backend)
    for frames in (by_number, by_time):
        assert np.array_equal(frames, expected(ASKED))
        assert frames.dtype == np.uint8
        assert frames.flags.c_contiguous
        assert frames.flags.writeable


def test_times_rounded_down_mean_the_frame_they_are_nearest_to() -> None:
    times = np.nextafter(clip_times()[ASKED].astype(np.float32), np.float32(0))
    frames = drop_in.get_frames_by_timestamps(str(clip_path(CLIP)), times, "torchcodec")
    assert np.array_equal(frames, expected(ASKED))


def test_opencv_keeps_its_order_of_colours() -> None:
    frames = drop_in.get_frames_by_indices(SAMPLE, [5], "opencv")
    assert np.array_equal(frames[..., ::-1], drop_in.get_frames_by_indices(SAMPLE, [5]))
    assert frames.flags.c_contiguous


def test_all_frames_and_their_times() -> None:
    path = str(clip_path(CLIP))
    frames, times = drop_in.get_all_frames_and_timestamps(path, "pyav")
    assert np.array_equal(frames, np.stack(oracle.clip(CLIP).frames))
    assert np.array_equal(frames, drop_in.get_all_frames(path))
    assert np.array_equal(times, clip_times())


def test_resized_frames_are_opencvs(gr00t_video: ModuleType) -> None:
    needs("cv2")
    path = str(clip_path(CLIP))
    own = gr00t_video.get_all_frames(path, "pyav", resize_size=(48, 24))
    ours = drop_in.get_all_frames(path, "pyav", resize_size=(48, 24))
    assert ours.shape == own.shape == (120, 24, 48, 3)
    assert np.array_equal(ours, own)


def test_what_cannot_be_had_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="betamax"):
        drop_in.get_frames_by_indices(SAMPLE, [0], "betamax")
    with pytest.raises(ValueError, match="width would change the frames"):
        drop_in.get_frames_by_indices(SAMPLE, [0], "decord", {"width": 64, "num_threads": 1})
    with pytest.raises(FrameIndexError, match="no frame 150"):
        drop_in.get_frames_by_indices(SAMPLE, [150])
    with pytest.raises(FileNotFoundError):
        drop_in.get_frames_by_indices(str(tmp_path / "none.mp4"), [0])


def test_functions_are_replaced_wherever_they_were_imported_to(gr00t_video: ModuleType) -> None:
    dataset = importlib.import_module("gr00t.data.dataset")
    own = gr00t_video.get_frames_by_timestamps
    drop_in.enable()
    assert dataset.get_frames_by_timestamps is gr00t_video.get_frames_by_timestamps is not own
    assert inspect.signature(gr00t_video.get_frames_by_timestamps) == inspect.signature(own)
    drop_in.disable()
    assert dataset.get_frames_by_timestamps is gr00t_video.get_frames_by_timestamps is own


def test_replaced_function_mends_the_loop_that_ignores_the_times(gr00t_video: ModuleType) -> None:
    path, times = str(clip_path(CLIP)), clip_times()[[70, 86]]
    wrong = gr00t_video.get_frames_by_timestamps(path, times, "torchvision_av")
    keys = reelseek.open_video(path).info.key_frames
    key = int(keys[keys <= 70][-1])
    assert [number_shown(frame) for frame in wrong] == [key, key + 1]
    with drop_in.enable():
        right = gr00t_video.get_frames_by_timestamps(path, times, "torchvision_av")
    assert np.array_equal(right, expected([70, 86]))


def test_replaced_functions_read_av1_where_decord_cannot(gr00t_video: ModuleType) -> None:
    needs("decord")
    with pytest.raises(Exception, match=r"(?s)."):
        gr00t_video.get_frames_by_indices(SAMPLE, [0, 16])
    with drop_in.enable():
        assert gr00t_video.get_frames_by_indices(SAMPLE, [0, 16]).shape == (2, 128, 128, 3)


def test_later_release_gets_its_own_results(gr00t_video: ModuleType) -> None:
    later = importlib.import_module("gr00t.utils.video_utils")
    with drop_in.enable():
        frames, times = later.get_all_frames(SAMPLE)  # with times since N1.6
        assert (frames.shape, times.shape) == ((150, 128, 128, 3), (150,))
        assert isinstance(gr00t_video.get_all_frames(SAMPLE, "pyav"), np.ndarray)


def test_tolerance_refuses_what_gr00t_would_take(gr00t_video: ModuleType) -> None:
    assert len(drop_in.get_frames_by_timestamps(SAMPLE, [99.0])) == 1  # the last frame, as GR00T
    with (
        drop_in.enable(tolerance_s=1e-4),
        pytest.raises(TimestampToleranceError, match="frame 149"),
    ):
        gr00t_video.get_frames_by_timestamps(SAMPLE, [99.0])


def test_gr00t_that_is_not_installed_is_said_to_be_missing() -> None:
    with pytest.raises(DependencyError, match="GR00T isn't installed"):
        drop_in.enable()


def test_unknown_arguments_of_another_release_are_refused(
    gr00t_video: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get_all_frames(video_path: str, cache: bool = False) -> None: ...

    monkeypatch.setattr(gr00t_video, "get_all_frames", get_all_frames)
    with pytest.raises(DependencyError, match="takes cache, which isn't known here"):
        drop_in.enable()


def on_and_frames(items: list[Any]) -> tuple[bool, Any]:
    return drop_in.is_enabled(), np.stack(items)


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_workers_of_gr00ts_dataset_have_it_too(gr00t_video: ModuleType, start_method: str) -> None:
    loader_class = needed("torch.utils.data").DataLoader
    module = importlib.import_module("gr00t.data.dataset")
    assert gr00t_video is not None
    dataset = module.LeRobotSingleDataset(SAMPLE, 1 / 30, "torchvision_av")
    with drop_in.enable():
        loader = loader_class(
            dataset, batch_size=10, num_workers=1, collate_fn=on_and_frames,
            multiprocessing_context=start_method,
        )  # fmt: skip
        batches = list(loader)
    assert [on for on, _ in batches] == [True, True]
    frames = np.concatenate([frames for _, frames in batches])
    every = drop_in.get_all_frames(SAMPLE)
    assert np.array_equal(frames, np.stack([every[[n, n + 16]] for n in range(20)]))


def test_real_gr00t_videos_give_what_decord_gives(
    gr00t_video: ModuleType, real_datasets: Path
) -> None:
    needs("decord")
    path = str(next((real_datasets / "gr00t_picknplace").glob("videos/*/*/*.mp4")))
    times = reelseek.open_video(path).pts_seconds
    numbers = random.Random(4).sample(range(len(times)), 12)
    own = gr00t_video.get_frames_by_timestamps(path, times[numbers])
    with drop_in.enable():
        ours = gr00t_video.get_frames_by_timestamps(path, times[numbers])
    assert own.shape == ours.shape
    assert np.abs(own.astype(int) - ours).max() <= 2  # decord's colours are its own FFmpeg's
