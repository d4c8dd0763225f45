"""The sample tables of an MP4 file, from the bytes of its ``moov`` box.

Source: ISO/IEC 14496-12:2022 (the box structure, 8.x of each box below) and 14496-15 (the
configuration records). Fragmented files have their tables elsewhere and are not read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CONTAINERS = frozenset({b"trak", b"mdia", b"minf", b"stbl", b"edts"})
MAX_DEPTH = 8
MAX_BOXES = 10_000
"""Boxes in one box: far more than any file has."""
UPRIGHT = [1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30]
"""The matrix that changes nothing."""
VISUAL_SAMPLE_ENTRY_BYTES = 78
ONCE = frozenset({
    b"tkhd", b"edts", b"elst", b"mdia", b"mdhd", b"hdlr", b"minf", b"stbl", b"stsd", b"stts",
    b"ctts", b"stss", b"stsz", b"stz2", b"stsc", b"stco", b"co64",
})  # fmt: skip
"""Boxes of which a track has one: readers differ in which of two they take."""
MAX_EQUAL_SAMPLES = 1 << 20
"""Samples of one size, which no table behind them bounds: ten hours at 30 frames a second."""
CONFIGURATIONS = frozenset({b"avcC", b"hvcC", b"av1C", b"vpcC"})


class Mp4Error(ValueError):
    """A box is damaged or of an unknown kind.

    Attributes:
        structure: The box.
        byte_offset: Its position in ``moov``.
    """

    def __init__(self, structure: str, byte_offset: int, what: str) -> None:
        super().__init__(f"{structure} at byte {byte_offset} of moov: {what}")
        self.structure = structure
        self.byte_offset = byte_offset


@dataclass(frozen=True, slots=True)
class Edit:
    """One entry of an edit list, 8.6.6."""

    duration: int
    """In the movie's time scale."""
    media_time: int
    """In the track's time scale; -1 for an empty edit."""
    rate: int
    """16.16 fixed point; 0x10000 is normal speed."""


@dataclass(frozen=True, slots=True)
class Colours:
    """A colr box of type nclx or nclc, 12.1.5."""

    matrix: int
    """matrix_coefficients, as ITU-T H.273 numbers them; 2 where it doesn't say."""
    is_full_range: bool
    """full_range_flag."""


@dataclass(frozen=True, slots=True, eq=False)
class VideoTrack:
    """A video track's tables."""

    timescale: int
    """Ticks per second of the track's clock."""
    matrix: tuple[int, ...]
    """The nine numbers of the track's transformation matrix, 8.3.2."""
    edits: tuple[Edit, ...]
    """The edit list; empty where there is none."""
    format: str
    """The sample entry's code, such as ``avc1``."""
    width: int
    """In pixels, as coded."""
    height: int
    """In pixels, as coded."""
    configuration: bytes
    """The content of avcC, hvcC, av1C or vpcC; empty where there is none."""
    colours: Colours | None
    """What colr says; None where there is no such box, or it says something else."""
    offset: NDArray[np.int64]
    """(N,) position of each sample in the file, in bytes."""
    size: NDArray[np.int64]
    """(N,) length of each sample in bytes."""
    dts: NDArray[np.int64]
    """(N,) decoding times in ticks, from 0."""
    composition: NDArray[np.int64]
    """(N,) what is added to each for its presentation time."""
    duration: NDArray[np.int64]
    """(N,) ticks until the next decoding time."""
    is_sync: NDArray[np.bool_]
    """(N,) True for sync samples."""
    has_sample_groups: bool
    """True where sample groups may mark further random access points, 8.9."""


@dataclass(frozen=True, slots=True)
class Movie:
    """What ``moov`` says."""

    timescale: int
    """Ticks per second of the movie's clock."""
    is_turned: bool
    """True where the movie has a transformation matrix beside its tracks', 8.2.2."""
    is_fragmented: bool
    """True where samples are in fragments, outside these tables."""
    videos: tuple[VideoTrack, ...]
    """The video tracks, in the order of the file."""


@dataclass(frozen=True, slots=True)
class _Box:
    kind: bytes
    start: int
    """Of the content."""
    end: int


