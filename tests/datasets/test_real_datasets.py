"""Real datasets: every frame is the one that a plain decode of the file shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.reformatter import Interpolation, VideoReformatter
from numpy.typing import NDArray

import reelseek
from tests.conftest import needed

torch = needed("torch")

V21, V30 = "aloha3cam_v21_128", "aloha3cam_v30_128"
VARIANTS = ("av1_default", "av1_g20", "h264_default", "h264_g2", "hevc_default", "vp9_default")
DATASETS = (V21, V30, "aloha3cam_v30_480", "gr00t_picknplace",
            *(f"{V21}_{variant}" for variant in VARIANTS))  # fmt: skip
BATCH = 64


def batches(ds: Any) -> Iterator[dict[str, Any]]:
    return (
        ds.get_batch(range(start, min(start + BATCH, len(ds))))
        for start in range(0, len(ds), BATCH)
    )


def plain_decode(root: Path, camera: str) -> Iterator[NDArray[np.uint8]]:
    """A camera's frames in the order of the dataset's rows, decoded file by file by PyAV."""
    reformatter = VideoReformatter()
    for path in sorted([*root.glob(f"videos/*/{camera}/*"), *root.glob(f"videos/{camera}/*/*")]):
        with av.open(str(path)) as container:
            for frame in container.decode(video=0):
                rgb = reformatter.reformat(
                    frame, format="rgb24", interpolation=Interpolation.BICUBIC
                )
                yield np.asarray(rgb.to_ndarray(), np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("name", DATASETS)
def test_every_frame_is_the_one_that_a_plain_decode_shows(real_datasets: Path, name: str) -> None:
    ds = reelseek.open_dataset(real_datasets / name, output="numpy")
    plain = {camera: plain_decode(ds.root, camera) for camera in ds.cameras}
    assert plain
    for batch in batches(ds):
        for camera, frames in plain.items():
            for picture in batch[camera]:
                assert np.array_equal(np.moveaxis(picture, 0, -1), next(frames))
    assert all(next(frames, None) is None for frames in plain.values())


@pytest.mark.slow
def test_both_versions_of_a_dataset_hold_the_same_samples(real_datasets: Path) -> None:
    deltas = {"observation.images.*": [0, 16], "action": range(16)}
    old, new = (
        reelseek.open_dataset(real_datasets / name, delta_indices=deltas) for name in (V21, V30)
    )
    assert len(old) == len(new) == 2641
    for left, right in zip(batches(old), batches(new), strict=True):
        assert set(left) == set(right)
        for key, value in left.items():
            if isinstance(value, torch.Tensor):
                assert value.dtype == right[key].dtype
                assert torch.equal(value, right[key])
            else:
                assert value == right[key]


@pytest.mark.parametrize("name", DATASETS)
def test_samples_of_a_real_dataset_are_read(real_datasets: Path, name: str) -> None:
    ds = reelseek.open_dataset(
        real_datasets / name, delta_indices={"observation.images.*": [0, 16], "action": range(16)}
    )
    last = len(ds) - 1
    batch = ds.get_batch([0, last // 2, last])
    assert batch["index"].tolist() == [0, last // 2, last]
    assert batch["action"].shape[:2] == (3, 16)
    assert batch["action_is_pad"][2].tolist() == [False, *[True] * 15]
    for camera in ds.cameras:
        assert batch[camera].shape[:3] == (3, 2, 3)
        assert torch.equal(batch[camera][2, 0], batch[camera][2, 1])
    assert all(batch["task"])


def test_gr00t_sample_is_read_by_its_own_names(real_datasets: Path) -> None:
    ds = reelseek.open_dataset(
        real_datasets / "gr00t_picknplace", keys="gr00t", delta_indices={"action.*": range(16)}
    )
    sample = ds[500]
    assert sample["state.left_arm"].shape == (7,)
    assert sample["action.waist"].shape == (16, 3)
    assert sample["annotation.human.validity"] == "valid"
    assert sample["annotation.human.action.task_description"].startswith("pick the ")
    assert sample["video.ego_view"].shape == (3, 256, 256)
