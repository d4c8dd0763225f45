"""``reelseek bench seek``: what random access costs with each decoder, on your own data.

Every backend's frames are compared with FFmpeg's decode in a subprocess first. Those that return
the right frames are then timed in this process: the same seeks for all, in turn, so that a busy
moment of the machine meets them alike.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.bench._child import ReadReport, run_oracle, run_reader
from reelseek.bench._plan import FileRead, Plan, Seek, make_plan
from reelseek.bench._readers import PLAIN, Reader, open_reader, plain_of
from reelseek.errors import DecodeError
from reelseek.video.backends import backend_names

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

BASELINES = ("pyav (typical)", "torchcodec (approximate)")
"""Plain calls that are measured beside the backends."""
FIRST_READS = 5
"""Files whose first read is timed."""
TIMEOUT_SECONDS = 600.0

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Timing:
    """What one backend's reads took. All times in milliseconds."""

    check: ReadReport
    """What came of comparing its frames."""
    seek_ms: list[float] = field(default_factory=list)
    """One camera's frames of one seek, its file open: for each seek, each camera in turn."""
    sample_ms: list[float] = field(default_factory=list)
    """All cameras of one seek, one after another."""
    first_read_ms: list[float] = field(default_factory=list)
    """Opening a file for the first time, and one read."""

    @property
    def name(self) -> str:
        """The backend's name, or the plain call's."""
        return self.check.reader

    @property
    def is_timed(self) -> bool:
        """True where there are times: all frames were right."""
        return bool(self.seek_ms)

    @property
    def usage(self) -> str:
        """How it is used."""
        return PLAIN[self.name].usage if self.name in PLAIN else "reelseek.open_video, one thread"

    def to_json(self) -> dict[str, Any]:
        """For the JSON document: all raw times, and their summary."""
        return {
            "name": self.name,
            "version": self.check.version,
            "usage": self.usage,
            "is_timed": self.is_timed,
            "seek_median_ms": median(self.seek_ms),
            "seek_p95_ms": percentile(self.seek_ms, 95),
            "sample_median_ms": median(self.sample_ms),
            "first_read_median_ms": median(self.first_read_ms),
            "seek_ms": self.seek_ms,
            "sample_ms": self.sample_ms,
            "first_read_ms": self.first_read_ms,
            "check": self.check.to_json(),
        }


def percentile(values: Sequence[float], percent: float) -> float | None:
    """A percentile in the values' unit; None of no values."""
    return round(float(np.percentile(values, percent)), 4) if values else None


def median(values: Sequence[float]) -> float | None:
    """The median; None of no values."""
    return percentile(values, 50)


def bench_seek(
    dataset: Dataset,
    *,
    seeks: int = 30,
    offsets: Sequence[int] = (0, 16),
    cameras: Sequence[str] | None = None,
    backends: Sequence[str] | None = None,
    seed: int = 0,
    timeout_seconds: float = TIMEOUT_SECONDS,
    tell: Tell = lambda _text: None,
) -> tuple[Plan, tuple[Timing, ...]]:
    """Compare and time random seeks.

    Args:
        dataset: An open dataset.
        seeks: How many random samples.
        offsets: Frames of one seek, in rows from the sample's own.
        cameras: Keys of cameras; None for all.
        backends: Names of backends and plain calls; None for all backends and BASELINES.
        seed: Of the random choice.
        timeout_seconds: For each subprocess that compares frames.
        tell: Told what is being done.

    Raises:
        DatasetError, VideoError: The dataset or a file can't be read.
    """
    tell("choosing the seeks")
    plan = make_plan(dataset, seeks=seeks, offsets=offsets, cameras=cameras, seed=seed)
    names = tuple(backends or (*backend_names(), *BASELINES))
    checks = _check(plan, names, timeout_seconds, tell)
    good = [check.reader for check in checks if check.status == "right"]
    timings = {check.reader: Timing(check) for check in checks}
    if good:
        _warm_up_libraries(plan, good)
        tell(f"timing first reads and {len(plan.seeks)} seeks with: {', '.join(good)}")
        _time_first_reads(plan, good, timings)
        _time_seeks(plan, good, timings)
    return plan, tuple(timings.values())


