"""Pictures kept in parquet columns as PNG or JPEG files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._files import brief, plain_path, read_bytes
from reelseek.datasets._values import Place
from reelseek.errors import DatasetError, DatasetFormatError, DependencyError

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
MAX_PIXELS = 64 * 1024 * 1024
MAX_BYTES = 256 * 1024 * 1024
EIGHT_BIT_MODES = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr")
"""Pillow's names of what RGB holds without loss of range; depth pictures (``I;16``) aren't."""


def read_images(
    column: str, key: str, places: Sequence[Place], windows: NDArray[np.int64], root: Path
) -> NDArray[np.uint8]:
    """Pictures of one camera for several samples.

    Args:
        column: The camera's column.
        key: Its key in a sample, for errors.
        places: (B,) where the samples are.
        windows: (B, T) each sample's rows.
        root: The dataset's folder.

    Returns:
        (B, T, H, W, 3) RGB uint8, contiguous.

    Raises:
        DependencyError: Pillow isn't installed.
        DatasetFormatError: A cell is no picture, or pictures differ in size.
        UnsafePathError: A cell's path leaves the dataset.
    """
    pixels: NDArray[np.uint8] | None = None
    for b, (place, rows) in enumerate(zip(places, windows, strict=True)):
        source = place.rows.path
        for t, cell in enumerate(place.rows.column(column)[rows]):
            picture = decode_image(cell, root, key, source)
            if pixels is None:
                pixels = np.empty((len(places), len(rows), *picture.shape), np.uint8)
            if pixels.shape[2:] != picture.shape:
                raise DatasetFormatError(
                    f"pictures of {key} differ in size: {picture.shape[1]}x{picture.shape[0]} and "
                    f"{pixels.shape[3]}x{pixels.shape[2]}",
                    remedy="Bring them to one size, or read the samples one at a time",
                    path=source,
                )
            pixels[b, t] = picture
    assert pixels is not None  # a batch has samples, and a window rows
    return pixels


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
        DatasetFormatError: It is no picture of 8 bits a channel, or too large.
        UnsafePathError: The path leaves the dataset.
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
            _check(image, key, source)
            return np.array(image.convert("RGB"))
    except DatasetError:
        raise
    except Exception as exc:  # Pillow's plugins raise many kinds over damaged files
        raise _no_picture(f"a picture of {key} can't be decoded", source, str(exc)) from exc


def _check(image: Any, key: str, source: Path) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise _no_picture(f"a picture of {key} is {image.width}x{image.height}", source)
    if image.mode not in EIGHT_BIT_MODES:
        raise _no_picture(f"a picture of {key} has not 8 bits a channel: {image.mode}", source)


def _bytes_of(value: Any, root: Path, key: str, source: Path) -> bytes:
    data, name = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, "")
    if isinstance(data, bytes) and data:
        return data
    if data is None and isinstance(name, str) and name:
        return read_bytes(plain_path(root, name, source), MAX_BYTES, "images")
    raise _no_picture(f"a cell of {key} holds no picture: {brief(value)}", source)


def _no_picture(fault: str, source: Path, detail: str = "") -> DatasetFormatError:
    return DatasetFormatError(
        fault,
        remedy="Copy the file again from its source, or leave the camera out with `cameras=`",
        path=source,
        detail=detail,
    )
