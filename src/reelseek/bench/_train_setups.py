"""What is compared in training: who reads the frames, and who makes the model's input of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.bench._readers import PLAIN, Reader, open_reader
from reelseek.bench._torchvision_loading import import_peer
from reelseek.datasets import open_dataset
from reelseek.errors import DecodeError, ReelseekError

if TYPE_CHECKING:
    from torch import Tensor

    from reelseek.datasets import Dataset
    from reelseek.datasets._records import Location

ACTION = "action"
"""The key that the model learns."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One way to feed the training."""

    name: str
    """In the table and on the command line."""
    reader: str
    """A backend of reelseek's, or a library's plain call."""
    processor: str
    """``reelseek`` or ``SiglipImageProcessor``."""
    usage: str
    """What it does, in short."""


SETUPS = {
    setup.name: setup
    for setup in (
        Setup("indexed", "indexed", "reelseek", "make_loader, preprocess.siglip"),
        Setup("torchcodec", "torchcodec", "reelseek", "make_loader, preprocess.siglip"),
        Setup("pyav", "pyav", "reelseek", "make_loader, preprocess.siglip"),
        Setup(
            "pyav (typical)",
            "pyav (typical)",
            "reelseek",
            "av.open in each call, sample by sample; preprocess.siglip",
        ),
        Setup(
            "torchcodec (report)",
            "torchcodec (exact)",
            "SiglipImageProcessor",
            "a VideoDecoder for each file kept, sample by sample; SiglipImageProcessor",
        ),
        Setup(
            "pyav (report)",
            "pyav (typical)",
            "SiglipImageProcessor",
            "av.open in each call, sample by sample; SiglipImageProcessor",
        ),
    )
}
"""By name; the last two are the report's, before and after it went to torchcodec."""


class PlainDataset:
    """Samples read with a library's plain call, as training code writes it.

    Where the frames are is worked out beforehand: the reads alone are compared.

    Pickling and fork: open files stay behind.
    """

    def __init__(
        self, reader: str, places: Mapping[int, Mapping[str, Location]], actions: Dataset
    ) -> None:
        self.reader = reader
        self.places = places
        self.actions = actions
        self._opened: dict[str, Reader] = {}

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> dict[str, Any]:
        import torch

        sample = self.actions[index]
        for camera, place in self.places[index].items():
            pixels = self._read(place)
            sample[camera] = torch.from_numpy(pixels).movedim(-1, -3)
        return sample

    def close(self) -> None:
        """Close what is open; the next read opens it again."""
        for reader in self._opened.values():
            reader.close()
        self._opened.clear()

    def _read(self, place: Location) -> Any:
        if place.path not in self._opened:
            seconds = np.zeros(max(place.frames) + 1)
            seconds[list(place.frames)] = place.seconds
            opened = open_reader(self.reader, place.path, seconds)
            if PLAIN[self.reader].backend == "pyav":
                return opened.read(place.frames)  # it keeps nothing open
            self._opened[place.path] = opened
        return self._opened[place.path].read(place.frames)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}


def read_plan(
    dataset: Dataset, samples: Sequence[int], horizon: int
) -> dict[int, dict[str, Location]]:
    """Where the frames of these samples are, for the plain calls."""
    return {
        sample: {camera: dataset.locate(sample, camera, (0, horizon)) for camera in dataset.cameras}
        for sample in samples
    }


def open_setup(setup: Setup, dataset: Dataset, samples: Sequence[int], horizon: int) -> Any:
    """The dataset that a setup reads from: reelseek's own, or samples by plain calls.

    Raises:
        ReelseekError: It isn't installed, or can't read these files.
    """
    actions = {ACTION: range(horizon)}
    if setup.reader not in PLAIN:
        cameras = dict.fromkeys(dataset.cameras, (0, horizon))
        return open_dataset(
            dataset.root,
            delta_indices={**cameras, **actions},
            cameras=dataset.cameras,
            backend=setup.reader,
        )
    values = open_dataset(dataset.root, delta_indices=actions, cameras=())
    return PlainDataset(setup.reader, read_plan(dataset, samples, horizon), values)


def make_batches(
    source: Any, samples: Sequence[int], batch_size: int, num_workers: int, *, pin_memory: bool
) -> Any:
    """A loader of these samples in this order."""
    prefetch = PREFETCHED if num_workers else None
    if not isinstance(source, PlainDataset):
        from reelseek.loader import Sequential, make_loader

        return make_loader(
            source,
            batch_size,
            num_workers=num_workers,
            sampler=Sequential(samples),
            rank=0,
            world_size=1,
            prefetch_factor=prefetch,
            pin_memory=pin_memory,
            persistent_workers=False,
        )
    from torch.utils.data import DataLoader

    return DataLoader(
        source,
        batch_size,
        sampler=list(samples),
        num_workers=num_workers,
        prefetch_factor=prefetch,
        pin_memory=pin_memory,
    )


PREFETCHED = 2
"""Batches that each worker is ahead: PyTorch's own default."""


def read_batch(source: Any, samples: Sequence[int]) -> dict[str, Any]:
    """One batch, read in this process.

    Raises:
        ReelseekError: It can't be read; a library's own errors are translated.
    """
    if not isinstance(source, PlainDataset):
        batch: dict[str, Any] = source.get_batch(samples)
        return batch
    from torch.utils.data import default_collate

    try:
        collated: dict[str, Any] = default_collate([source[sample] for sample in samples])
    except ReelseekError:
        raise
    except Exception as exc:  # whatever the library raises
        raise DecodeError(
            "the library can't read these frames", backend=source.reader, detail=str(exc)
        ) from exc
    return collated


Prepare = Callable[[Mapping[str, Any]], "Tensor"]
"""Makes (B, V, 3, 224, 224) float32 on the device of a batch: V is cameras times frames."""


def make_processor(name: str, cameras: Sequence[str], size: int, device: str) -> Prepare:
    """A setup's preprocessing.

    Raises:
        DependencyError: transformers isn't installed.
    """
    import torch

    if name == "reelseek":
        from reelseek.preprocess import normalize, resize

        def prepare(batch: Mapping[str, Any]) -> Tensor:
            views = [
                resize(batch[camera].to(device, non_blocking=True), size) for camera in cameras
            ]
            return normalize(torch.cat(views, dim=1))

        return prepare
    siglip = import_peer("transformers.models.siglip.image_processing_siglip")
    image = import_peer("PIL.Image")
    processor = siglip.SiglipImageProcessor(size={"height": size, "width": size})

    def prepare_pictures(batch: Mapping[str, Any]) -> Tensor:
        views = torch.cat([batch[camera] for camera in cameras], dim=1)
        arrays = views.flatten(0, 1).movedim(-3, -1).contiguous().numpy()
        pictures = [image.fromarray(array) for array in arrays]
        pixels: Tensor = processor(images=pictures, return_tensors="pt")["pixel_values"]
        return pixels.unflatten(0, views.shape[:2]).to(device)

    return prepare_pictures
