"""The parsers, each as a function of bytes that raises only what its documentation says.

Used with arbitrary bytes and with changed bytes of real files, by hypothesis in the test suite and
by atheris in longer runs; see README.md beside this file.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from reelseek.bitstream import (
    Av1Reader,
    hevc_nal_types,
    iter_nal_heads,
    iter_nals,
    matroska_end,
    nal_format_of,
    read_h264_facts,
    vp8_is_key,
    vp8_shows_frame,
    vp8_size,
    vp9_is_key,
    vp9_shown_frames,
    vp9_size,
)
from reelseek.bitstream._av1_batch import read_frames
from reelseek.bitstream._av1_headers import Slots, UnprovenError, read_sequence_header
from reelseek.bitstream._bit_columns import PADDING_BYTES
from reelseek.bitstream._mp4 import read_moov
from reelseek.bitstream._mp4_boxes import Mp4Error
from reelseek.bitstream._obu import iter_obus
from reelseek.bitstream._pictures import (
    H264Order,
    HevcOrder,
    OrderUnknownError,
    ParameterSets,
    read_h264_set,
    read_hevc_set,
)
from reelseek.errors import ElfError
from reelseek.index._av1_units import Av1Units
from reelseek.native._elf import defined_symbols, read_elf, undefined_symbols
from reelseek.native._ld_cache import parse_ld_cache
from reelseek.native._linker import LinkerSetting, simulate_load, simulate_start

SEQUENCE = bytes.fromhex("00000002d39fffda5f2008")
"""The payload of a sequence header that SVT-AV1 wrote."""


def moov(data: bytes) -> None:
    """The sample tables of an MP4 file; a fault names its box and the place."""
    try:
        movie = read_moov(data)
    except Mp4Error as error:
        assert error.structure
        assert 0 <= error.byte_offset <= len(data)
        return
    for track in movie.videos:
        counts = {len(column) for column in (track.offset, track.size, track.dts, track.is_sync)}
        assert len(counts) == 1


def obus(data: bytes) -> None:
    """Splitting a temporal unit."""
    position = 0
    try:
        for _kind, start, payload, end in iter_obus(data):
            assert position == start < payload <= end <= len(data)
            position = end
    except ValueError as error:
        assert "byte" in str(error)


def temporal_units(data: bytes) -> None:
    """AV1 as it comes from a file: pieces of two length bytes and as many bytes."""
    reader, units = Av1Reader(), Av1Units()
    for piece in _pieces(data):
        reader.read(piece)
        units.add(piece, 0)
    assert len(units.offset) == len(units.reads) == len(units.flags)


def frame_headers(data: bytes) -> None:
    """AV1 frame headers behind a sequence header."""
    sequence, slots = read_sequence_header(SEQUENCE), Slots()
    for piece in _pieces(data):
        try:
            header = slots.read_frame_header(piece, sequence)
        except (EOFError, UnprovenError):
            continue
        assert 0 <= header.reads <= 0xFF
        assert 0 <= header.writes <= 0xFF


def sequence_header(data: bytes) -> None:
    """An AV1 sequence header."""
    try:
        read_sequence_header(data)
    except EOFError:
        return


def all_headers(data: bytes) -> None:
    """AV1 frame headers in one go: what is found is what the other reader finds."""
    pieces = list(_pieces(data))
    if not pieces:
        return
    joined = np.frombuffer(b"".join(pieces) + bytes(PADDING_BYTES), np.uint8)
    ends = np.cumsum([len(piece) for piece in pieces])
    starts = ends - [len(piece) for piece in pieces]
    if np.any(starts == ends):
        return
    found = read_frames(joined, starts, ends)
    if found is None:
        return
    units = Av1Units()
    for piece, start in zip(pieces, starts.tolist(), strict=True):
        units.add(piece, start)
    if not units.why_not:
        assert units.reads == found.reads.tolist()
        assert units.writes == found.writes.tolist()
        assert units.offset == found.start.tolist()


def h264(data: bytes) -> None:
    """H.264 access units."""
    sets = ParameterSets(read_h264_set)
    order = H264Order(sets)
    for piece in _pieces(data):
        units = list(iter_nals(piece, 0)) + list(iter_nals(piece, 4))
        read_h264_facts(units)
        sets.take(units)
        _order(order, units)


def hevc(data: bytes) -> None:
    """HEVC access units."""
    sets = ParameterSets(read_hevc_set)
    order = HevcOrder(sets)
    for piece in _pieces(data):
        units = list(iter_nals(piece, 0)) + list(iter_nals(piece, 4))
        hevc_nal_types(units)
        sets.take(units)
        _order(order, units)


def nal_formats(data: bytes) -> None:
    """Configuration records, and splitting by them."""
    for codec in ("h264", "hevc"):
        nal_format = nal_format_of(codec, data)
        assert 0 <= nal_format.length_size <= 4
        assert sum(map(len, nal_format.parameter_sets)) <= len(data)
        assert all(0 < len(head) <= 2 for head in iter_nal_heads(data, nal_format.length_size))


def matroska(data: bytes) -> None:
    """A Matroska file's head."""
    end = matroska_end(data)
    assert end is None or end >= 0


def vpx(data: bytes) -> None:
    """VP8 and VP9 packets."""
    vp8_is_key(data), vp8_shows_frame(data), vp8_size(data)
    assert 0 <= vp9_shown_frames(data) <= 8
    if vp9_is_key(data):
        vp9_size(data)


def elf(data: bytes) -> None:
    """A program or library; a fault names its structure and the place."""
    with _as_file(data) as path:
        for read in (read_elf, undefined_symbols, defined_symbols):
            _read_or_refuse(read, path, len(data))


def linker(data: bytes) -> None:
    """What the dynamic linker would do with a library, and with a program."""
    with _as_file(data) as path:
        result = simulate_load(path, LinkerSetting(sys.executable), check_symbols=True)
        assert result.libraries[0].name == path
        assert all(fault.chain for fault in result.faults)
        _read_or_refuse(lambda program: simulate_start(LinkerSetting(program)), path, len(data))


def ld_cache(data: bytes) -> None:
    """The dynamic linker's cache."""
    try:
        cache = parse_ld_cache(data, "ld.so.cache")
    except ElfError as error:
        _check_place(error, len(data))
        return
    for name in cache.entries:
        cache.path_of(name, "x86_64", ["x86-64-v3", "x86-64-v2"])


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        moov, obus, temporal_units, frame_headers, sequence_header, all_headers, h264, hevc,
        nal_formats, matroska, vpx, elf, ld_cache, linker,
    )
}  # fmt: skip


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """The path of a file that has these bytes."""
    with tempfile.NamedTemporaryFile(prefix="fuzz") as file:
        file.write(data)
        file.flush()
        yield file.name


def _read_or_refuse(read: Callable[[str], object], path: str, size: int) -> None:
    try:
        read(path)
    except ElfError as error:
        _check_place(error, size)


def _check_place(error: ElfError, size: int) -> None:
    assert error.what
    assert error.byte_offset is not None
    assert 0 <= error.byte_offset <= size


def _order(order: H264Order | HevcOrder, units: list[bytes]) -> None:
    try:
        place = order.of(units)
    except OrderUnknownError:
        return
    assert place is None or abs(place) < 1 << 62


def _pieces(data: bytes) -> Iterator[bytes]:
    position = 0
    while position + 2 <= len(data):
        size = int.from_bytes(data[position : position + 2], "big")
        yield data[position + 2 : position + 2 + size]
        position += 2 + size
