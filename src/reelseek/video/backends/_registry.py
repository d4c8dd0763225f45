"""Names of backends, where each lives, and how to install it."""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import cast

from reelseek.errors import ChangedVideoError, UnknownBackendError
from reelseek.index._stamp import stamp_of
from reelseek.video.backends._faults import changed
from reelseek.video.backends._protocol import Backend, Decoder, OpenRequest


@dataclass(frozen=True, slots=True)
class _Entry:
    module: str
    install: str


_BACKENDS = {
    "indexed": _Entry("_indexed", "pip install av"),
    "torchcodec": _Entry("_torchcodec", "pip install 'reelseek[torch]'"),
    "pyav": _Entry("_pyav", "pip install av"),
    "decord": _Entry("_decord", "pip install decord"),
    "opencv": _Entry("_opencv", "pip install opencv-python-headless"),
    "torchvision": _Entry("_torchvision", "pip install 'torchvision<0.26'"),
}

AUTO_ORDER = ("indexed", "torchcodec", "pyav", "decord")
"""The backends that ``backend="auto"`` tries on the CPU, in order."""
ON_GPU = "torchcodec"
"""The one backend that decodes on any other device."""


def backend_names() -> tuple[str, ...]:
    """All backends by name, the fastest first."""
    return tuple(_BACKENDS)


def is_backend(name: str) -> bool:
    """True where there is a backend of this name, installed or not."""
    return isinstance(name, str) and name in _BACKENDS


def install_hint(name: str) -> str:
    """The command that installs a backend."""
    return _BACKENDS[name].install


def load_backend(name: str) -> Backend:
    """Import a backend's module, on first use.

    Raises:
        UnknownBackendError: There is no backend of that name.
    """
    entry = _BACKENDS.get(name)
    if entry is None:
        raise UnknownBackendError(
            f"no backend {name!r}", remedy=f"Choose one of: auto, {', '.join(_BACKENDS)}"
        )
    return _imported(entry.module)


def open_decoder(name: str, request: OpenRequest) -> Decoder:
    """Open a file with a backend.

    Raises:
        UnknownBackendError: There is no backend of that name.
        UnsupportedVideoError: It can't return this file's frames by number; with the reason.
        BackendUnavailableError: It isn't installed, or doesn't load.
        DeviceUnavailableError: It can't decode on the device asked for.
        ChangedVideoError: It is another file than when its table was made.
    """
    if name == "indexed":  # it opens the file at its first read, and looks then
        return load_backend(name).open_decoder(request)
    _check_is_the_same(request, name)
    decoder = load_backend(name).open_decoder(request)
    try:
        _check_is_the_same(request, name)
    except ChangedVideoError:
        decoder.close()
        raise
    return decoder


def _check_is_the_same(request: OpenRequest, name: str) -> None:
    if request.stamp not in (None, stamp_of(request.path)):
        raise changed(request.path, name)


@functools.cache
def _imported(module: str) -> Backend:
    return cast(Backend, importlib.import_module(f"reelseek.video.backends.{module}"))
