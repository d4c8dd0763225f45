"""The sample tables of an MP4 file, from the bytes of its ``moov`` box.

Source: ISO/IEC 14496-12:2022 (the box structure, 8.x of each box below) and 14496-15 (the
configuration records). Fragmented files have their tables elsewhere and are not read here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reelseek.bitstream._mp4_boxes import (
    Box,
    Mp4Error,
    boxes_in,
    count_at,
    fields_at,
    name_of,
    name_text,
    numbers_at,
    version_of,
)
from reelseek.bitstream._mp4_samples import (
    read_composition,
    read_offsets,
    read_sizes,
    read_sync,
    read_times,
)

CONTAINERS = frozenset({b"trak", b"mdia", b"minf", b"stbl", b"edts"})
MAX_DEPTH = 8
UPRIGHT = (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
"""The matrix that changes nothing."""
VISUAL_SAMPLE_ENTRY_BYTES = 78
MATRIX, SIZE_IN_PIXELS = struct.Struct(">9i"), struct.Struct(">2H")
EDIT, WIDE_EDIT = np.dtype(">u4, >i4, >i4"), np.dtype(">u8, >i8, >i4")
ONCE = frozenset({
    b"tkhd", b"edts", b"elst", b"mdia", b"mdhd", b"hdlr", b"minf", b"stbl", b"stsd", b"stts",
    b"ctts", b"stss", b"stsz", b"stz2", b"stsc", b"stco", b"co64",
})  # fmt: skip
"""Boxes of which a track has one: readers differ in which of two they take."""
CONFIGURATIONS = frozenset({b"avcC", b"hvcC", b"av1C", b"vpcC"})


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


def read_moov(data: bytes) -> Movie:
    """Read the content of a ``moov`` box.

    Raises:
        Mp4Error: A table is damaged.
    """
    boxes = boxes_in(data, 0, len(data))
    header = next((box for box in boxes if box.kind == b"mvhd"), None)
    if header is None:
        raise Mp4Error("mvhd", 0, "there is none")
    at = header.start + (48 if version_of(data, header) == 1 else 36)
    matrix = fields_at(data, header, at, MATRIX)
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


def _read_track(data: bytes, trak: Box) -> VideoTrack | None:
    """A track's tables; None for a track that isn't video."""
    found: dict[bytes, Box] = {}
    pending = [(trak, 0)]
    while pending:
        parent, depth = pending.pop()
        for box in boxes_in(data, parent.start, parent.end):
            if box.kind in found and box.kind in ONCE:
                raise Mp4Error(name_text(box.kind), box.start, "there are two in one track")
            found[box.kind] = box
            if box.kind in CONTAINERS and depth < MAX_DEPTH:
                pending.append((box, depth + 1))
    handler = found.get(b"hdlr")
    if handler is None or data[handler.start + 8 : handler.start + 12] != b"vide":
        return None
    for needed in (b"tkhd", b"mdhd", b"stsd", b"stts", b"stsc"):
        if needed not in found:
            raise Mp4Error(name_text(needed), trak.start, "there is none in the video track")
    size = read_sizes(data, found)
    dts, duration = read_times(data, found[b"stts"], len(size))
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
        offset=read_offsets(data, found, size),
        size=size,
        dts=dts,
        composition=read_composition(data, found.get(b"ctts"), len(size)),
        duration=duration,
        is_sync=read_sync(data, found.get(b"stss"), len(size)),
        has_sample_groups=b"sbgp" in found,
    )


def _header_timescale(data: bytes, box: Box) -> int:
    """mvhd and mdhd, 8.2.2 and 8.4.2."""
    at = box.start + (20 if version_of(data, box) == 1 else 12)
    timescale = count_at(data, box, at)
    if timescale == 0:
        raise Mp4Error(name_of(data, box), box.start, "its time scale is 0")
    return timescale


def _matrix(data: bytes, box: Box) -> tuple[int, ...]:
    """tkhd, 8.3.2."""
    at = box.start + (52 if version_of(data, box) == 1 else 40)
    return fields_at(data, box, at, MATRIX)


def _edits(data: bytes, box: Box) -> tuple[Edit, ...]:
    """elst, 8.6.6."""
    count = count_at(data, box, box.start + 4)
    wide = version_of(data, box) == 1
    entries = numbers_at(data, box, box.start + 8, count, WIDE_EDIT if wide else EDIT)
    return tuple(Edit(*entry) for entry in entries.tolist())


class _SampleEntry(NamedTuple):
    code: str
    width: int
    height: int
    configuration: bytes
    colours: Colours | None


def _sample_entry(data: bytes, box: Box) -> _SampleEntry:
    """stsd, 8.5.2 and 12.1.3: the code, the size, the configuration record and the colours."""
    count = count_at(data, box, box.start + 4)
    entries = boxes_in(data, box.start + 8, box.end)
    if count != 1 or len(entries) != 1:
        raise Mp4Error("stsd", box.start, f"it has {count} sample entries, not one")
    entry = entries[0]
    inner = entry.start + VISUAL_SAMPLE_ENTRY_BYTES
    if inner > entry.end:
        raise Mp4Error("stsd", box.start, "its sample entry is too short")
    width, height = fields_at(data, entry, entry.start + 24, SIZE_IN_PIXELS)
    configuration, colours = b"", None
    for child in boxes_in(data, inner, entry.end):
        if child.kind in CONFIGURATIONS:
            configuration = data[child.start : child.end]
        elif child.kind == b"colr":
            colours = _colours(data[child.start : child.end]) or colours
    return _SampleEntry(name_text(entry.kind), width, height, configuration, colours)


def _colours(colr: bytes) -> Colours | None:
    if colr[:4] not in (b"nclx", b"nclc") or len(colr) < 10:
        return None
    return Colours(int.from_bytes(colr[8:10], "big"), colr[10:11] >= b"\x80")
