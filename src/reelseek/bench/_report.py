"""A seek benchmark's JSON document, and the words of its table."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reelseek.bench._environment import environment
from reelseek.bench._floor import NAME as FLOOR
from reelseek.bench._floor import USAGE as FLOOR_USAGE
from reelseek.bench._plan import Plan
from reelseek.bench._ratios import ratios
from reelseek.bench._timing import Timing, median

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

SCHEMA = "reelseek.bench.seek/2"
BASELINE = "pyav (typical)"
"""What speed is compared with, where it was measured."""
CACHE_STATE = (
    "page cache warm: every file was decoded once, in another process, before it was timed"
)
COLD = (
    "cold: the first touch of each of {files} files, none twice: look-up in the index (reelseek's "
    "backends; plain calls, in brackets, find frames in their own way), open, read, close"
)
FIRST = "first read: the first without an index, on {files} files; reelseek's backends index it"


def document(dataset: Dataset, plan: Plan, timings: Sequence[Timing]) -> dict[str, Any]:
    """The versioned JSON document of ``reelseek bench seek``."""
    return {
        "schema": SCHEMA,
        "measured_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "environment": environment(),
        "dataset": {
            "root": str(dataset.root),
            "version": dataset.info.version,
            "num_episodes": len(dataset.episodes),
            "num_frames": len(dataset),
            "fps": dataset.fps,
        },
        "settings": {
            "cameras": list(plan.cameras),
            "offsets": list(plan.offsets),
            "num_seeks": len(plan.seeks),
            "seed": plan.seed,
            "threads": 1,
            "cache_state": CACHE_STATE,
            "columns": column_notes(timings),
        },
        "videos": video_facts(plan),
        "files": [facts.to_json() for facts in plan.files.values()],
        "seeks": [
            {
                "index": seek.index,
                "reads": [
                    {
                        "camera": read.camera,
                        "path": read.path,
                        "frames": list(read.frames),
                        "read_before": list(read.elsewhere),
                    }
                    for read in seek.reads
                ],
            }
            for seek in plan.seeks
        ],
        "ratios": [ratio.to_json() for ratio in ratios(timings)],
        "backends": [timing.to_json() for timing in timings],
    }


def column_notes(timings: Sequence[Timing]) -> list[str]:
    """What stands in the columns of cold and first reads."""
    cold, first = (
        max((len(times) for times in every), default=0)
        for every in (
            [timing.cold_ms for timing in timings],
            [timing.first_read_ms for timing in timings],
        )
    )
    notes = [COLD.format(files=cold), FIRST.format(files=first)]
    if any(timing.name == FLOOR for timing in timings):
        notes.append(f"floor: {FLOOR_USAGE}")
    return notes


def video_facts(plan: Plan) -> dict[str, Any]:
    """Codec, picture sizes and mean GOP of the files that were read."""
    files = plan.files.values()
    num_frames = sum(facts.num_frames for facts in files)
    return {
        "codecs": sorted({facts.codec for facts in files}),
        "sizes": sorted({f"{facts.width}x{facts.height}" for facts in files}),
        "mean_gop": round(num_frames / max(1, sum(f.num_key_frames for f in files)), 2),
        "mean_bytes_per_frame": round(sum(f.num_bytes for f in files) / max(1, num_frames)),
        "num_files": len(files),
    }


def headline(plan: Plan, root: Path) -> str:
    """What was measured, in one line."""
    facts = video_facts(plan)
    seek = f"{len(plan.offsets)} frame{'s' * (len(plan.offsets) > 1)}"
    return (
        f"{root.name}: {'/'.join(facts['codecs'])} {', '.join(facts['sizes'])}, "
        f"a key frame every {facts['mean_gop']:g}; {len(plan.seeks)} random seeks of {seek} "
        f"({', '.join(f'+{n}' if n >= 0 else str(n) for n in plan.offsets)}), "
        f"{len(plan.cameras)} camera{'s' * (len(plan.cameras) > 1)}"
    )


def speedup(timing: Timing, timings: Sequence[Timing]) -> float | None:
    """How many times as fast as the baseline; None where either wasn't timed."""
    base = next((median(other.seek_ms) for other in timings if other.name == BASELINE), None)
    own = median(timing.seek_ms)
    return base / own if base and own else None


def note(timing: Timing) -> str:
    """Why it has no times, in a few words; or what is peculiar to it."""
    check = timing.check
    if check.status == "right":
        colours = f"colours within {check.max_difference}; " * bool(check.max_difference)
        opens = "opens the file in each call, FFmpeg chooses threads" * (timing.name == BASELINE)
        return f"{colours}{opens}".rstrip("; ")
    if check.status == "wrong":
        return f"{check.wrong} of {check.reads} reads DIFFER: {check.reason}"
    if check.status == "fails" and check.reads:
        return f"{check.failed} of {check.reads} reads fail: {check.reason}"
    return check.reason
