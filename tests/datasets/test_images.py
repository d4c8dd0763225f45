"""Image columns: pictures of every form, and cells that hold none."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import reelseek
from reelseek.errors import DatasetFormatError, DatasetNotFoundError, UnsafePathError
from tests.datasets.makers import (
    TOP,
    change_rows,
    image_bytes,
    make_images,
    numbers,
    v2_data,
    with_column,
)
from tests.datasets.test_bad_input import refused_sample


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP"])
def test_images_of_every_form_are_read(tmp_path: Path, form: str) -> None:
    root = make_images(tmp_path, form=form)
    ds = reelseek.open_dataset(root, delta_indices={TOP: [0, 3]})
    assert [numbers(ds[n][TOP])[0] for n in range(25)] == list(range(25))


def png(width: int, height: int, mode: int = 2, depth: int = 8) -> bytes:
    """A PNG file that claims a size and holds next to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    header = struct.pack(">IIBBBBB", width, height, depth, mode, 0, 0, 0)
    rows = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + rows + chunk(b"IEND", b"")


def gif() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("L", (320, 64)).save(file, "GIF")
    return file.getvalue()


CELLS: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"bytes": b"no picture"}, "can't be decoded"),
    "empty": ({"bytes": b"", "path": None}, "holds no picture"),
    "nothing": ({"bytes": None, "path": None}, "holds no picture"),
    "cut": ({"bytes": image_bytes(0)[:60]}, "can't be decoded"),
    "pointer": ({"bytes": b"version https://git-lfs.github.com/spec/v1\n"}, "can't be decoded"),
    "bomb": ({"bytes": png(30_000, 30_000)}, "can't be decoded|is 30000x30000"),
    "large": ({"bytes": png(9_000, 8_000)}, "is 9000x8000"),
    "warned": ({"bytes": png(10_000, 10_000)}, "can't be decoded|is 10000x10000"),
    "16 bits": ({"bytes": png(8, 8, mode=0, depth=16)}, "not 8 bits a channel"),
    "gif": ({"bytes": gif()}, "can't be decoded"),
}


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A dataset with an image column, to be damaged."""
    return make_images(tmp_path / "images")


def put_cell(root: Path, cell: dict[str, Any]) -> Path:
    """Set the picture of row 3."""

    def change(table: pa.Table) -> pa.Table:
        cells = table[TOP].to_pylist()
        cells[3] = {"bytes": None, "path": None, **cell}
        return with_column(table, TOP, cells)

    change_rows(v2_data(root, 0), change)
    return v2_data(root, 0)


@pytest.mark.parametrize("name", list(CELLS))
def test_cell_that_is_no_picture(images: Path, name: str) -> None:
    cell, match = CELLS[name]
    refused_sample(images, DatasetFormatError, match, put_cell(images, cell))


@pytest.mark.parametrize("path", ["../outside.png", "/etc/passwd", "a/../../x", "..", "a\0b"])
def test_cell_whose_path_leaves_the_root(images: Path, path: str) -> None:
    refused_sample(
        images, UnsafePathError, "leads out|gives no path", put_cell(images, {"path": path})
    )


def test_cell_whose_file_is_missing(images: Path) -> None:
    put_cell(images, {"path": "images/{none}.png"})
    refused_sample(images, DatasetNotFoundError, "missing", images / "images/{none}.png")


def test_cell_whose_file_is_a_pipe_does_not_hang(images: Path) -> None:
    put_cell(images, {"path": "pipe"})
    os.mkfifo(images / "pipe")
    refused_sample(images, DatasetFormatError, "folder, device or pipe", images / "pipe")


def test_cell_may_name_a_file_of_the_dataset(images: Path) -> None:
    put_cell(images, {"path": "images/{3}.png"})
    (images / "images").mkdir()
    (images / "images/{3}.png").write_bytes(image_bytes(77))
    assert numbers(reelseek.open_dataset(images)[3][TOP]) == 77


@pytest.mark.parametrize("values", [[10**12] * 7, ["x"] * 7, [[1.0]] * 7, [{"bytes": 10**12}] * 7])
def test_column_that_holds_no_pictures(images: Path, values: list[Any]) -> None:
    change_rows(v2_data(images, 0), lambda table: with_column(table, TOP, values))
    refused_sample(images, DatasetFormatError, "holds no picture", v2_data(images, 0))


def test_column_of_bare_bytes_holds_pictures(images: Path) -> None:
    cells = [image_bytes(n) for n in range(7)]
    change_rows(v2_data(images, 0), lambda table: with_column(table, TOP, cells))
    assert numbers(reelseek.open_dataset(images)[3][TOP]) == 3


def test_image_column_that_is_missing(images: Path) -> None:
    change_rows(v2_data(images, 0), lambda table: table.drop_columns([TOP]))
    refused_sample(
        images, DatasetFormatError, f"episode 0 has no column '{TOP}'", v2_data(images, 0)
    )


def test_pictures_of_two_sizes_do_not_stack(images: Path) -> None:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (32, 16)).save(file, "PNG")
    path = put_cell(images, {"bytes": file.getvalue()})
    assert reelseek.open_dataset(images)[3][TOP].shape == (3, 16, 32)
    refused_sample(images, DatasetFormatError, "differ in size: 32x16 and 320x64", path,
            sample=2, delta_indices={TOP: [0, 1]})  # fmt: skip
