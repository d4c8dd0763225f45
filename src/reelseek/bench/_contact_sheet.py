"""A contact sheet: rows are cameras, columns a few samples' frames at base and base + delta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets import Dataset
from reelseek.errors import DependencyError

CELL = 144
"""Width and height of a picture's box, in pixels."""
GAP = 6
HEADER = 40
LABEL = 118
INK, FAINT, PAPER = (20, 20, 20), (110, 110, 110), (255, 255, 255)


@dataclass(frozen=True, slots=True)
class SheetSample:
    """One sample's columns of the sheet."""

    episode: int
    """The episode's number."""
    frames: tuple[int, ...]
    """Frame numbers within the episode, as they are shown: the last one where padded."""
    pictures: dict[str, NDArray[np.uint8]]
    """Camera to (T, H, W, 3) RGB uint8."""


def sheet_samples(dataset: Dataset, indices: Sequence[int]) -> list[SheetSample]:
    """Read the samples that a sheet shows.

    Args:
        dataset: Opened with ``output="numpy"`` and the same deltas for all cameras.
        indices: Numbers of samples.
    """
    samples = []
    for index in indices:
        sample = dataset[index]
        episode, row = dataset.place_of(index)
        offsets = dataset.offsets_of(dataset.cameras[0])
        rows = tuple(min(max(row + offset, 0), episode.length - 1) for offset in offsets)
        pictures = {
            camera: np.moveaxis(sample[camera].reshape(-1, *sample[camera].shape[-3:]), 1, -1)
            for camera in dataset.cameras
        }
        samples.append(SheetSample(episode.index, rows, pictures))
    return samples


def write_contact_sheet(samples: Sequence[SheetSample], path: Path, *, title: str) -> Path:
    """Draw samples as a PNG; a frame's pictures keep their aspect.

    Raises:
        DependencyError: Pillow isn't installed.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as exc:
        raise DependencyError(
            "the contact sheet needs Pillow, which isn't installed",
            remedy="Run `pip install 'reelseek[bench]'`",
        ) from exc
    cameras = list(samples[0].pictures)
    columns = [(sample, t) for sample in samples for t in range(len(sample.frames))]
    width = LABEL + len(columns) * (CELL + GAP) + GAP + (len(samples) - 1) * GAP * 2
    height = HEADER + 22 + len(cameras) * (CELL + GAP) + GAP
    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((GAP, 5), title, INK, font_size=15)
    for row, camera in enumerate(cameras):
        top = HEADER + 22 + row * (CELL + GAP)
        for line, word in enumerate(_label_lines(camera)):
            draw.text((GAP, top + CELL // 2 - 14 + 15 * line), word, INK, font_size=12)
    left = LABEL
    for sample, t in columns:
        draw.text((left, HEADER - 12), f"episode {sample.episode}", FAINT, font_size=12)
        draw.text((left, HEADER + 3), f"frame {sample.frames[t]}", INK, font_size=12)
        for row, camera in enumerate(cameras):
            picture = Image.fromarray(np.ascontiguousarray(sample.pictures[camera][t]))
            picture.thumbnail((CELL, CELL))
            if picture.width < CELL and picture.height < CELL:
                scale = CELL / max(picture.size)
                picture = picture.resize(
                    (round(picture.width * scale), round(picture.height * scale))
                )
            sheet.paste(picture, (left, HEADER + 22 + row * (CELL + GAP)))
        left += CELL + GAP + (GAP * 2 if t == len(sample.frames) - 1 else 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)
    return path


def _label_lines(camera: str) -> list[str]:
    """A camera's key in lines short enough for the margin."""
    name = camera.removeprefix("observation.images.").removeprefix("video.")
    return [name[start : start + 17] for start in range(0, len(name), 17)][:3]