def read_moov(data: bytes) -> Movie:
    """Read the content of a ``moov`` box.

    Raises:
        Mp4Error: A table is damaged.
    """
    boxes = list(_boxes(data, 0, len(data)))
    header = next((box for box in boxes if box.kind == b"mvhd"), None)
    if header is None:
        raise Mp4Error("mvhd", 0, "there is none")
    at = header.start + (48 if _version(data, header) == 1 else 36)
    matrix = _numbers(data, header, at, 9, ">i4").tolist()
    videos = [
        track
        for box in boxes
        if box.kind == b"trak" and (track := _read_track(data, box)) is not None
    ]
    return Movie(
        timescale=_header_timescale(data, header),
        is_turned=matrix != UPRIGHT,
        is_fragmented=any(box.kind == b"mvex" for box in boxes),
        videos=tuple(videos),
    )


def _boxes(data: bytes, start: int, end: int) -> Iterator[_Box]:
    """The boxes between two positions, 4.2; a box that leaves its parent is damage."""
    for _ in range(MAX_BOXES):
        if start + 8 > end:
            return
        size = int.from_bytes(data[start : start + 4], "big")
        kind = data[start + 4 : start + 8]
        head = 8
        if size == 1:
            size, head = int.from_bytes(data[start + 8 : start + 16], "big"), 16
        elif size == 0:
            size = end - start
        if size < head or start + size > end:
            raise Mp4Error(_name(kind), start, f"its size is {size}, {end - start} bytes are left")
        yield _Box(kind, start + head, start + size)
        start += size
    raise Mp4Error("box", start, f"it follows {MAX_BOXES:,} others")


def _read_track(data: bytes, trak: _Box) -> VideoTrack | None:
    """A track's tables; None for a track that isn't video."""
    found: dict[bytes, _Box] = {}
    pending = [(trak, 0)]
    while pending:
        parent, depth = pending.pop()
        for box in _boxes(data, parent.start, parent.end):
            if box.kind in found and box.kind in ONCE:
                raise Mp4Error(_name(box.kind), box.start, "there are two in one track")
            found[box.kind] = box
            if box.kind in CONTAINERS and depth < MAX_DEPTH:
                pending.append((box, depth + 1))
    handler = found.get(b"hdlr")
    if handler is None or data[handler.start + 8 : handler.start + 12] != b"vide":
        return None
    for needed in (b"tkhd", b"mdhd", b"stsd", b"stts", b"stsc"):
        if needed not in found:
            raise Mp4Error(_name(needed), trak.start, "there is none in the video track")
    size = _sizes(data, found)
    dts, duration = _times(data, found[b"stts"], len(size))
    entry = _sample_entry(data, found[b"stsd"])
    return VideoTrack(
        timescale=_header_timescale(data, found[b"mdhd"]),
        matrix=_matrix(data, found[b"tkhd"]),
        edits=_edits(data, found[b"elst"]) if b"elst" in found else (),
        format=entry.code,
        width=entry.width,
        height=entry.height,
        configuration=entry.configuration,
        colours=entry.colours,
        offset=_offsets(data, found, size),
        size=size,
        dts=dts,
        composition=_composition(data, found.get(b"ctts"), len(size)),
        duration=duration,
        is_sync=_sync(data, found.get(b"stss"), len(size)),
        has_sample_groups=b"sbgp" in found,
    )


def _header_timescale(data: bytes, box: _Box) -> int:
    """mvhd and mdhd, 8.2.2 and 8.4.2."""
    at = box.start + (20 if _version(data, box) == 1 else 12)
    timescale = _count(data, box, at)
    if timescale == 0:
        raise Mp4Error(_name_of(data, box), box.start, "its time scale is 0")
    return timescale


def _version(data: bytes, box: _Box) -> int:
    """The version of a full box, 4.2.2."""
    return int(_numbers(data, box, box.start, 1, "u1")[0])


def _matrix(data: bytes, box: _Box) -> tuple[int, ...]:
    """tkhd, 8.3.2."""
    at = box.start + (52 if _version(data, box) == 1 else 40)
    return tuple(map(int, _numbers(data, box, at, 9, ">i4")))


