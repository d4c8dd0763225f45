"""``reelseek bench index``: what indexing files costs, against torchcodec's scan of the same files.

One process, one thread. Files are taken in the groups in which ``reelseek index`` takes them, and
each group in turn by all, so that a busy moment meets them alike.
"""

from __future__ import annotations

import datetime
import math
import os
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.bench._environment import environment
from reelseek.bench._loops import (
    in_turn,
    make_sidecar,
    milliseconds,
    no_garbage_collection,
    now,
    only_new_garbage,
)
from reelseek.bench._ratios import Ratio, paired
from reelseek.bench._timing import median, percentile
from reelseek.errors import BackendError, DatasetFormatError, UnsupportedVideoError
from reelseek.index import FrameTable, Sidecar, VideoTables, index_tables
from reelseek.index._build_index import groups_of
from reelseek.index._units import UnitTable
from reelseek.index._worker import index_files
from reelseek.native import activate

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

SCHEMA = "reelseek.bench.index/2"
REELSEEK, TORCHCODEC = "reelseek", "torchcodec"
USAGE = {
    REELSEEK: "frame and unit tables and the index's bytes, as `reelseek index` makes them",
    TORCHCODEC: "VideoDecoder(seek_mode='exact'): its scan of the file, nothing decoded",
}
OPENINGS = 30
"""How often the index file is opened to be timed."""
TIMED_GROUPS = 30
"""Groups of files that are timed at least: the same again where there are fewer."""

Builder = Callable[[Sequence[str]], object]
"""Indexes some files."""


@dataclass(frozen=True, slots=True)
class IndexTiming:
    """What one way to index takes. Times in milliseconds."""

    name: str
    """``reelseek`` or ``torchcodec``."""
    file_ms: list[float] = field(default_factory=list)
    """For a file, as the mean of each group of files that was timed."""
    file_cpu_ms: list[float] = field(default_factory=list)
    """The processor's time for the same, over all threads: it doesn't count other processes."""
    why_not: str = ""
    """Why there are no times."""

    @property
    def files_per_second(self) -> float | None:
        """At the median."""
        middle = median(self.file_ms)
        return 1000 / middle if middle else None

    def to_json(self) -> dict[str, Any]:
        """For the JSON document."""
        return {
            "name": self.name,
            "usage": USAGE[self.name],
            "why_not": self.why_not,
            "files_per_second": self.files_per_second,
            "file_median_ms": median(self.file_ms),
            "file_p95_ms": percentile(self.file_ms, 95),
            "file_cpu_median_ms": median(self.file_cpu_ms),
            "file_ms": self.file_ms,
            "file_cpu_ms": self.file_cpu_ms,
        }


@dataclass(frozen=True, slots=True)
class IndexBench:
    """What was measured."""

    root: Path
    """The dataset."""
    paths: tuple[str, ...]
    """The files, in the order in which they were indexed."""
    num_frames: int
    """Their frames."""
    codecs: tuple[str, ...]
    """Their codecs."""
    timings: tuple[IndexTiming, ...]
    """Both ways."""
    memory_bytes: int
    """What the tables of all files take in memory."""
    sidecar_bytes: int
    """The size of an index file of them."""
    open_ms: list[float]
    """Opening the index file, several times."""
    lookup_ms: list[float]
    """Looking each file up in it."""

    @property
    def ratio(self) -> Ratio | None:
        """How many times as long torchcodec takes for a file."""
        own, peer = ((timing.file_ms, timing.file_cpu_ms) for timing in self.timings)
        return paired("torchcodec / reelseek", peer, own)

    def to_json(self) -> dict[str, Any]:
        """The versioned document."""
        frames = max(1, self.num_frames)
        return {
            "schema": SCHEMA,
            "measured_at": datetime.datetime.now(datetime.timezone.utc).isoformat(
                timespec="seconds"
            ),
            "environment": environment(),
            "dataset": {"root": str(self.root)},
            "num_files": len(self.paths),
            "num_frames": self.num_frames,
            "codecs": list(self.codecs),
            "threads": 1,
            "cache_state": "page cache warm: every file was indexed once before it was timed",
            "builders": [timing.to_json() for timing in self.timings],
            "ratios": [] if self.ratio is None else [self.ratio.to_json()],
            "memory_bytes_per_frame": round(self.memory_bytes / frames, 2),
            "sidecar_bytes": self.sidecar_bytes,
            "sidecar_bytes_per_frame": round(self.sidecar_bytes / frames, 2),
            "sidecar_open_median_ms": median(self.open_ms),
            "sidecar_lookup_median_ms": median(self.lookup_ms),
            "sidecar_open_ms": self.open_ms,
            "sidecar_lookup_ms": self.lookup_ms,
        }


