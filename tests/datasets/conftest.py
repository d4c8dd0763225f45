"""Tiny datasets made once, for tests that only read them, and fresh ones to be damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from reelseek.errors import BackendUnavailableError
from reelseek.video.backends import load_backend
from tests.conftest import skip_without
from tests.datasets import makers

MAKERS = {
    "v2.1": makers.make_v21,
    "v3.0": makers.make_v30,
    "gr00t": makers.make_gr00t,
    "images": makers.make_images,
}


@pytest.fixture(scope="session")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A dataset of each kind, by the kind's name; not to be changed."""
    folder = tmp_path_factory.mktemp("datasets")
    return {kind: make(folder / kind) for kind, make in MAKERS.items()}


@pytest.fixture(params=list(MAKERS))
def root(request: pytest.FixtureRequest, roots: dict[str, Path]) -> Path:
    """Each kind of dataset in turn; not to be changed."""
    return roots[request.param]


@pytest.fixture
def v21(tmp_path: Path) -> Path:
    """A v2.1 dataset to be damaged."""
    return makers.make_v21(tmp_path / "v21")


@pytest.fixture
def v30(tmp_path: Path) -> Path:
    """A v3.0 dataset to be damaged."""
    return makers.make_v30(tmp_path / "v30")


def need_backend(name: str) -> None:
    """Skip the test where this backend isn't installed."""
    try:
        load_backend(name).version()
    except BackendUnavailableError as exc:
        skip_without(name, str(exc))
