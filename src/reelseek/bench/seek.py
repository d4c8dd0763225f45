"""``reelseek bench seek``: what random access costs with each decoder, on your own data.

Every backend's frames are compared with FFmpeg's decode in a subprocess first. Those that return
the right frames are then timed in this process: the same seeks for all, in turn, so that a busy
moment of the machine meets them alike.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reelseek.bench._child import ReadReport, run_oracle, run_reader
from reelseek.bench._floor import NAME as FLOOR
from reelseek.bench._loops import (
    only_new_garbage,
    time_cold_reads,
    time_first_reads,
    time_seeks,
    warm_up_libraries,
)
from reelseek.bench._plan import Plan, make_plan
from reelseek.bench._readers import plain_of
from reelseek.bench._timing import Timing
from reelseek.errors import DecodeError
from reelseek.video.backends import backend_names

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

BASELINES = ("pyav (typical)", "torchcodec (exact)", "torchcodec (approximate)")
"""Plain calls that are measured beside the backends."""
TIMEOUT_SECONDS = 600.0

Tell = Callable[[str], None]


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
        backends: Names of backends and plain calls; None for all backends, BASELINES and the
            floor.
        seed: Of the random choice.
        timeout_seconds: For each subprocess that compares frames.
        tell: Told what is being done.

    Raises:
        DatasetError, VideoError: The dataset or a file can't be read.
    """
    tell("choosing the seeks")
    plan = make_plan(dataset, seeks=seeks, offsets=offsets, cameras=cameras, seed=seed)
    return plan, time_plan(plan, backends, timeout_seconds=timeout_seconds, tell=tell)


def time_plan(
    plan: Plan,
    backends: Sequence[str] | None,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    tell: Tell = lambda _text: None,
) -> tuple[Timing, ...]:
    """Compare and time the reads of a plan; see ``bench_seek``."""
    names = tuple(backends or (*backend_names(), *BASELINES, FLOOR))
    checks = _check(plan, names, timeout_seconds, tell)
    good = [check.reader for check in checks if check.status == "right"]
    timings = {check.reader: Timing(check) for check in checks}
    if good:
        warm_up_libraries(plan, good)
        tell(f"timing cold reads, first reads and {len(plan.seeks)} seeks with: {', '.join(good)}")
        with only_new_garbage():
            time_cold_reads(plan, good, timings)
            time_first_reads(plan, good, timings)
            time_seeks(plan, good, timings)
    return tuple(timings.values())


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
