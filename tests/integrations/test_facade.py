"""Importing the drop-ins is light and changes nothing."""

from __future__ import annotations

import subprocess
import sys

import reelseek.integrations
from tests.patience import PATIENCE


def test_modules_are_the_exported_ones() -> None:
    assert reelseek.integrations.__all__ == ["gr00t", "lerobot", "openpi"]
    for name in reelseek.integrations.__all__:
        module = getattr(reelseek.integrations, name)
        assert callable(module.enable)
        assert callable(module.disable)
        assert not module.is_enabled()


def test_import_takes_none_of_the_packages_along() -> None:
    script = (
        "import sys, reelseek.integrations\n"
        "print({'torch', 'lerobot', 'gr00t', 'openpi', 'cv2'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout.strip() == "set()"
