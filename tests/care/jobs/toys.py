"""Functions that jobs call in these tests; each is called in a process of its own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from reelseek.errors import CorruptVideoError


def misbehave(key: str, *, log: str, seconds: float = 0.0) -> dict[str, Any]:
    """Does what the key says, and returns how often it was tried; each call is noted.

    ``good_1``; ``dies_1``, ``diesonce_1``; ``raises_1``, ``raisesonce_1``; ``refuses_1``;
    ``kills_1``, ``killsonce_1`` kill the process that handed out the work.
    """
    time.sleep(seconds)
    with open(log, "a") as file:
        file.write(f"{key}\n")
    what = key.partition("_")[0]
    tried = Path(log).read_text().split().count(key)
    if what.endswith("once") and tried > 1:
        return {"tried": tried}
    if what.startswith("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if what.startswith("kills"):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(10)
    if what.startswith("raises"):
        raise OSError("the disk is tired")
    if what == "refuses":
        raise CorruptVideoError("it is cut short", path=key, remedy="Copy it again")
    return {"tried": tried}
