"""A small dataset without pictures, for what doesn't depend on them."""

from __future__ import annotations

from pathlib import Path

import pytest

import reelseek
from reelseek.datasets import Dataset
from tests.conftest import needed
from tests.datasets import makers

torch = needed("torch")


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A v2.1 dataset; not to be changed."""
    return makers.make_v21(tmp_path_factory.mktemp("loader") / "v21")


@pytest.fixture
def tiny(tiny_root: Path) -> Dataset:
    """It, opened without its cameras."""
    return reelseek.open_dataset(tiny_root, cameras=())