def _check(
    plan: Plan, names: Sequence[str], timeout_seconds: float, tell: Tell
) -> list[ReadReport]:
    """Compare every read of the plan with FFmpeg's decode, one subprocess for each backend."""
    with tempfile.TemporaryDirectory(prefix="reelseek-oracle-") as scratch:
        jobs = [
            {"path": path, "oracle": str(Path(scratch) / f"{number}.npz"), "reads": reads}
            for number, (path, reads) in enumerate(plan.reads_by_file().items())
        ]
        tell(f"FFmpeg decodes {len(jobs)} files from their start")
        _decode_with_ffmpeg(jobs, timeout_seconds)
        found = []
        for name in names:
            tell(f"comparing the frames of {name}")
            found.append(_compare(name, jobs, timeout_seconds))
        return found


def _compare(name: str, jobs: list[dict[str, Any]], timeout_seconds: float) -> ReadReport:
    report = run_reader(name, jobs, timeout_seconds=timeout_seconds)
    plain = plain_of(name)
    if report.status != "refuses" or report.detail or plain is None:
        return report
    words = run_reader(plain, jobs[:1], timeout_seconds=timeout_seconds)
    return report.in_the_words_of(words)


def _decode_with_ffmpeg(jobs: list[dict[str, Any]], timeout_seconds: float) -> None:
    """Make what the jobs' frames are compared with."""
    last = [max(max(frames) for frames in job["reads"]) for job in jobs]
    requests = [
        {"path": job["path"], "output": job["oracle"], "until": until}
        for job, until in zip(jobs, last, strict=True)
    ]
    for facts, request in zip(
        run_oracle(requests, timeout_seconds=timeout_seconds), requests, strict=True
    ):
        if "error" in facts:
            raise DecodeError(facts["error"]["message"])
        if facts["num_frames_decoded"] <= request["until"]:
            raise DecodeError(
                f"FFmpeg's decode ends after {facts['num_frames_decoded']} frames",
                remedy="Run `reelseek probe` on this file",
                path=request["path"],
            )


def _warm_up_libraries(plan: Plan, names: Sequence[str]) -> None:
    """Let every library load and allocate what it does once, on a file that isn't the plan's."""
    smallest = min(plan.files.values(), key=lambda facts: facts.num_bytes)
    reads = plan.reads_by_file()[smallest.path][:4]
    with tempfile.TemporaryDirectory(prefix="reelseek-bench-") as scratch:
        copy = Path(shutil.copy(smallest.path, scratch))
        for name in names:
            reader = open_reader(name, str(copy), smallest.seconds)
            for frames in reads:
                reader.read(frames)
            reader.close()


def _time_first_reads(plan: Plan, names: Sequence[str], timings: dict[str, Timing]) -> None:
    for number, read in enumerate(plan.first_reads(FIRST_READS)):
        with _no_garbage_collection():
            for name in _in_turn(names, number):
                started = time.perf_counter()
                reader = _opened(plan, name, read)
                reader.read(read.frames)
                timings[name].first_read_ms.append(_milliseconds(started, time.perf_counter()))
                reader.close()


def _time_seeks(plan: Plan, names: Sequence[str], timings: dict[str, Timing]) -> None:
    for number, seek in enumerate(plan.seeks):
        with _no_garbage_collection():
            for name in _in_turn(names, number):
                _time_seek(plan, name, seek, timings[name])


def _time_seek(plan: Plan, name: str, seek: Seek, timing: Timing) -> None:
    """Time one sample with its files open; each was read elsewhere before."""
    readers = [_opened(plan, name, read) for read in seek.reads]
    for reader, read in zip(readers, seek.reads, strict=True):
        reader.read(read.elsewhere)
    marks = [time.perf_counter()]
    for reader, read in zip(readers, seek.reads, strict=True):
        reader.read(read.frames)
        marks.append(time.perf_counter())
    timing.seek_ms.extend(map(_milliseconds, marks, marks[1:]))
    timing.sample_ms.append(_milliseconds(marks[0], marks[-1]))
    for reader in readers:
        reader.close()


def _opened(plan: Plan, name: str, read: FileRead) -> Reader:
    return open_reader(name, read.path, plan.files[read.path].seconds)


def _in_turn(names: Sequence[str], number: int) -> list[str]:
    """The names, each time beginning with another one."""
    start = number % len(names)
    return [*names[start:], *names[:start]]


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _milliseconds(started: float, ended: float) -> float:
    return round((ended - started) * 1000, 4)
