"""Throw-away environments with real wheels in them, and a real FFmpeg from Debian's packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import skip_without
from tests.patience import PATIENCE

PACKAGES_OF_TORCH = (
    "torch", "torchgen", "functorch", "numpy", "numpy.libs", "typing_extensions.py",
    "filelock", "sympy", "mpmath", "networkx", "jinja2", "markupsafe", "fsspec",
)  # fmt: skip
DISTRIBUTIONS_OF_TORCH = ("torch", "numpy", "filelock", "typing_extensions", "pip")
FFMPEG_PACKAGE = "libavdevice59"
"""Debian 12's FFmpeg 5: this library needs all the others."""


@dataclass(frozen=True, slots=True)
class WheelEnvironment:
    """A virtual environment with the torch of the running one, and wheels of one's choice."""

    python: Path
    site_packages: Path

    def unpack(self, wheel: Path) -> None:
        """Install a wheel as pip does, by unpacking it."""
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site_packages)

    def add_pyav(self) -> None:
        """The running environment's PyAV."""
        for entry in _running_site_packages().glob("av*"):
            if entry.name in ("av", "av.libs") or re.fullmatch(r"av-.*\.dist-info", entry.name):
                (self.site_packages / entry.name).symlink_to(entry)

    def run(self, *command: str, variables: Mapping[str, str] | None = None) -> tuple[int, str]:
        """The exit status and words of a command, with this environment first on PATH."""
        path = f"{self.python.parent}:/usr/bin:/bin"
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name in ("HOME", "LANG") or name.startswith(("PIP_", "SSL_"))
        }
        done = subprocess.run(
            command,
            env={**inherited, "PATH": path, **(variables or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout


def make_environment(folder: Path) -> WheelEnvironment:
    """A virtual environment whose torch is the running one's, by links; without torchcodec.

    Only packages that are unpacked into it may be replaced or removed: the others are links.
    """
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True
    )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    made = WheelEnvironment(folder / "bin" / "python", folder / "lib" / version / "site-packages")
    source = _running_site_packages()
    infos = [
        found for name in DISTRIBUTIONS_OF_TORCH for found in source.glob(f"{name}-*.dist-info")
    ]
    for entry in [*(source / name for name in (*PACKAGES_OF_TORCH, "pip")), *infos]:
        if entry.exists():
            (made.site_packages / entry.name).symlink_to(entry)
    pip = folder / "bin" / "pip"
    pip.write_text('#!/bin/sh\nexec "$(dirname "$0")/python" -m pip "$@"\n')
    pip.chmod(0o755)
    return made


def _running_site_packages() -> Path:
    return Path(sysconfig.get_path("purelib"))


def download_wheel(requirement: str, folder: Path) -> Path:
    """One wheel from the package index, without what it needs; skips where there is no index."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
         "--dest", str(folder), requirement],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    name = requirement.partition("==")[0]
    found = sorted(folder.glob(f"{requirement.replace('==', '-')}-*.whl"))
    if not found:
        skip_without("wheels", f"no wheel of {name} could be had: {done.stderr.strip()[-300:]}")
    return found[0]


@dataclass(frozen=True, slots=True)
class SystemFFmpeg:
    """An FFmpeg as a distribution packages it, in a folder of its own."""

    folders: tuple[Path, ...]
    """Where its libraries lie, and those that Debian reaches by other ways than soname."""

    @property
    def search_path(self) -> str:
        """What to put in LD_LIBRARY_PATH."""
        return ":".join(map(str, self.folders))


def debian_ffmpeg_5(folder: Path) -> SystemFFmpeg:
    """Download and unpack Debian 12's FFmpeg 5 with all it needs, about 55 MB.

    Nothing is installed. Skips where the packages can't be had.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        skip_without("wheels", "FFmpeg 5 comes from Debian's packages, and this is no Debian")
    debs, root = folder / "debs", folder / "root"
    debs.mkdir(parents=True)
    options = _package_lists(folder)
    wanted = _apt(["-s", "--no-install-recommends", "install", FFMPEG_PACKAGE], options, debs)
    names = re.findall(r"^Inst (\S+)", wanted, re.MULTILINE)
    if FFMPEG_PACKAGE not in names:
        skip_without("wheels", f"Debian's package {FFMPEG_PACKAGE} can't be had here")
    _apt(["download", *names], options, debs)
    for deb in debs.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(deb), str(root)], check=True)
    home = next(root.glob(f"usr/lib/*/{FFMPEG_PACKAGE[:-2]}.so.59")).parent
    beside = [home / name for name in ("blas", "lapack", "pulseaudio")]
    return SystemFFmpeg((home, *(found for found in beside if found.is_dir())))


def _package_lists(folder: Path) -> list[str]:
    """Options that make apt read package lists: the machine's own, or new ones in ``folder``."""
    known = _apt(["policy", FFMPEG_PACKAGE], [], folder, program="apt-cache")
    if "Candidate: " in known and "Candidate: (none)" not in known:
        return []
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    options = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder}"]
    _apt(["update"], options, folder)
    return options


def _apt(arguments: list[str], options: list[str], folder: Path, program: str = "apt-get") -> str:
    done = subprocess.run(
        [program, "--quiet", *options, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    return done.stdout
