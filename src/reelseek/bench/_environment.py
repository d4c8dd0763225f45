"""Where a measurement was made: versions, processor, commit."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "av", "torch", "torchcodec", "torchvision", "decord",
            "opencv-python-headless", "opencv-python", "transformers", "pillow")  # fmt: skip


def environment() -> dict[str, Any]:
    """Facts that a measurement depends on, for its JSON document."""
    import reelseek

    return {
        "reelseek": reelseek.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "packages": _versions(),
    }


def cpu_model() -> str:
    """The processor's name, as the kernel gives it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1] for line in text.splitlines() if line.startswith("model name"))
    return next(names, platform.machine()).strip()


def commit() -> str | None:
    """The commit of the checkout that this code runs from; None outside a checkout.

    A ``+`` after it says that files of the package differ from it.
    """
    git = shutil.which("git")
    if git is None:
        return None
    folder = Path(__file__).parent
    # A virtual environment inside somebody's repository is no checkout of this code.
    tracked = _git(git, folder, "ls-files", "--error-unmatch", Path(__file__).name)
    revision = _git(git, folder, "rev-parse", "HEAD")
    if tracked is None or revision is None:
        return None
    is_changed = bool(_git(git, folder, "status", "--porcelain", "--untracked-files=no", ".."))
    return revision + "+" * is_changed


def _git(git: str, folder: Path, *arguments: str) -> str | None:
    done = subprocess.run(
        [git, "-C", str(folder), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