def bench_index(
    dataset: Dataset,
    *,
    files: int = 100,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _text: None,
) -> IndexBench:
    """Time the indexing of a dataset's files.

    Args:
        dataset: An open dataset.
        files: How many of its files at most, chosen at random.
        seed: Of the choice.
        tell: Told what is being done.

    Raises:
        DatasetFormatError: The dataset has no video.
        VideoError: A file can't be indexed.
    """
    paths = _chosen(dataset, files, seed)
    tell(f"indexing {len(paths)} files once")
    tables = [index_tables(path) for path in paths]
    scan, why_not = _torchcodec_scan(paths[0])
    builders: dict[str, Builder] = {REELSEEK: _index}
    if scan is not None:
        builders[TORCHCODEC] = scan
    tell(f"timing {' and '.join(builders)} on {len(paths)} files")
    groups = groups_of("/", [os.fsencode(path) for path in paths], 1)
    times = _time_builders([[os.fsdecode(file) for file in group] for group in groups], builders)
    tell("timing the index file")
    with tempfile.TemporaryDirectory(prefix="reelseek-bench-") as scratch:
        sidecar = make_sidecar(paths, Path(scratch))
        open_ms, lookup_ms = _time_sidecar(sidecar, paths)
    return IndexBench(
        root=dataset.root,
        paths=tuple(paths),
        num_frames=sum(len(known.frames) for known in tables),
        codecs=tuple(sorted({known.frames.stream.codec for known in tables})),
        timings=(
            IndexTiming(REELSEEK, *times[REELSEEK]),
            IndexTiming(TORCHCODEC, *times.get(TORCHCODEC, ([], [])), why_not=why_not),
        ),
        memory_bytes=sum(map(_memory_of, tables)),
        sidecar_bytes=sidecar.num_bytes,
        open_ms=open_ms,
        lookup_ms=lookup_ms,
    )


def _chosen(dataset: Dataset, files: int, seed: int) -> list[str]:
    every = {
        dataset.locate(episode.start, camera).path: None
        for episode in dataset.episodes
        if episode.length
        for camera in dataset.cameras
    }
    if not every:
        raise DatasetFormatError("the dataset has no video", path=dataset.root)
    paths = list(every)
    random.Random(seed).shuffle(paths)  # noqa: S311 - a choice, not a secret
    return paths[:files]


def _index(paths: Sequence[str]) -> object:
    return index_files("/", [os.fsencode(path) for path in paths])


def _torchcodec_scan(path: str) -> tuple[Builder | None, str]:
    """torchcodec's scan, tried once; or why it can't be had."""
    try:
        activate()
        from torchcodec.decoders import VideoDecoder

        def scan(paths: Sequence[str]) -> object:
            for path in paths:
                VideoDecoder(path, num_ffmpeg_threads=1, seek_mode="exact")
            return None

        scan([path])
    except (ImportError, OSError, RuntimeError, ValueError, BackendError) as exc:
        return None, str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
    return scan, ""


def _time_builders(
    groups: list[list[str]], builders: dict[str, Builder]
) -> dict[str, tuple[list[float], list[float]]]:
    """For each builder a file's time in each group, on the wall's clock and on the processor's."""
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in builders}
    with only_new_garbage():
        for number, paths in enumerate(groups * math.ceil(TIMED_GROUPS / len(groups))):
            with no_garbage_collection():
                for name in in_turn(list(builders), number):
                    started = now()
                    made = builders[name](paths)
                    for known, took in zip(times[name], milliseconds(started, now()), strict=True):
                        known.append(took / len(paths))
                    del made
    return times


def _time_sidecar(sidecar: Sidecar, paths: Sequence[str]) -> tuple[list[float], list[float]]:
    open_ms, lookup_ms = [], []
    for _ in range(OPENINGS):
        started = now()
        again = Sidecar(sidecar.path, sidecar.folder)
        open_ms.append(milliseconds(started, now())[0])
    for path in paths:
        started = now()
        found = again.lookup(path)
        lookup_ms.append(milliseconds(started, now())[0])
        if found is None:
            raise UnsupportedVideoError("the index file doesn't give it back", path=path)
    return open_ms, lookup_ms


def _memory_of(tables: VideoTables) -> int:
    """Bytes of the arrays of a file's tables; those that both tables hold count once."""
    holders: list[FrameTable | UnitTable] = [tables.frames]
    if isinstance(tables.units, UnitTable):
        holders.append(tables.units)
    arrays = {}
    for holder in holders:
        for name in [column.name for column in fields(holder)]:
            value = getattr(holder, name)
            if isinstance(value, np.ndarray):
                base = value if value.base is None else value.base
                arrays[id(base)] = base.nbytes if isinstance(base, np.ndarray) else value.nbytes
            elif isinstance(value, bytes):
                arrays[id(value)] = sys.getsizeof(value)
    return sum(arrays.values())
