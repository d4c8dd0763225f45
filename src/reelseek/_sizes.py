"""Numbers of bytes as people write them."""

from __future__ import annotations

UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def size_text(num_bytes: float) -> str:
    """A size to three digits: ``1.5 kB``."""
    size, unit = float(num_bytes), 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {UNITS[unit]}"
