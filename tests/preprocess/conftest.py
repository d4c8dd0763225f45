"""Pictures to work on: decoded ones as they lie in memory, and noise, which no filter likes."""

from __future__ import annotations

from typing import Any

import pytest

import reelseek
from reelseek.bench._torchvision_loading import import_peer
from reelseek.errors import DependencyError
from reelseek.sample import sample_dataset
from tests.conftest import needed, skip_without

torch = needed("torch")

SAMPLES = (0, 40, 120, 200, 380)


@pytest.fixture(scope="session")
def frames() -> Any:
    """(5, 2, 3, 128, 128) decoded frames: channels-last memory, as all of reelseek's."""
    root = sample_dataset()
    dataset = reelseek.open_dataset(root, delta_indices={"observation.images.*": [0, 16]})
    return dataset.get_batch(SAMPLES)["observation.images.top"]


@pytest.fixture(scope="session")
def noise() -> Any:
    """(6, 3, 128, 128): noise, and noise of black and white only, where filters overshoot most."""
    generator = torch.Generator().manual_seed(0)
    grey = torch.randint(0, 256, (3, 3, 128, 128), dtype=torch.uint8, generator=generator)
    extreme = torch.randint(0, 2, (3, 3, 128, 128), dtype=torch.uint8, generator=generator) * 255
    return torch.cat([grey, extreme])


@pytest.fixture(scope="session")
def torchvision_functional() -> Any:
    """torchvision's functions on tensors."""
    return peer("torchvision.transforms.v2.functional", "torchvision")


@pytest.fixture(scope="session")
def siglip_module(torchvision_functional: Any) -> Any:
    """The module of transformers that holds both of SigLIP's processors."""
    del torchvision_functional  # the fast one needs it
    return peer("transformers.models.siglip", "transformers")


def peer(module: str, package: str) -> Any:
    """A module to compare with."""
    try:
        return import_peer(module)
    except DependencyError as exc:
        skip_without(package, str(exc))