def _edits(data: bytes, box: _Box) -> tuple[Edit, ...]:
    """elst, 8.6.6."""
    count = _count(data, box, box.start + 4)
    wide = _version(data, box) == 1
    kind = np.dtype([("duration", ">u8" if wide else ">u4"),
                     ("time", ">i8" if wide else ">i4"), ("rate", ">i4")])  # fmt: skip
    entries = _numbers(data, box, box.start + 8, count, kind)
    return tuple(Edit(int(e["duration"]), int(e["time"]), int(e["rate"])) for e in entries)


class _SampleEntry(NamedTuple):
    code: str
    width: int
    height: int
    configuration: bytes
    colours: Colours | None


def _sample_entry(data: bytes, box: _Box) -> _SampleEntry:
    """stsd, 8.5.2 and 12.1.3: the code, the size, the configuration record and the colours."""
    count = _count(data, box, box.start + 4)
    entries = list(_boxes(data, box.start + 8, box.end))
    if count != 1 or len(entries) != 1:
        raise Mp4Error("stsd", box.start, f"it has {count} sample entries, not one")
    entry = entries[0]
    inner = entry.start + VISUAL_SAMPLE_ENTRY_BYTES
    if inner > entry.end:
        raise Mp4Error("stsd", box.start, "its sample entry is too short")
    width, height = np.frombuffer(data, ">u2", 2, entry.start + 24).tolist()
    configuration, colours = b"", None
    for child in _boxes(data, inner, entry.end):
        if child.kind in CONFIGURATIONS:
            configuration = data[child.start : child.end]
        elif child.kind == b"colr":
            colours = _colours(data[child.start : child.end]) or colours
    return _SampleEntry(_name(entry.kind), width, height, configuration, colours)


def _colours(colr: bytes) -> Colours | None:
    if colr[:4] not in (b"nclx", b"nclc") or len(colr) < 10:
        return None
    return Colours(int.from_bytes(colr[8:10], "big"), colr[10:11] >= b"\x80")


