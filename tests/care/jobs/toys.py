"""Functions that jobs call in these tests; each is called in a process of its own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from reelseek.errors import CorruptVideoError


def double(key: str, *, log: str, seconds: float = 0.0) -> dict[str, Any]:
    """Twice the number that the key ends with; each call is noted."""
    time.sleep(seconds)
    _note(log, key)
    return {"twice": 2 * int(key.split("_")[1])}


def misbehave(key: str, *, log: str) -> dict[str, Any]:
    """Does what the key says: dies, dies once, raises, raises once, refuses."""
    _note(log, key)
    what, _, _number = key.partition("_")
    tried = Path(log).read_text().split().count(key)
    if what == "dies" or (what == "diesonce" and tried == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "raises" or (what == "raisesonce" and tried == 1):
        raise OSError("the disk is tired")
    if what == "refuses":
        raise CorruptVideoError("it is cut short", path=key, remedy="Copy it again")
    return {"tried": tried}


def _note(log: str, key: str) -> None:
    with open(log, "a") as file:
        file.write(f"{key}\n")
