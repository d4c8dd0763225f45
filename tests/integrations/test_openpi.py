"""openpi's data loader takes reelseek's dataset, and gets from it what LeRobot's gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from reelseek.errors import DatasetNotFoundError, DependencyError, SampleIndexError
from reelseek.integrations import openpi as drop_in
from reelseek.sample import sample_dataset
from tests.conftest import needed
from tests.datasets.makers import TOP, make_v30

torch = needed("torch")


@dataclass(frozen=True)
class Config:
    """The part of openpi's DataConfig that counts."""

    repo_id: str | None
    action_sequence_keys: tuple[str, ...] = ("action",)
    prompt_from_task: bool = True


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    drop_in.disable()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """LeRobot's folder, with the sample dataset in it as ``lab/aloha``."""
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/aloha").symlink_to(sample_dataset())
    monkeypatch.setenv("HF_LEROBOT_HOME", str(tmp_path))
    return tmp_path


def test_samples_are_lerobots(lerobot: Any, tmp_path: Path, openpi_loader: ModuleType) -> None:
    root = make_v30(tmp_path / "v30")
    theirs = lerobot.datasets.LeRobotDataset(
        "local/dataset", root=root, video_backend="torchcodec",
        delta_timestamps={"action": [step / 10 for step in range(4)]},
    )  # fmt: skip
    options: dict[str, Any] = {"action_horizon": 4, "action_sequence_keys": ["action"]}
    raw = drop_in.open_dataset(root, **options)
    floats = drop_in.open_dataset(root, **options, images="float32")
    assert len(raw) == len(theirs)
    for index in range(len(raw)):
        expected = {key: np.asarray(value) for key, value in theirs[index].items()}
        sample = floats[np.int64(index)]
        assert set(sample) == set(expected)
        for key, value in expected.items():
            assert np.asarray(sample[key]).dtype == value.dtype, key
            assert np.array_equal(sample[key], value), key
        pictures = openpi_loader.policy_inputs(raw[index])
        assert all(
            np.array_equal(picture, pictures[key])
            for key, picture in openpi_loader.policy_inputs(expected).items()
        )


def test_policy_gets_pictures_with_channels_last(openpi_loader: ModuleType) -> None:
    dataset = drop_in.open_dataset(
        sample_dataset(), action_horizon=50, action_sequence_keys=["action"], prompt_from_task=True
    )
    sample = dataset[150]
    assert openpi_loader.policy_inputs(sample)["observation.images.top"].shape == (128, 128, 3)
    assert sample["action"].shape == (50, 14)
    assert sample["prompt"] == sample["task"] != ""
    assert dataset.dataset.cameras[0] in sample


def test_samples_end_where_the_dataset_ends() -> None:
    dataset = drop_in.open_dataset(
        sample_dataset(), action_horizon=2, action_sequence_keys=["action"], cameras=()
    )
    assert dataset[len(dataset) - 1]["action_is_pad"].tolist() == [False, True]
    with pytest.raises(SampleIndexError):  # an IndexError, which ends iteration
        dataset[len(dataset)]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_openpis_loader_reads_it_where_the_drop_in_is_on(
    openpi_loader: ModuleType, home: Path, num_workers: int
) -> None:
    own = openpi_loader.create_torch_dataset
    assert home.is_dir()
    with drop_in.enable():
        assert openpi_loader.create_torch_dataset is not own
        loader = openpi_loader.create_data_loader(
            Config("lab/aloha"), 50, [openpi_loader.policy_inputs], 4, num_workers
        )
    assert openpi_loader.create_torch_dataset is own
    batch = next(iter(loader))  # a dataset stays what it is
    assert batch["observation.images.top"].shape == (4, 128, 128, 3)
    assert (batch["action"].shape, batch["action"].dtype) == ((4, 50, 14), np.float32)
    assert batch["observation.state"].shape == (4, 14)


def test_made_up_data_stays_openpis(openpi_loader: ModuleType) -> None:
    with drop_in.enable():
        assert len(openpi_loader.create_torch_dataset(Config("fake"), 7, None)) == 1


def test_dataset_that_is_not_there_is_not_downloaded(openpi_loader: ModuleType, home: Path) -> None:
    with drop_in.enable():
        with pytest.raises(DatasetNotFoundError, match="HF_LEROBOT_HOME") as caught:
            openpi_loader.create_torch_dataset(Config("lab/other"), 7, None)
        with pytest.raises(ValueError, match="Repo ID is not set"):
            openpi_loader.create_torch_dataset(Config(None), 7, None)
    assert caught.value.path == str(home / "lab/other")


def test_root_takes_the_place_of_the_name(openpi_loader: ModuleType) -> None:
    with drop_in.enable(root=sample_dataset(), images="float32"):
        sample = openpi_loader.create_torch_dataset(Config("any/name"), 7, None)[0]
    assert sample["observation.images.top"].dtype == np.float32
    assert TOP in sample


def test_openpi_that_is_not_installed_is_said_to_be_missing() -> None:
    with pytest.raises(DependencyError, match="openpi isn't installed"):
        drop_in.enable()


def test_unknown_form_of_images_is_refused() -> None:
    with pytest.raises(ValueError, match="choose one of uint8, float32"):
        drop_in.open_dataset(sample_dataset(), action_horizon=1, images="float16")  # type: ignore[arg-type]


def test_folder_of_datasets_is_the_one_that_lerobot_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_LEROBOT_HOME", raising=False)
    monkeypatch.setenv("HF_HOME", "/data/hf")
    assert drop_in.lerobot_home() == Path("/data/hf/lerobot")
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/data/cache")
    assert drop_in.lerobot_home() == Path("/data/cache/huggingface/lerobot")
