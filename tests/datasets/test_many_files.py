"""Memory and open files stay flat over thousands of files read in random order."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reelseek
from tests.datasets.conftest import need_backend
from tests.datasets.makers import (
    TOP,
    V2_DATA,
    V2_VIDEO,
    WRIST,
    Spec,
    bars_video,
    info,
    numbers,
    v2_data,
    v2_video,
    vectors,
    write_info,
    write_lines,
    write_v2_meta,
)

pytestmark = pytest.mark.slow

EPISODES, LENGTH, CLIPS = 1000, 4, 4
CAMERAS = (TOP, WRIST, "observation.images.rear")
SETTLED = 300
"""Files after which caches are full."""
MOST_LIVE_GROWTH_MB = 16
MOST_GROWTH_MB = 80
"""glibc keeps holes between blocks of decoders that came and went; they are used again, and level
off (torchcodec alone, over 8000 files with 32 open: 50 MB, all but 9 of them holes)."""


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1000 episodes of three cameras: 3000 videos, hard links to a few clips."""
    root = tmp_path_factory.mktemp("thousand")
    clips = [root / f"clip{n}.mp4" for n in range(CLIPS)]
    for n, clip in enumerate(clips):
        clip.write_bytes(bars_video(n * 100, LENGTH))
    for episode in range(EPISODES):
        for place, camera in enumerate(CAMERAS):
            path = v2_video(root, camera, episode)
            path.parent.mkdir(parents=True, exist_ok=True)
            os.link(clips[clip_of(episode, place)], path)
        path = v2_data(root, episode)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(episode_table(episode), path)
    spec = Spec((LENGTH,) * EPISODES, cameras=CAMERAS)
    write_info(root, info(spec, "v2.1", V2_DATA, V2_VIDEO))
    write_v2_meta(root, spec.lengths, [[]] * EPISODES)
    write_lines(root / "meta/tasks.jsonl", [{"task_index": 0, "task": "x"}])
    return root


def clip_of(episode: int, place: int) -> int:
    return (episode + place) % CLIPS


def episode_table(episode: int) -> pa.Table:
    rows = np.arange(LENGTH)
    return pa.table({
        "action": vectors(np.stack([rows, rows], axis=1)),
        "timestamp": pa.array(rows / 10, pa.float32()),
        "episode_index": np.full(LENGTH, episode),
        "index": rows + episode * LENGTH,
        "task_index": np.zeros(LENGTH, np.int64),
    })  # fmt: skip


@dataclass(frozen=True, slots=True)
class Usage:
    """What this process holds."""

    resident_mb: float
    """Resident memory."""
    live_mb: float
    """Resident memory once the allocator has given back what is free."""
    descriptors: int

    def __str__(self) -> str:
        return f"{self.resident_mb:.0f} MB ({self.live_mb:.0f} live), {self.descriptors} open"


def usage() -> Usage:
    gc.collect()
    resident = _resident_mb()
    ctypes.CDLL(None).malloc_trim(0)
    return Usage(resident, _resident_mb(), len(list(Path("/proc/self/fd").iterdir())))


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.parametrize("backend", ["indexed", "torchcodec", "pyav"])
def test_memory_and_descriptors_are_flat_over_3000_files(
    thousand: Path, backend: str, figure: Callable[[str], None]
) -> None:
    need_backend(backend)
    ds = reelseek.open_dataset(thousand, backend=backend, delta_indices={"*images*": [0, 2]})
    ds[0]
    before = settled = usage()
    for count, episode in enumerate(np.random.default_rng(3).permutation(EPISODES), 1):
        sample = ds[int(episode) * LENGTH + 1]
        for place, camera in enumerate(CAMERAS):
            first = clip_of(int(episode), place) * 100
            assert numbers(sample[camera]) == [first + 1, first + 3]
        if count == SETTLED // len(CAMERAS):
            settled = usage()
    end = usage()
    figure(f"{backend}: first file: {before}; {SETTLED}: {settled}; 3000: {end}")
    assert end.descriptors <= settled.descriptors + 2
    assert end.live_mb <= settled.live_mb + MOST_LIVE_GROWTH_MB
    assert end.resident_mb <= settled.resident_mb + MOST_GROWTH_MB
    ds.close()
    assert usage().descriptors <= before.descriptors
