"""Mending, inside the running process, what keeps torchcodec from loading."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from reelseek.errors import BackendUnavailableError
from reelseek.native._wheel_ffmpeg import prepare_wheel_ffmpeg

AVDEVICE_SONAMES = ("libavdevice.so.62", "libavdevice.so.61", "libavdevice.so.60",
                    "libavdevice.so.59", "libavdevice.so.58")  # fmt: skip
"""libavdevice needs all the other FFmpeg libraries, so loading it tests for all of them at once.
FFmpeg 8 down to 4: the majors that torchcodec is built for, in the order in which it tries them."""

AVUTIL_MAJOR_OF_FFMPEG_0 = 52
"""FFmpeg 4 has libavutil 56, FFmpeg 8 has libavutil 60, one more for each major."""

SWITCH = "REELSEEK_ACTIVATE"
"""Environment variable; ``0`` turns activation off."""

_lock = threading.Lock()
_done: list[Activation] = []


@dataclass(frozen=True, slots=True)
class Activation:
    """What was done to make torchcodec load."""

    did: str
    """One sentence; empty where nothing had to be done."""
    loaded: tuple[str, ...] = ()
    """The libraries that were loaded into this process, in order."""


def activate() -> Activation:
    """Make ``import torchcodec`` work in this process, where that can be done.

    Nothing is done where torchcodec is imported already or the system has an FFmpeg. Otherwise
    the FFmpeg inside PyAV's wheel is loaded first, so that torchcodec finds it by soname. No
    environment variable is set: setting LD_LIBRARY_PATH in a running process has no effect, as
    the dynamic linker reads it once, when the process starts.

    Returns:
        What was done. Calling it again returns the same.

    Raises:
        BackendUnavailableError: torchcodec isn't installed, or no FFmpeg can be had.
    """
    with _lock:
        if not _done:
            _done.append(_activate())
        return _done[0]


def _activate() -> Activation:
    if "torchcodec" in sys.modules:
        return Activation("")
    if importlib.util.find_spec("torchcodec") is None:
        raise BackendUnavailableError(
            "torchcodec isn't installed",
            remedy="Run `pip install 'reelseek[torch]'`",
            backend="torchcodec",
        )
    if os.environ.get(SWITCH) == "0":
        return Activation(f"nothing: {SWITCH}=0 turns it off")
    if any(_loads(soname) for soname in AVDEVICE_SONAMES):
        return Activation("")
    loaded = []
    paths = prepare_wheel_ffmpeg()
    _check_major(paths[0])
    for path in paths:
        try:
            # Local: PyAV's own copy must keep its symbols to itself, and so must this one.
            ctypes.CDLL(str(path), ctypes.RTLD_LOCAL)
        except OSError as exc:
            raise BackendUnavailableError(
                "PyAV's FFmpeg doesn't load under its usual name",
                remedy=f"Delete {path.parent} and try again, or install FFmpeg 7",
                path=path,
                backend="torchcodec",
                detail=str(exc),
            ) from exc
        loaded.append(str(path))
    return Activation("no FFmpeg on this system, so PyAV's was loaded", tuple(loaded))


def _check_major(avutil: Path) -> None:
    """Refuse an FFmpeg that the installed torchcodec isn't built for."""
    major = int(avutil.suffix[1:]) - AVUTIL_MAJOR_OF_FFMPEG_0
    spec = importlib.util.find_spec("torchcodec")
    folder = Path(spec.origin).parent if spec and spec.origin else avutil.parent
    built_for = sorted(
        int(found[1])
        for path in folder.glob("libtorchcodec_core*.so")
        if (found := re.fullmatch(r"libtorchcodec_core(\d+)\.so", path.name))
    )
    if built_for and major not in built_for:
        raise BackendUnavailableError(
            f"PyAV's wheel carries FFmpeg {major}, and torchcodec is built for FFmpeg "
            f"{built_for[0]} to {built_for[-1]}",
            remedy="Run `pip install 'av<19'`, or install FFmpeg 7",
            backend="torchcodec",
        )


def _loads(soname: str) -> bool:
    try:
        ctypes.CDLL(soname, ctypes.RTLD_LOCAL)
    except OSError:
        return False
    return True
