"""Running the command as a user does: in a process of its own, its output piped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.patience import PATIENCE

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def reelseek_command() -> Run:
    """Run ``reelseek`` with arguments; keywords are environment variables."""

    def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "reelseek", *map(str, arguments)],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
            env={**os.environ, "COLUMNS": "60", **variables},
        )  # fmt: skip

    return run
