"""Samples equal real LeRobot's, key by key and bit by bit, at every index."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reelseek
from reelseek.bench._torchvision_loading import let_torchvision_load
from reelseek.native import activate
from tests.conftest import needed, skip_without
from tests.datasets.makers import SPEC, TOP, make_v30

torch = needed("torch")


@pytest.fixture(scope="module")
def lerobot_class(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """LeRobot's dataset class, imported so that it works beside a torch without CUDA."""
    if importlib.util.find_spec("lerobot") is None:
        skip_without("lerobot", "LeRobot isn't installed")
    let_torchvision_load()
    activate()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("huggingface")))
        warnings.simplefilter("ignore")  # of LeRobot's dependencies, while they are imported
        from lerobot.datasets.lerobot_dataset import LeRobotDataset

        yield LeRobotDataset


def compare(
    lerobot_class: Any, root: Path, offsets: dict[str, list[int]], rows: slice = slice(None)
) -> int:
    """Compare every sample of these rows; the number of values compared."""
    ours = reelseek.open_dataset(root, delta_indices=offsets)
    seconds = {key: [n / ours.fps for n in steps] for key, steps in offsets.items()}
    theirs = lerobot_class(
        "local/dataset", root=root, delta_timestamps=seconds, video_backend="torchcodec"
    )
    assert len(ours) == len(theirs)
    compared = 0
    for index in range(*rows.indices(len(ours))):
        left, right = ours[index], theirs[index]
        assert set(left) == set(right)
        for key, value in right.items():
            assert_equal(left[key], value, key in ours.cameras)
        compared += len(right)
    return compared


def assert_equal(ours: Any, theirs: Any, is_camera: bool) -> None:
    if not isinstance(theirs, torch.Tensor):
        assert ours == theirs
        return
    if is_camera and theirs.ndim == 3 < ours.ndim:
        ours = ours.squeeze(0)  # LeRobot drops T from videos, and only from them, where it is 1
    assert ours.shape == theirs.shape
    if is_camera:
        assert (ours.dtype, theirs.dtype) == (torch.uint8, torch.float32)
        ours = ours.to(torch.float32) / 255
    assert ours.dtype == theirs.dtype
    assert torch.equal(ours, theirs)


def cameras_of(root: Path) -> list[str]:
    return list(reelseek.open_dataset(root).cameras)


@pytest.mark.parametrize("offsets", [[0, 5], [0], [-2, 0, 1]])
def test_tiny_dataset_equals_lerobots(
    lerobot_class: Any, tmp_path: Path, offsets: list[int]
) -> None:
    root = make_v30(tmp_path / "v30")
    deltas = dict.fromkeys(cameras_of(root), offsets) | {"action": list(range(4))}
    assert compare(lerobot_class, root, deltas) == sum(SPEC.lengths) * 15


def test_tiny_dataset_without_deltas_equals_lerobots(lerobot_class: Any, tmp_path: Path) -> None:
    root = make_v30(tmp_path / "v30")
    assert TOP in cameras_of(root)
    assert compare(lerobot_class, root, {}) == sum(SPEC.lengths) * 12


REAL_ROWS = 2641
STEP = 32


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 5])
def test_samples_of_a_real_dataset_equal_lerobots(
    lerobot_class: Any, real_datasets: Path, start: int
) -> None:
    root = real_datasets / "aloha3cam_v30_128"
    deltas = {camera: [0, 16] for camera in cameras_of(root)} | {"action": list(range(16))}
    compared = compare(lerobot_class, root, deltas, slice(start, None, STEP))
    assert compared == len(range(start, REAL_ROWS, STEP)) * 17
