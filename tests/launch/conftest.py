"""A conda-like environment whose torchcodec needs a search path, in a folder hard to quote."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import reelseek_command
from tests.native import chains
from tests.native.chains import Environment

__all__ = ["environment", "libraries", "reelseek_command"]

HARD_NAME = 'it\'s a "$HOME" `env` \\ & *'
"""A folder's name that no shell may take apart."""


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled chain; takes a second."""
    return chains.build_libraries(tmp_path_factory.mktemp("launch") / "libraries")


@pytest.fixture(scope="session")
def environment(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """torchcodec misses libnppicc.so.12, which lies in the environment's nvidia folder."""
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(
        libraries, tmp_path_factory.mktemp("launch") / HARD_NAME, python, torch_is_c=True
    )
    made.supply_npp()
    return made
