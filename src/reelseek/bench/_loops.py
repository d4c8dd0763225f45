"""The timed loops: the same reads for all decoders, in turn."""

from __future__ import annotations

import gc
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reelseek.bench import _floor
from reelseek.bench._plan import FileRead, Plan, Seek
from reelseek.bench._readers import PLAIN, Reader, open_reader
from reelseek.bench._timing import Timing
from reelseek.index import Sidecar, index_tables
from reelseek.index._sidecar_writer import SidecarWriter
from reelseek.index._stamp import stamp_in
from reelseek.index._video_record import write_record
from reelseek.video._open import open_with_tables

FIRST_READS = 5
"""Files whose first read without an index is timed."""


def warm_up_libraries(plan: Plan, names: Sequence[str]) -> None:
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


def time_cold_reads(plan: Plan, names: Sequence[str], timings: dict[str, Timing]) -> None:
    """Time the first touch of each file: open, read, close; no file comes twice.

    Before each, untimed, the same decoder reads the file before it once more: as in a worker that
    goes from file to file, and as before a warm read. After each it reads the same frames from
    the open file: the machine's speed changes within a run, and less so between neighbours.
    """
    opens = [name for name in names if name != _floor.NAME]
    with tempfile.TemporaryDirectory(prefix="reelseek-bench-") as scratch:
        index = make_sidecar(list(plan.files), Path(scratch))
        reads = plan.cold_reads()
        for number, read in enumerate(reads):
            with no_garbage_collection():
                for name in in_turn(opens, number):
                    if number:
                        _read_cold(plan, name, reads[number - 1], index)
                    started = now()
                    _read_cold(plan, name, read, index)
                    wall, cpu = milliseconds(started, now())
                    timings[name].cold_ms.append(wall)
                    timings[name].cold_cpu_ms.append(cpu)
                    wall, cpu = _time_read(plan, name, read)
                    timings[name].beside_cold_ms.append(wall)
                    timings[name].beside_cold_cpu_ms.append(cpu)


def _time_read(plan: Plan, name: str, read: FileRead) -> tuple[float, float]:
    """Time a read of an open file.

    It was read at its end before, from where no decoder goes on to these frames: so as many frames
    are decoded as in a cold read.
    """
    reader = _opened(plan, name, read)
    to_the_end = plan.files[read.path].num_frames - 1 - max(read.frames)
    reader.read(tuple(frame + to_the_end for frame in read.frames))
    started = now()
    reader.read(read.frames)
    ended = now()
    reader.close()
    return milliseconds(started, ended)


def make_sidecar(paths: Sequence[str], folder: Path) -> Sidecar:
    """An index of some files, in a folder of its own."""
    root = os.path.commonpath([str(Path(path).parent) for path in paths])
    writer = SidecarWriter(folder / "index.bin", folder / "index.part")
    for path in paths:
        relative = os.fsencode(os.path.relpath(path, root))
        record = write_record(relative, *stamp_in(os.stat(path)), index_tables(path))
        writer.add(record, relative)
    writer.finish()
    return Sidecar(str(folder / "index.bin"), root)


def time_first_reads(plan: Plan, names: Sequence[str], timings: dict[str, Timing]) -> None:
    """Time opening a file that isn't indexed, and one read."""
    opens = [name for name in names if name != _floor.NAME]
    for number, read in enumerate(plan.first_reads(FIRST_READS)):
        with no_garbage_collection():
            for name in in_turn(opens, number):
                started = now()
                reader = _opened(plan, name, read)
                reader.read(read.frames)
                timings[name].first_read_ms.append(milliseconds(started, now())[0])
                reader.close()


def time_seeks(plan: Plan, names: Sequence[str], timings: dict[str, Timing]) -> None:
    """Time all seeks with their files open."""
    for number, seek in enumerate(plan.seeks):
        with no_garbage_collection():
            for name in in_turn(names, number):
                _time_seek(plan, name, seek, timings[name])


def _time_seek(plan: Plan, name: str, seek: Seek, timing: Timing) -> None:
    """Time one sample with its files open; each was read elsewhere before."""
    readers = [_opened(plan, name, read) for read in seek.reads]
    for reader, read in zip(readers, seek.reads, strict=True):
        if isinstance(reader, _floor.FloorReader):
            reader.prepare(read.frames)
        reader.read(read.elsewhere)
    marks = [now()]
    for reader, read in zip(readers, seek.reads, strict=True):
        reader.read(read.frames)
        marks.append(now())
    for wall, cpu in map(milliseconds, marks, marks[1:]):
        timing.seek_ms.append(wall)
        timing.seek_cpu_ms.append(cpu)
    timing.sample_ms.append(milliseconds(marks[0], marks[-1])[0])
    for reader in readers:
        reader.close()


def _opened(plan: Plan, name: str, read: FileRead) -> Reader:
    return open_reader(name, read.path, plan.files[read.path].seconds)


def _read_cold(plan: Plan, name: str, read: FileRead, index: Sidecar) -> None:
    """What is timed: a backend looks the file up in the index, a plain call finds its own way."""
    if name in PLAIN:
        reader = _opened(plan, name, read)
        reader.read(read.frames)
        reader.close()
        return
    with open_with_tables(read.path, index.lookup(read.path), backend=name) as video:
        video.get_frames_at(read.frames).numpy()


def in_turn(names: Sequence[str], number: int) -> list[str]:
    """The names in an order of its own each time, so that none always follows the same one."""
    order = list(names)
    random.Random(number).shuffle(order)  # noqa: S311 - a choice, not a secret
    return order


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """Let the collector leave alone what is there already: torch's modules take it 0.2 s."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect garbage first, and not meanwhile."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def now() -> tuple[float, float]:
    """Seconds on the wall's clock and on the processor's."""
    return time.perf_counter(), time.process_time()


def milliseconds(started: tuple[float, float], ended: tuple[float, float]) -> tuple[float, float]:
    """Both times in between."""
    return round((ended[0] - started[0]) * 1000, 4), round((ended[1] - started[1]) * 1000, 4)
