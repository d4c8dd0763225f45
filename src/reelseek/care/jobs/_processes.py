"""What a process on another machine needs to be like this one."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def own_paths() -> list[str]:
    """The folders of modules that this process finds and the bare interpreter doesn't."""
    paths = [str(Path(entry or ".").resolve()) for entry in sys.path]
    prefixes = {Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}
    return [
        path
        for path in dict.fromkeys(paths)
        if not any(Path(path).is_relative_to(prefix) for prefix in prefixes)
    ]


def reelseek_variables() -> dict[str, str]:
    """reelseek's own settings."""
    return {name: value for name, value in os.environ.items() if name.startswith("REELSEEK_")}


def end_of_log(path: Path, lines: int) -> str:
    """The last lines of a log as one, without control characters; empty where there are none."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return ""
    last = [line.strip() for line in text.splitlines() if line.strip()][-lines:]
    return "".join(c if c.isprintable() else " " for c in " | ".join(last))
