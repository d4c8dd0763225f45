"""What a process on another machine needs to be like this one."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

LOG_LINES = 5
"""Lines of a dead task's log that an error quotes."""
LOG_CHARACTERS = 1000
"""As many of them at most."""
LOG_BYTES = 64 << 10
"""At the end of a log, where they are looked for."""


def own_paths() -> list[str]:
    """The folders of modules that this process finds and the bare interpreter doesn't."""
    paths = dict.fromkeys(str(Path(entry or ".").resolve()) for entry in sys.path)
    programs = {str(Path(sys.executable).parent), sysconfig.get_path("scripts")}
    found_anyway = _bare_paths() | {str(Path(folder).resolve()) for folder in programs}
    return [path for path in paths if path not in found_anyway]


@functools.lru_cache(1)
def _bare_paths() -> frozenset[str]:
    """The folders that the interpreter finds modules in by itself."""
    command = [sys.executable, "-I", "-c", "import json, sys; print(json.dumps(sys.path))"]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return frozenset(str(Path(entry).resolve()) for entry in json.loads(said.splitlines()[-1]))


def reelseek_variables() -> dict[str, str]:
    """reelseek's own settings."""
    return {name: value for name, value in os.environ.items() if name.startswith("REELSEEK_")}


def end_of_log(path: Path, lines: int = LOG_LINES) -> str:
    """The last lines of a log as one, without control characters; empty where there are none.

    Never more than so many characters, however long the lines are.
    """
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            text = file.read(LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    last = " | ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:])
    if len(last) > LOG_CHARACTERS:
        last = f"...{last[-LOG_CHARACTERS:]}"
    return "".join(c if c.isprintable() else " " for c in last)
