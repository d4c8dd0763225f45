"""Pictures kept in parquet columns as PNG or JPEG bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._files import fill_template
from reelseek.errors import DatasetFormatError, DependencyError

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
MAX_PIXELS = 64 * 1024 * 1024


def decode_image(value: Any, root: Path, key: str, source: Path) -> NDArray[np.uint8]:
    """One picture as (H, W, 3) RGB uint8.

    Args:
        value: A cell of the column: bytes, or a dict with ``bytes`` or ``path`` as Hugging Face
            datasets writes it.
        root: The dataset's folder, which a ``path`` must not leave.
        key: The camera, for errors.
        source: The parquet file, for errors.

    Raises:
        DependencyError: Pillow isn't installed.
        DatasetFormatError: It is no picture.
    """
    try:
        from PIL import Image
    except ImportError as exc:
        raise DependencyError(
            f"{key} holds PNG or JPEG pictures, and Pillow isn't installed",
            remedy="Run `pip install 'reelseek[images]'`",
        ) from exc
    data = _bytes_of(value, root, key, source)
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise DatasetFormatError(
                    f"a picture of {key} is {image.width}x{image.height}", path=source
                )
            return np.array(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as exc:
        if isinstance(exc, DatasetFormatError):
            raise
        raise DatasetFormatError(
            f"a picture of {key} can't be decoded", path=source, detail=str(exc)
        ) from exc


def _bytes_of(value: Any, root: Path, key: str, source: Path) -> bytes:
    if isinstance(value, dict):
        if value.get("bytes"):
            return bytes(value["bytes"])
        name = value.get("path")
        if isinstance(name, str) and name:
            # Braces would be fields; a path in a cell is a plain name.
            plain = name.replace("{", "{{").replace("}", "}}")
            return fill_template(root, plain, source).read_bytes()
    if isinstance(value, bytes):
        return value
    raise DatasetFormatError(f"a cell of {key} holds no picture", path=source)