def _sizes(data: bytes, found: dict[bytes, _Box]) -> NDArray[np.int64]:
    """stsz or stz2, 8.7.3."""
    if b"stsz" in found:
        box = found[b"stsz"]
        same, count = _numbers(data, box, box.start + 4, 2, ">u4").tolist()
        if same:
            return np.full(_bounded(count, box), same, np.int64)
        return _numbers(data, box, box.start + 12, count, ">u4").astype(np.int64)
    if b"stz2" not in found:
        raise Mp4Error("stsz", 0, "there is none in the video track")
    box = found[b"stz2"]
    count = _count(data, box, box.start + 8)
    bits = data[box.start + 7]
    if bits == 4:
        packed = _numbers(data, box, box.start + 12, (count + 1) // 2, "u1")
        return np.stack([packed >> 4, packed & 15], 1).reshape(-1)[:count].astype(np.int64)
    if bits not in (8, 16):
        raise Mp4Error("stz2", box.start, f"its fields have {bits} bits")
    return _numbers(data, box, box.start + 12, count, f">u{bits // 8}").astype(np.int64)


def _times(data: bytes, box: _Box, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """stts, 8.6.1.2: decoding times and durations."""
    duration = _expanded(data, box, count, ">u4")
    return np.concatenate([[0], np.cumsum(duration[:-1])]).astype(np.int64)[:count], duration


def _composition(data: bytes, box: _Box | None, count: int) -> NDArray[np.int64]:
    """ctts, 8.6.1.3."""
    if box is None:
        return np.zeros(count, np.int64)
    return _expanded(data, box, count, ">i4")


def _expanded(data: bytes, box: _Box, count: int, kind: str) -> NDArray[np.int64]:
    """Runs of (number of samples, value) as a value for each sample."""
    entries = _count(data, box, box.start + 4)
    pair = np.dtype([("count", ">u4"), ("value", kind)])
    runs = _numbers(data, box, box.start + 8, entries, pair)
    covered = int(runs["count"].astype(np.int64).sum())
    if covered != count:
        raise Mp4Error(
            _name_of(data, box), box.start, f"it covers {covered} samples of {count}",
        )  # fmt: skip
    return np.repeat(runs["value"].astype(np.int64), runs["count"].astype(np.int64))


def _sync(data: bytes, box: _Box | None, count: int) -> NDArray[np.bool_]:
    """stss, 8.6.2; without it every sample is a sync sample."""
    if box is None:
        return np.ones(count, np.bool_)
    numbers = _numbers(data, box, box.start + 8, _count(data, box, box.start + 4), ">u4")
    is_sync = np.zeros(count, np.bool_)
    inside = numbers[(numbers >= 1) & (numbers <= count)].astype(np.int64)
    is_sync[inside - 1] = True
    return is_sync


def _offsets(data: bytes, found: dict[bytes, _Box], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """stsc with stco or co64, 8.7.4 and 8.7.5: each sample's position in the file."""
    wide = b"co64" in found
    box = found.get(b"co64") or found.get(b"stco")
    if box is None:
        raise Mp4Error("stco", 0, "there is none in the video track")
    count = _count(data, box, box.start + 4)
    chunks = _numbers(data, box, box.start + 8, count, ">u8" if wide else ">u4")
    per_chunk = _samples_per_chunk(data, found[b"stsc"], count)
    if int(per_chunk.sum()) != len(size):
        raise Mp4Error(
            "stsc", found[b"stsc"].start,
            f"its chunks hold {int(per_chunk.sum())} samples of {len(size)}",
        )  # fmt: skip
    before = np.concatenate([[0], np.cumsum(size)])[:-1]
    first_of_chunk = np.concatenate([[0], np.cumsum(per_chunk)])[:-1]
    starts = chunks.astype(np.int64) - before[np.minimum(first_of_chunk, max(len(size) - 1, 0))]
    offsets: NDArray[np.int64] = np.repeat(starts, per_chunk) + before
    return offsets


def _samples_per_chunk(data: bytes, box: _Box, num_chunks: int) -> NDArray[np.int64]:
    entry = np.dtype([("first", ">u4"), ("samples", ">u4"), ("description", ">u4")])
    runs = _numbers(data, box, box.start + 8, _count(data, box, box.start + 4), entry)
    first = runs["first"].astype(np.int64)
    lengths = np.diff(np.append(first, num_chunks + 1))
    if np.any(lengths < 0) or (num_chunks and (len(first) == 0 or first[0] != 1)):
        raise Mp4Error("stsc", box.start, "its chunks are out of order")
    if np.any(runs["description"] != 1):
        raise Mp4Error("stsc", box.start, "it uses another sample entry than the first")
    samples = runs["samples"].astype(np.int64)
    if int((samples * lengths).sum()) > 1 << 32:
        raise Mp4Error("stsc", box.start, "it holds more samples than a file can")
    return np.repeat(samples, lengths)


def _count(data: bytes, box: _Box, at: int) -> int:
    return int(_numbers(data, box, at, 1, ">u4")[0])


def _bounded(count: int, box: _Box) -> int:
    """A number of samples without a table behind it, which could be anything."""
    if count > MAX_EQUAL_SAMPLES:
        raise Mp4Error("stsz", box.start, f"it lists {count} samples of one size")
    return count


def _numbers(
    data: bytes, box: _Box, at: int, count: int, kind: str | np.dtype[Any]
) -> NDArray[Any]:
    """A table of a box; damage where it doesn't fit into the box."""
    dtype: np.dtype[Any] = np.dtype(kind)
    if at + count * dtype.itemsize > box.end:
        raise Mp4Error(_name_of(data, box), box.start, f"its {count} entries don't fit into it")
    return np.frombuffer(data, dtype, count, at)


def _name_of(data: bytes, box: _Box) -> str:
    """A box's kind; a box with a size of 64 bits has that between its kind and its content."""
    kind = data[box.start - 4 : box.start]
    return _name(kind if kind.isalnum() else data[box.start - 12 : box.start - 8])


def _name(kind: bytes) -> str:
    return kind.decode("latin-1")
