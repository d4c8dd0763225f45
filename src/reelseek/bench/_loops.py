"""The timed loops: the same reads for all decoders, in turn."""

from __future__ import annotations

import gc
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from reelseek.bench import _floor
from reelseek.bench._plan import FileRead, Plan, Seek
from reelseek.bench._readers import PLAIN, Reader, open_reader
from reelseek.bench._timing import Timing
from reelseek.index import FrameTable, index_video
from reelseek.index._unit_build import build_units
from reelseek.video.backends import Decoder, OpenRequest, load_backend
from reelseek.video.backends._indexed import IndexedDecoder

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
    """Time the first touch of each file: open, read, close; no file comes twice."""
    opens = [name for name in names if name != _floor.NAME]
    for number, read in enumerate(plan.cold_reads()):
        table = index_video(read.path)
        ready = {name: _cold_read(plan, name, read, table) for name in opens}
        with _no_garbage_collection():
            for name in _in_turn(opens, number):
                started = time.perf_counter()
                ready[name]()
                timings[name].cold_ms.append(_milliseconds(started, time.perf_counter()))


def time_first_reads(plan: Plan, names: Sequence[str], timings: dict[str, Timing]) -> None:
    """Time opening a file that isn't indexed, and one read."""
    opens = [name for name in names if name != _floor.NAME]
    for number, read in enumerate(plan.first_reads(FIRST_READS)):
        with _no_garbage_collection():
            for name in _in_turn(opens, number):
                started = time.perf_counter()
                reader = _opened(plan, name, read)
                reader.read(read.frames)
                timings[name].first_read_ms.append(_milliseconds(started, time.perf_counter()))
                reader.close()


def time_seeks(plan: Plan, names: Sequence[str], timings: dict[str, Timing]) -> None:
    """Time all seeks with their files open."""
    for number, seek in enumerate(plan.seeks):
        with _no_garbage_collection():
            for name in _in_turn(names, number):
                _time_seek(plan, name, seek, timings[name])


def _time_seek(plan: Plan, name: str, seek: Seek, timing: Timing) -> None:
    """Time one sample with its files open; each was read elsewhere before."""
    readers = [_opened(plan, name, read) for read in seek.reads]
    for reader, read in zip(readers, seek.reads, strict=True):
        if isinstance(reader, _floor.FloorReader):
            reader.prepare(read.frames)
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


def _cold_read(plan: Plan, name: str, read: FileRead, table: FrameTable) -> Callable[[], None]:
    """What is timed: for a backend with the index at hand, for a plain call as it is."""
    if name in PLAIN:
        return lambda: _read_once(_opened(plan, name, read), read.frames)
    open_known = _opener(name, OpenRequest(read.path, table, "cpu", 1))
    shape = (len(read.frames), table.stream.height, table.stream.width, 3)

    def read_known() -> None:
        decoder = open_known()
        decoder.read(read.frames, np.empty(shape, np.uint8))
        decoder.close()

    return read_known


def _opener(name: str, request: OpenRequest) -> Callable[[], Decoder]:
    if name != "indexed":
        return lambda: load_backend(name).open_decoder(request)
    units = build_units(request.path, request.table)
    if isinstance(units, str):
        return lambda: load_backend(name).open_decoder(request)
    return lambda: IndexedDecoder(request, units)


def _read_once(reader: Reader, frames: Sequence[int]) -> None:
    reader.read(frames)
    reader.close()


def _in_turn(names: Sequence[str], number: int) -> list[str]:
    """The names in an order of its own each time, so that none always follows the same one."""
    order = list(names)
    random.Random(number).shuffle(order)  # noqa: S311 - a choice, not a secret
    return order


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
