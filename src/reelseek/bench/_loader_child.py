"""A process that reads batches in one way, as it is told to, line by line.

Each way has a process of its own: what one library loads, allocates or breaks isn't charged to
another. The lines in and out are JSON.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reelseek.bench._loader_ways import WAYS, Job, open_ours, versions_of

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

SECONDS_AT_REST = 0.2
"""Without any work, after which workers are taken to have nothing left to read ahead."""
MOST_SECONDS_READING_AHEAD = 60.0


class Reading:
    """One way's loader, read on and on."""

    def __init__(self, name: str, job: Job, samples: list[int]) -> None:
        self._way = WAYS[name]
        self._job = job
        self._samples = samples
        self._loader: Any = None
        self._batches: Iterator[Any] = iter(())

    def check(self, samples: list[int], output: str) -> dict[str, Any]:
        """Read samples in this process, and write them to a file to be compared."""
        job = dataclasses.replace(self._job, num_workers=0)
        cameras = open_ours(job, output="numpy").cameras
        rows: dict[int, dict[str, Any]] = {}
        for batch in self._way.make(job, samples):
            for place, number in enumerate(batch["index"].tolist()):
                rows[int(number)] = {
                    key: as_bytes(batch[key][place])
                    if key in cameras
                    else batch[key][place].numpy()
                    for key in (*cameras, "action")
                }
        arrays: dict[str, Any] = {
            key: np.stack([rows[number][key] for number in samples]) for key in (*cameras, "action")
        }
        np.savez(output, **arrays)
        return {}

    def begin(self) -> dict[str, Any]:
        """Start the workers, and wait for the first batch."""
        self._loader = self._way.make(self._job, self._samples)
        started = time.perf_counter()
        self._batches = self._on_and_on()
        next(self._batches)
        return {"seconds": time.perf_counter() - started}

    def measure(self, seconds: float) -> dict[str, Any]:
        """Read for about this long, or whole epochs, with the pipeline as full as before."""
        if self._way.is_whole_epoch:
            return self._measured(seconds, iter(self._loader), whole=True)
        # What was read ahead in the meantime doesn't count.
        for _ in range(self._job.num_workers * 2):
            next(self._batches)
        return self._measured(seconds, self._batches, whole=False)

    def _measured(self, seconds: float, batches: Iterator[Any], *, whole: bool) -> dict[str, Any]:
        count, cpu = 0, self._cpu_seconds()
        started = time.perf_counter()
        for batch in batches:
            count += len(batch["action"])
            if not whole and time.perf_counter() - started >= seconds:
                break
        taken = time.perf_counter() - started
        cpu = self._cpu_seconds() - cpu
        self._let_workers_rest()
        return {
            "samples": count,
            "seconds": taken,
            "cpu_seconds": cpu,
            "worker_bytes": [resident_bytes(pid) for pid in self._pids()],
        }

    def _let_workers_rest(self) -> None:
        """Wait until they have read ahead what they may: the next way's turn is to be its own."""
        last, rested_at = -1.0, time.monotonic()
        deadline = rested_at + MOST_SECONDS_READING_AHEAD
        while time.monotonic() < min(rested_at + SECONDS_AT_REST, deadline):
            used = self._cpu_seconds()
            if used > last:
                last, rested_at = used, time.monotonic()
            time.sleep(0.02)

    def _on_and_on(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._loader for _ in itertools.count())

    def _pids(self) -> list[int]:
        iterator = getattr(self._loader, "_iterator", None)
        return [worker.pid for worker in getattr(iterator, "_workers", ())] or [os.getpid()]

    def _cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, self._pids()))


def as_bytes(frames: Any) -> Any:
    """(T, H, W, 3) uint8 of a sample's frames; LeRobot's are floats from 0 to 1."""
    import torch

    if frames.dtype != torch.uint8:
        frames = (frames * 255).round().to(torch.uint8)
    return frames.reshape(-1, *frames.shape[-3:]).permute(0, 2, 3, 1).numpy()


def cpu_seconds(pid: int) -> float:
    """The processor's time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def resident_bytes(pid: int) -> int:
    """The memory of a process that is in use."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


def main() -> None:
    """Obey the lines of stdin; answer each with a line on the stdout that was there at first."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print isn't an answer
    request = json.loads(sys.stdin.readline())
    job = Job(**{**request["job"], "offsets": tuple(request["job"]["offsets"])})
    reading = Reading(request["way"], job, request["samples"])

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    try:
        say({"version": versions_of(WAYS[request["way"]])})
        for line in sys.stdin:
            command, arguments = json.loads(line)
            say(getattr(reading, command)(*arguments))
    except Exception as exc:  # noqa: BLE001 - whatever a library raises is the answer
        say({"error": f"{type(exc).__name__}: {' '.join(str(exc).split())}"[:400]})


if __name__ == "__main__":
    main()
