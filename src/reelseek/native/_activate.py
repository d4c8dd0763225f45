"""Mending, inside the running process, what keeps torchcodec from loading."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
from dataclasses import dataclass

from reelseek.errors import BackendUnavailableError
from reelseek.native._wheel_ffmpeg import prepare_wheel_ffmpeg

AVDEVICE_SONAMES = ("libavdevice.so.62", "libavdevice.so.61", "libavdevice.so.60",
                    "libavdevice.so.59", "libavdevice.so.58")  # fmt: skip
"""libavdevice needs all the other FFmpeg libraries, so loading it tests for all of them at once.
FFmpeg 8 down to 4: the majors that torchcodec is built for, in the order in which it tries them."""

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
    for path in prepare_wheel_ffmpeg():
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


def _loads(soname: str) -> bool:
    try:
        ctypes.CDLL(soname, ctypes.RTLD_LOCAL)
    except OSError:
        return False
    return True
