"""Every parser with arbitrary bytes, and with real bytes that were changed."""

from __future__ import annotations

import os
import resource
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reelseek.bitstream._mp4 import read_moov
from reelseek.bitstream._mp4_boxes import Mp4Error
from tests.fuzz.seeds import seeds_of
from tests.fuzz.targets import TARGETS

IN_CI = bool(os.environ.get("CI"))
SECONDS, BYTES = 5.0, 500 << 20

CHANGE = st.tuples(
    st.floats(0, 1, exclude_max=True),
    st.one_of(
        st.binary(min_size=1, max_size=4),
        st.sampled_from([b"\0", b"\xff" * 4, b"\0\0\0\1", b"\xff\xff\xff\xfe", b"\x80\0\0\0"]),
    ),
)


def _changed(data: bytes, changes: list[tuple[float, bytes]], keep: float) -> bytes:
    """Overwrite some places, given as shares of the length, and cut the end."""
    out = bytearray(data)
    for share, new in changes:
        place = int(share * len(out))
        out[place : place + len(new)] = new
    return bytes(out[: int(keep * len(out)) + 1])


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, deadline=SECONDS * 1000, derandomize=IN_CI)
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(name: str, data: bytes) -> None:
    TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, deadline=SECONDS * 1000, derandomize=IN_CI)
@given(
    number=st.integers(0, 7),
    changes=st.lists(CHANGE, max_size=6),
    keep=st.one_of(st.just(1.0), st.floats(0, 1)),
)
def test_changed_real_bytes_are_read_or_refused(
    name: str, number: int, changes: list[tuple[float, bytes]], keep: float
) -> None:
    seeds = seeds_of(name)
    TARGETS[name](_changed(seeds[number % len(seeds)], changes, keep))


@pytest.mark.parametrize("name", TARGETS)
def test_real_bytes_are_read(name: str) -> None:
    for seed in seeds_of(name):
        TARGETS[name](seed)


@pytest.mark.parametrize("table", [b"stsz", b"stts", b"ctts", b"stsc", b"stco", b"stss", b"elst"])
@pytest.mark.parametrize("count", [1 << 31, (1 << 32) - 1])
def test_table_that_claims_billions_of_entries_is_refused_at_once(table: bytes, count: int) -> None:
    data = bytearray(seeds_of("moov")[1])
    place = data.index(table) + (12 if table == b"stsz" else 8)
    data[place : place + 4] = count.to_bytes(4, "big")
    before, started = _peak_bytes(), time.process_time()
    with pytest.raises(Mp4Error) as error:
        read_moov(bytes(data))
    assert error.value.structure
    assert error.value.byte_offset > 0
    assert time.process_time() - started < SECONDS
    assert _peak_bytes() - before < BYTES


@pytest.mark.parametrize("count", [1 << 24, (1 << 32) - 1])
def test_samples_of_one_size_cannot_be_billions(count: int) -> None:
    data = bytearray(seeds_of("moov")[1])
    place = data.index(b"stsz") + 8
    data[place : place + 8] = (1).to_bytes(4, "big") + count.to_bytes(4, "big")
    with pytest.raises(Mp4Error, match="stsz"):
        read_moov(bytes(data))


def test_runs_of_chunks_without_a_chunk_are_refused() -> None:
    data = bytearray(seeds_of("moov")[1])
    chunks, runs = data.index(b"stco") + 8, data.index(b"stsc") + 12
    data[chunks : chunks + 4] = bytes(4)
    data[runs : runs + 4] = (7).to_bytes(4, "big")
    with pytest.raises(Mp4Error, match="stsc"):
        read_moov(bytes(data))


def test_box_that_stands_twice_is_refused() -> None:
    data = seeds_of("moov")[1]
    place = data.index(b"stco") - 4
    size = int.from_bytes(data[place : place + 4], "big")
    twice = bytearray(data[: place + size] + data[place : place + size] + data[place + size :])
    for parent in (b"trak", b"mdia", b"minf", b"stbl"):
        start = twice.index(parent) - 4
        longer = int.from_bytes(twice[start : start + 4], "big") + size
        twice[start : start + 4] = longer.to_bytes(4, "big")
    with pytest.raises(Mp4Error, match=r"stco.*two"):
        read_moov(bytes(twice))


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
