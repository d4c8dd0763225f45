"""Contact sheets: for each camera, frames of a few episodes from their start to their end."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reelseek.care.report._records import CameraPictures, EpisodePictures, Picture
from reelseek.care.report._source import READ_ERRORS, Source, fault_text, spread
from reelseek.errors import DatasetFormatError

MAX_PICTURES = 96
"""Pictures on the page, shared out between the cameras."""
COLUMNS = 6
"""Frames of one episode."""
MAX_ROWS = 4
"""Episodes of one camera."""
MAX_WIDTH, MAX_HEIGHT = 200, 150
"""Pixels of a picture; smaller frames stay as they are."""
QUALITY = 80
"""Of the JPEG files."""


def pictures_of(source: Source, tell: Callable[[str], None]) -> tuple[CameraPictures, ...]:
    """Make the contact sheets."""
    rows = MAX_PICTURES // COLUMNS // max(1, len(source.cameras))
    episodes = source.some_episodes(min(MAX_ROWS, max(1, rows)))
    sheets = []
    for camera, is_video in source.cameras.items():
        tell(f"pictures of {camera}")
        read = _from_video if is_video else _from_parquet
        sheets.append(
            CameraPictures(camera, tuple(_episode(source, camera, e, read) for e in episodes))
        )
    return tuple(sheets)


Read = Callable[[Source, str, int, list[int]], list[NDArray[np.uint8]]]


def _episode(source: Source, camera: str, position: int, read: Read) -> EpisodePictures:
    episode = source.layout.episodes[position]
    rows = spread(range(episode.length), COLUMNS)
    try:
        frames = read(source, camera, position, rows)
    except READ_ERRORS as exc:
        return EpisodePictures(episode.index, (), fault_text(source.root, exc))
    pictures = [_picture(row, frame) for row, frame in zip(rows, frames, strict=True)]
    return EpisodePictures(episode.index, tuple(pictures))


def _from_video(
    source: Source, camera: str, position: int, rows: list[int]
) -> list[NDArray[np.uint8]]:
    with source.video(source.video_path(position, camera)) as video:
        return list(video.get_frames_at(source.frames(video, position, camera, rows)).numpy())


def _from_parquet(
    source: Source, camera: str, position: int, rows: list[int]
) -> list[NDArray[np.uint8]]:
    from reelseek.datasets._images import decode_image
    from reelseek.datasets._parquet import column_names, read_rows

    span = source.layout.rows_of(position)
    others = frozenset(column_names(span.path)) - {camera}
    columns = read_rows(span, int(source.layout.episodes.indices[position]), others)
    if camera not in columns:
        raise DatasetFormatError(f"there is no column {camera!r}", path=span.path)
    return [decode_image(columns[camera][row], source.root, camera, span.path) for row in rows]


def _picture(row: int, pixels: NDArray[np.uint8]) -> Picture:
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((MAX_WIDTH, MAX_HEIGHT))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=QUALITY)
    return Picture(row, file.getvalue(), image.width, image.height)
