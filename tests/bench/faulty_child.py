"""A probe's subprocess that knows some more backends: one crashes, one hangs, one is off by one."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from reelseek.bench import _probe_child
from reelseek.types import Pixels
from reelseek.video.backends import OpenRequest, _pyav, _registry


class Faulty:
    """PyAV's frames, with a fault."""

    def __init__(self, request: OpenRequest, fault: str) -> None:
        self._good = _pyav.open_decoder(request)
        self._fault = fault

    def read(self, frames: Sequence[int], out: Pixels | None) -> Pixels:
        """Read frames, or do the fault."""
        if self._fault == "crashes":
            os.write(2, b"[av1 @ 0x5651f4607c00] cannot go on\nfarewell\n")
            os.kill(os.getpid(), signal.SIGSEGV)
        if self._fault == "hangs":
            time.sleep(600)
        return self._good.read([max(0, frame - 1) for frame in frames], out)

    def close(self) -> None:
        """Close the good one."""
        self._good.close()


def backend(fault: str) -> Any:
    """A backend module with a fault."""
    module = ModuleType(fault)
    vars(module)["version"] = lambda: "1.0"
    vars(module)["open_decoder"] = lambda request: Faulty(request, fault)
    return module


if __name__ == "__main__":
    for name in ("crashes", "hangs", "neighbour"):
        sys.modules[f"reelseek.video.backends._{name}"] = backend(name)
        _registry._BACKENDS[name] = _registry._Entry(f"_{name}", "")
    _probe_child.main(Path(sys.argv[1]))
