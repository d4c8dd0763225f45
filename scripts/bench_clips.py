"""Random seeks in single files, without a dataset: what `reelseek bench seek` measures.

python scripts/bench_clips.py clip.mp4 ...       # the indexed engine, the floor and torchcodec
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

from reelseek.bench._plan import FileFacts, FileRead, Plan, Seek, file_facts
from reelseek.bench._ratios import ratios
from reelseek.bench._timing import median
from reelseek.bench.seek import time_plan
from reelseek.video import open_video

SEEKS, OFFSETS = 40, (0, 16)
BACKENDS = ("indexed", "torchcodec (exact)", "torchcodec (approximate)", "floor")


def plan_of(paths: Sequence[str], seed: int = 0) -> Plan:
    """Random reads of these files."""
    numbers = random.Random(seed)  # noqa: S311 - a choice, not a secret
    files: dict[str, FileFacts] = {}
    for path in paths:
        with open_video(path, backend="pyav") as video:
            files[video.path] = file_facts(video)
    seeks = []
    for number in range(SEEKS):
        facts = list(files.values())[number % len(files)]
        bases = [numbers.randrange(facts.num_frames - max(OFFSETS)) for _ in range(2)]
        frames, elsewhere = (tuple(base + offset for offset in OFFSETS) for base in bases)
        seeks.append(Seek(bases[0], (FileRead("", facts.path, frames, elsewhere),)))
    return Plan(tuple(seeks), OFFSETS, ("",), files, seed)


def main(paths: Sequence[str]) -> None:
    """Print milliseconds and ratios."""
    plan = plan_of(paths)
    timings = time_plan(plan, BACKENDS)
    print(f"{', '.join(Path(path).name for path in paths)}: {SEEKS} seeks of {OFFSETS}")
    for timing in timings:
        warm, cold = median(timing.seek_ms), median(timing.cold_ms)
        print(f"{timing.name:26} warm {warm} ms  cold {cold} ms  {timing.check.reason}")
    for ratio in ratios(timings):
        print(ratio)


if __name__ == "__main__":
    main(sys.argv[1:])
