"""Choosing cameras and episodes, and what a dataset says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.datasets import _episode_videos
from reelseek.errors import DatasetFormatError, DatasetNotFoundError, FeatureNotFoundError
from tests.datasets.makers import SPEC, TASKS, TOP, WRIST, numbers, shown, v2_data, v2_video

CAMERAS = "observation.images.*"


@pytest.mark.parametrize(
    ("cameras", "chosen"),
    [
        (None, {TOP, WRIST}),
        ([TOP], {TOP}),
        (WRIST, {WRIST}),
        ([CAMERAS], {TOP, WRIST}),
        (["*wrist", TOP, CAMERAS], {TOP, WRIST}),
        ((), set()),
    ],
)
def test_cameras_are_chosen_by_name_or_pattern(
    roots: dict[str, Path], cameras: Any, chosen: set[str]
) -> None:
    for kind in ("v2.1", "v3.0", "images"):
        ds = reelseek.open_dataset(roots[kind], cameras=cameras)
        assert set(ds.cameras) == chosen
        sample = ds[8]
        assert {key for key in sample if key.startswith("observation.images")} == chosen
        assert all(numbers(sample[camera]) == shown(camera, 8) for camera in chosen)


def test_cameras_come_in_the_order_asked_for(roots: dict[str, Path]) -> None:
    ds = reelseek.open_dataset(roots["v3.0"], cameras=[WRIST, TOP])
    assert ds.cameras == (WRIST, TOP)


def test_without_cameras_no_video_is_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> Any:
        raise AssertionError("a video was opened")

    monkeypatch.setattr(_episode_videos, "_open", refuse)
    ds = reelseek.open_dataset(root, cameras=(), delta_indices={CAMERAS: [0, 1], "action": [0, 1]})
    assert [int(ds[index]["index"]) for index in range(len(ds))] == list(range(len(ds)))
    assert not any("images" in key for key in ds.get_batch([0, 9]))


def test_without_cameras_no_video_needs_to_be_there(v21: Path) -> None:
    for camera in (TOP, WRIST):
        for episode in range(4):
            v2_video(v21, camera, episode).unlink()
    assert reelseek.open_dataset(v21, cameras=())[3]["index"] == 3


def test_a_camera_left_out_may_be_damaged(v21: Path) -> None:
    v2_video(v21, TOP, 0).write_bytes(b"")
    assert numbers(reelseek.open_dataset(v21, cameras=[WRIST])[3][WRIST]) == shown(WRIST, 3)


@pytest.mark.parametrize("cameras", [["top"], [TOP, "observation.images.none"], ["*.rear"]])
def test_no_such_camera_lists_those_there_are(root: Path, cameras: list[str]) -> None:
    with pytest.raises(FeatureNotFoundError, match=TOP) as caught:
        reelseek.open_dataset(root, cameras=cameras)
    assert caught.value.path == str(root)


@pytest.mark.parametrize("deltas", ["delta_indices", "delta_timestamps"])
def test_no_such_feature_lists_those_there_are(root: Path, deltas: str) -> None:
    with pytest.raises(FeatureNotFoundError, match=r"no feature 'actoin'.*action, "):
        options: dict[str, Any] = {deltas: {"actoin": [0]}}
        reelseek.open_dataset(root, **options)


# Episodes


@pytest.mark.parametrize("chosen", [[2], [0, 3], [3, 1, 0], range(1, 3), np.array([1])])
def test_episodes_are_read_in_the_order_asked_for(root: Path, chosen: Any) -> None:
    ds = reelseek.open_dataset(root, episodes=chosen, delta_indices={TOP: [-1, 0, 2]})
    rows = [
        row for episode in chosen for row in range(SPEC.starts[episode], SPEC.starts[episode + 1])
    ]
    assert len(ds) == len(rows)
    assert [int(ds[index]["index"]) for index in range(len(ds))] == rows
    assert [numbers(ds[index][TOP])[1] for index in range(len(ds))] == rows
    assert ds[0][f"{TOP}_is_pad"].tolist() == [True, False, False]
    assert [episode.index for episode in ds.episodes] == list(chosen)


def test_no_episode_is_a_dataset_without_samples(root: Path) -> None:
    ds = reelseek.open_dataset(root, episodes=[])
    assert len(ds) == 0
    assert len(ds.episodes) == 0
    with pytest.raises(IndexError, match=r"no sample 0"):
        ds[0]


@pytest.mark.parametrize("chosen", [[4], [0, -1], [1, 2**70]])
def test_no_such_episode_says_which_there_are(root: Path, chosen: list[int]) -> None:
    with pytest.raises(FeatureNotFoundError, match=r"The 4 episodes are numbered 0 to 3"):
        reelseek.open_dataset(root, episodes=chosen)


def test_an_episode_is_named_once(root: Path) -> None:
    with pytest.raises(DatasetFormatError, match=r"names episode 2 twice"):
        reelseek.open_dataset(root, episodes=[2, 1, 2])


def test_only_the_files_of_chosen_episodes_need_to_be_there(v21: Path) -> None:
    for episode in (0, 1, 3):
        v2_data(v21, episode).unlink()
        for camera in (TOP, WRIST):
            v2_video(v21, camera, episode).unlink()
    ds = reelseek.open_dataset(v21, episodes=[2])
    assert numbers(ds[4][WRIST]) == shown(WRIST, SPEC.starts[2] + 4)


def test_video_that_no_camera_has_is_missing(v21: Path) -> None:
    for camera in (TOP, WRIST):
        for episode in range(4):
            v2_video(v21, camera, episode).unlink()
    with pytest.raises(
        DatasetNotFoundError, match=r"no video of .*episode_000000.mp4.*cameras=\(\)"
    ):
        reelseek.open_dataset(v21)


# What a dataset says


def test_episodes_have_numbers_lengths_starts_and_tasks(root: Path) -> None:
    episodes = reelseek.open_dataset(root).episodes
    assert [episode.index for episode in episodes] == [0, 1, 2, 3]
    assert [episode.length for episode in episodes] == list(SPEC.lengths)
    assert [episode.start for episode in episodes] == SPEC.starts[:-1]
    assert [episode.tasks[0] for episode in episodes] == [TASKS[n % 2] for n in range(4)]
    assert episodes[-1].index == 3
    assert repr(episodes) == "Episodes(4 episodes, 25 frames)"


def test_features_are_what_info_lists(root: Path) -> None:
    features = reelseek.open_dataset(root).features
    assert features[TOP].is_camera
    assert features[TOP].shape == (64, 320, 3)
    assert features[TOP].info["video.fps"] == SPEC.fps
    assert features["action"].shape == (2,)


def test_fps_is_a_float(root: Path) -> None:
    fps = reelseek.open_dataset(root).fps
    assert isinstance(fps, float)
    assert fps == SPEC.fps


def test_tasks_are_texts_by_number(root: Path) -> None:
    ds = reelseek.open_dataset(root)
    assert [ds.tasks[n] for n in range(2)] == list(TASKS)
    assert [ds[SPEC.starts[e]]["task"] for e in range(4)] == [TASKS[e % 2] for e in range(4)]


def test_task_text_may_hold_any_separator_of_lines(v21: Path) -> None:
    text = "stack\u2028the\x85cups"
    (v21 / "meta/tasks.jsonl").write_text(
        f'{{"task_index": 0, "task": "{text}"}}\n{{"task_index": 1, "task": "x"}}\n', "utf-8"
    )
    assert reelseek.open_dataset(v21)[0]["task"] == text
