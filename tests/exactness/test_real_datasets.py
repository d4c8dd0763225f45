"""The indexed engine on recorded datasets: every camera file, frame by frame.

A sample of the files by default; REELSEEK_ALL_FRAMES=1 takes all of them.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import reelseek
from tests import oracle

pytestmark = pytest.mark.slow

TAKES_ALL = os.environ.get("REELSEEK_ALL_FRAMES") == "1"
SAMPLED_FILES, SAMPLED_FRAMES = 2, 30
APART = 16


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    """Lines about what was compared, shown at the end."""
    lines: list[str] = []
    yield lines
    print("\ndataset, files, frames, frames compared, wrong, seconds")
    print("\n".join(lines))


def _digest(picture: NDArray[np.uint8]) -> bytes:
    return hashlib.blake2b(picture.tobytes(), digest_size=16).digest()


def _reads(count: int) -> Iterator[list[int]]:
    """Frames one by one in random order, in pairs, backwards, and in batches."""
    rng = np.random.default_rng(count)
    frames: NDArray[np.int64] = np.arange(count)
    if not TAKES_ALL and count > SAMPLED_FRAMES:
        frames = np.sort(rng.choice(count, SAMPLED_FRAMES, replace=False))
    order: list[int] = rng.permutation(frames).tolist()
    yield from ([frame] for frame in order)
    yield from ([frame, min(frame + APART, count - 1)] for frame in order)
    yield from ([frame] for frame in reversed(frames.tolist()))
    yield from (order[start : start + 32] for start in range(0, len(order), 32))


def _compare(path: Path) -> tuple[int, int, int]:
    """The file's frames, how many were compared, and how many of them were wrong."""
    expected = [_digest(picture) for picture in oracle.decode(str(path)).frames]
    compared = wrong = 0
    with reelseek.open_video(path, backend="indexed") as video:
        assert len(video) == len(expected)
        for frames in _reads(len(video)):
            pictures = video.get_frames_at(frames).numpy()
            compared += len(frames)
            wrong += _count_wrong(expected, frames, pictures)
    return len(expected), compared, wrong


def _count_wrong(
    expected: Sequence[bytes], frames: Sequence[int], pictures: NDArray[np.uint8]
) -> int:
    pairs = zip(frames, pictures, strict=True)
    return sum(_digest(picture) != expected[frame] for frame, picture in pairs)


@pytest.mark.timeout(1800)
def test_every_frame_of_every_camera_is_the_one_that_ffmpeg_displays(
    real_datasets: Path, table: list[str]
) -> None:
    datasets = sorted(folder for folder in real_datasets.iterdir() if folder.is_dir())
    wrong = 0
    for folder in datasets:
        files = sorted(folder.rglob("*.mp4"))
        if not TAKES_ALL:
            files = files[:: max(1, len(files) // SAMPLED_FILES)][:SAMPLED_FILES]
        started = time.perf_counter()
        counts = np.array([_compare(path) for path in files]).sum(axis=0)
        seconds = time.perf_counter() - started
        wrong += int(counts[2])
        numbers = ", ".join(f"{count:,}" for count in counts)
        table.append(f"{folder.name}, {len(files)}, {numbers}, {seconds:.1f}")
    assert datasets
    assert wrong == 0
