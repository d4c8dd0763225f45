"""What the drop-ins are tested against: the real LeRobot, and stand-ins for GR00T and openpi."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from reelseek.bench._torchvision_loading import import_peer
from reelseek.native import activate
from tests.conftest import skip_without

PACKAGES = Path(__file__).parent / "packages"
collect_ignore = ["packages"]


@pytest.fixture(scope="module")
def lerobot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The real LeRobot's two modules: ``.video`` and ``.datasets``."""
    if importlib.util.find_spec("lerobot") is None:
        skip_without("lerobot", "LeRobot isn't installed")
    activate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("huggingface")))
        yield SimpleNamespace(
            datasets=import_peer("lerobot.datasets.lerobot_dataset"),
            video=importlib.import_module("lerobot.datasets.video_utils"),
        )


@contextmanager
def stand_in(package: str, module: str) -> Iterator[ModuleType]:
    """A module of ``packages``, imported afresh, and gone when the test is over."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PACKAGES))
        yield importlib.import_module(module)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


@pytest.fixture
def gr00t_video() -> Iterator[ModuleType]:
    """The stand-in for ``gr00t.utils.video``."""
    with stand_in("gr00t", "gr00t.utils.video") as module:
        yield module


@pytest.fixture
def openpi_loader() -> Iterator[ModuleType]:
    """The stand-in for ``openpi.training.data_loader``."""
    with stand_in("openpi", "openpi.training.data_loader") as module:
        yield module
