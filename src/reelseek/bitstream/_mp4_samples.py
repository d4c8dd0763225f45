"""The tables of an MP4 track that say of each sample where it is, and when.

Source: ISO/IEC 14496-12:2022, 8.6 and 8.7.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream._mp4_boxes import Box, Mp4Error, count_at, fields_at, name_of, numbers_at

MAX_EQUAL_SAMPLES = 1 << 20
"""Samples of one size, which no table behind them bounds: ten hours at 30 frames a second."""
MAX_SAMPLES = 1 << 32
TWO_COUNTS, CHUNKS = struct.Struct(">2I"), struct.Struct(">3I")
RUN, SIGNED_RUN = np.dtype(">u4, >u4"), np.dtype(">u4, >i4")
"""How many, and the value that they have."""
CHUNK_RUN = np.dtype(">u4, >u4, >u4")
"""The first chunk, the samples in each, the sample entry."""


def read_sizes(data: bytes, found: dict[bytes, Box]) -> NDArray[np.int64]:
    """stsz or stz2, 8.7.3."""
    if b"stsz" in found:
        box = found[b"stsz"]
        same, count = fields_at(data, box, box.start + 4, TWO_COUNTS)
        if same:
            return np.full(_bounded(count, box), same, np.int64)
        return numbers_at(data, box, box.start + 12, count, ">u4").astype(np.int64)
    if b"stz2" not in found:
        raise Mp4Error("stsz", 0, "there is none in the video track")
    box = found[b"stz2"]
    count = count_at(data, box, box.start + 8)
    bits = data[box.start + 7]
    if bits == 4:
        packed = numbers_at(data, box, box.start + 12, (count + 1) // 2, "u1")
        return np.stack([packed >> 4, packed & 15], 1).reshape(-1)[:count].astype(np.int64)
    if bits not in (8, 16):
        raise Mp4Error("stz2", box.start, f"its fields have {bits} bits")
    return numbers_at(data, box, box.start + 12, count, f">u{bits // 8}").astype(np.int64)


def read_times(data: bytes, box: Box, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """stts, 8.6.1.2: decoding times and durations."""
    duration = _expanded(data, box, count, RUN)
    return _sums_before(duration), duration


def read_composition(data: bytes, box: Box | None, count: int) -> NDArray[np.int64]:
    """ctts, 8.6.1.3."""
    if box is None:
        return np.zeros(count, np.int64)
    return _expanded(data, box, count, SIGNED_RUN)


def _expanded(data: bytes, box: Box, count: int, kind: np.dtype[Any]) -> NDArray[np.int64]:
    """Runs of (number of samples, value) as a value for each sample."""
    entries = count_at(data, box, box.start + 4)
    runs = numbers_at(data, box, box.start + 8, entries, kind)
    if entries == 1 and runs.item()[0] == count:
        return np.full(count, runs.item()[1], np.int64)
    lengths = runs["f0"].astype(np.int64)
    covered = int(np.add.reduce(lengths))
    if covered != count:
        raise Mp4Error(
            name_of(data, box), box.start, f"it covers {covered} samples of {count}",
        )  # fmt: skip
    return np.repeat(runs["f1"].astype(np.int64), lengths)


def _sums_before(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each value the sum of those before it."""
    sums = np.zeros(len(values), np.int64)
    np.cumsum(values[:-1], out=sums[1:])
    return sums


def read_sync(data: bytes, box: Box | None, count: int) -> NDArray[np.bool_]:
    """stss, 8.6.2; without it every sample is a sync sample."""
    if box is None:
        return np.ones(count, np.bool_)
    numbers = numbers_at(data, box, box.start + 8, count_at(data, box, box.start + 4), ">u4")
    is_sync = np.zeros(count + 2, np.bool_)  # with room for numbers that no sample has
    is_sync[np.minimum(numbers, count + 1)] = True
    return is_sync[1:-1]


def read_offsets(
    data: bytes, found: dict[bytes, Box], size: NDArray[np.int64]
) -> NDArray[np.int64]:
    """stsc with stco or co64, 8.7.4 and 8.7.5: each sample's position in the file."""
    wide = b"co64" in found
    box = found.get(b"co64") or found.get(b"stco")
    if box is None:
        raise Mp4Error("stco", 0, "there is none in the video track")
    count = count_at(data, box, box.start + 4)
    chunks = numbers_at(data, box, box.start + 8, count, ">u8" if wide else ">u4").astype(np.int64)
    per_chunk = _samples_per_chunk(data, found[b"stsc"], count)
    held = int(np.add.reduce(per_chunk))
    if held != len(size):
        raise Mp4Error(
            "stsc", found[b"stsc"].start, f"its chunks hold {held} samples of {len(size)}",
        )  # fmt: skip
    before = _sums_before(size)
    if count == 1 or len(size) == 0:
        return before + chunks[: len(size)]
    starts = chunks - before[np.minimum(_sums_before(per_chunk), len(size) - 1)]
    offsets: NDArray[np.int64] = np.repeat(starts, per_chunk) + before
    return offsets


def _samples_per_chunk(data: bytes, box: Box, num_chunks: int) -> NDArray[np.int64]:
    entries = count_at(data, box, box.start + 4)
    if entries == 1 and num_chunks:  # as nearly always where there is one track
        run = fields_at(data, box, box.start + 8, CHUNKS)
        if run[0] == run[2] == 1 and run[1] * num_chunks <= MAX_SAMPLES:
            return np.full(num_chunks, run[1], np.int64)
    runs = numbers_at(data, box, box.start + 8, entries, CHUNK_RUN)
    first = runs["f0"].astype(np.int64)
    lengths = np.append(first[1:], num_chunks + 1) - first
    if np.any(lengths < 0) or int(lengths.sum()) != num_chunks:  # the first isn't 1
        raise Mp4Error("stsc", box.start, "its chunks are out of order")
    if np.any(runs["f2"] != 1):
        raise Mp4Error("stsc", box.start, "it uses another sample entry than the first")
    samples = runs["f1"].astype(np.int64)
    if int((samples * lengths).sum()) > MAX_SAMPLES:
        raise Mp4Error("stsc", box.start, "it holds more samples than a file can")
    return np.repeat(samples, lengths)


def _bounded(count: int, box: Box) -> int:
    """A number of samples without a table behind it, which could be anything."""
    if count > MAX_EQUAL_SAMPLES:
        raise Mp4Error("stsz", box.start, f"it lists {count} samples of one size")
    return count
