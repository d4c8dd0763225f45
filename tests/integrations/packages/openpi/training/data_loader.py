"""Has the interface of openpi's module of this name, as far as a dataset meets it.

Written for these tests from openpi's ``Dataset`` protocol: a dataset is wrapped in transforms, and
read in spawned workers whose batches are stacked as NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np


class TransformedDataset:
    """A dataset whose samples pass through functions."""

    def __init__(self, dataset: Any, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self._dataset = dataset
        self._transforms = transforms

    def __getitem__(self, index: SupportsIndex) -> Any:
        sample = self._dataset[index]
        for transform in self._transforms:
            sample = transform(sample)
        return sample

    def __len__(self) -> int:
        return len(self._dataset)


def create_torch_dataset(data_config: Any, action_horizon: int, model_config: Any) -> Any:
    """The dataset that a config names."""
    if data_config.repo_id == "fake":
        return [{"actions": np.zeros((action_horizon, 32))}]
    raise FileNotFoundError("openpi would download it")


def create_data_loader(
    data_config: Any,
    action_horizon: int,
    transforms: Sequence[Callable[[Any], Any]],
    batch_size: int,
    num_workers: int,
) -> Any:
    """Batches of transformed samples, as openpi's TorchDataLoader makes them."""
    import torch.utils.data

    dataset = create_torch_dataset(data_config, action_horizon, None)
    return torch.utils.data.DataLoader(
        TransformedDataset(dataset, transforms),
        batch_size=batch_size,
        num_workers=num_workers,
        multiprocessing_context="spawn" if num_workers else None,
        collate_fn=collate,
        drop_last=True,
    )


def collate(samples: list[Any]) -> Any:
    """A batch of NumPy arrays; texts are left out, as openpi's are tokens by then."""
    keys = [key for key, value in samples[0].items() if not isinstance(value, str)]
    return {key: np.stack([np.asarray(sample[key]) for sample in samples]) for key in keys}


def policy_inputs(sample: Any) -> Any:
    """What openpi's policies make of a sample: pictures as uint8 with channels last."""
    return {key: picture(value) if "image" in key and "pad" not in key else value
            for key, value in sample.items()}  # fmt: skip


def picture(image: Any) -> Any:
    """A picture in openpi's own form."""
    image = np.asarray(image)
    if np.issubdtype(image.dtype, np.floating):
        image = (255 * image).astype(np.uint8)
    return np.moveaxis(image, 0, -1) if image.shape[0] == 3 else image
