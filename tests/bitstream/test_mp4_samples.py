"""The sample tables' short ways give what the definitions give, whatever the bytes."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.bitstream._mp4_boxes import Box, Mp4Error
from reelseek.bitstream._mp4_samples import (
    MAX_SAMPLES,
    read_composition,
    read_offsets,
    read_sync,
    read_times,
)

few = st.sampled_from([0, 1, 1, 1, 2, 3, 5, 8, 1 << 31, (1 << 32) - 1])
words = st.lists(few, min_size=1, max_size=9)
counts = st.sampled_from([0, 1, 2, 3, 5, 8])


def full_box(kind: bytes, words: list[int], width: int = 4) -> tuple[bytes, Box]:
    """A full box: its version and flags, a count of 32 bits, then numbers of this width."""
    body = struct.pack(">II", 0, words[0])
    body += b"".join(word.to_bytes(width, "big") for word in words[1:])
    data = struct.pack(">I4s", 8 + len(body), kind) + body
    return data, Box(kind, 8, len(data))


def runs_of(words: list[int], size: int) -> list[tuple[int, ...]]:
    """The entries that the count announces; EOFError where they aren't there."""
    if len(words) - 1 < words[0] * size:
        raise EOFError
    return [tuple(words[1 + at * size : 1 + at * size + size]) for at in range(words[0])]


def expanded(words: list[int], count: int) -> list[int]:
    """Runs of (number, value)."""
    runs = runs_of(words, 2)
    if sum(number for number, _value in runs) != count:
        raise EOFError
    return [value for number, value in runs for _ in range(number)]


def assert_same(found: Callable[[], Any], right: Callable[[], Any]) -> None:
    """Both give the same, or the table is damaged."""
    try:
        expected = right()
    except EOFError:
        with pytest.raises(Mp4Error):
            found()
    else:
        assert [column.tolist() for column in found()] == expected


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


@given(words, counts)
def test_times_are_the_sums_of_the_durations(words: list[int], count: int) -> None:
    data, box = full_box(b"stts", words)

    def right() -> list[list[int]]:
        durations = expanded(words, count)
        return [[sum(durations[:number]) for number in range(count)], durations]

    assert_same(lambda: read_times(data, box, count), right)


@given(words, counts)
def test_composition_offsets_are_signed(words: list[int], count: int) -> None:
    data, box = full_box(b"ctts", words)
    assert_same(
        lambda: [read_composition(data, box, count)],
        lambda: [list(map(signed, expanded(words, count)))],
    )


@given(words, counts)
def test_sync_samples_are_numbered_from_one(words: list[int], count: int) -> None:
    data, box = full_box(b"stss", words)

    def right() -> list[list[bool]]:
        numbers = {number for (number,) in runs_of(words, 1)}
        return [[sample + 1 in numbers for sample in range(count)]]

    assert_same(lambda: [read_sync(data, box, count)], right)


@given(
    stsc=st.one_of(
        words, st.builds(lambda first, n: [1, first, n, 1], st.integers(0, 2), st.integers(0, 4))
    ),
    chunks=st.lists(st.integers(0, 1 << 40), max_size=4),
    sizes=st.lists(st.sampled_from([0, 1, 7, (1 << 32) - 1]), max_size=6),
)
def test_samples_of_a_chunk_lie_one_behind_the_other(
    stsc: list[int], chunks: list[int], sizes: list[int]
) -> None:
    first, first_box = full_box(b"stsc", stsc)
    second, second_box = full_box(b"co64", [len(chunks), *chunks], 8)
    moved = Box(b"co64", second_box.start + len(first), second_box.end + len(first))
    found = {b"stsc": first_box, b"co64": moved}

    def right() -> list[list[int]]:
        per_chunk = samples_per_chunk(stsc, len(chunks))
        if sum(per_chunk) != len(sizes):
            raise EOFError
        left, offsets = iter(sizes), []
        for position, samples in zip(chunks, per_chunk, strict=True):
            held = itertools.islice(left, samples)
            offsets += list(itertools.accumulate(held, initial=position))[:samples]
        return [offsets]

    assert_same(lambda: [read_offsets(first + second, found, np.array(sizes, np.int64))], right)


def samples_per_chunk(words: list[int], num_chunks: int) -> list[int]:
    runs = runs_of(words, 3)
    starts = [run[0] for run in runs] + [num_chunks + 1]
    lengths = [after - start for start, after in itertools.pairwise(starts)]
    if min(lengths, default=0) < 0 or sum(lengths) != num_chunks:
        raise EOFError
    if any(description != 1 for _first, _samples, description in runs):
        raise EOFError
    if sum(run[1] * length for run, length in zip(runs, lengths, strict=True)) > MAX_SAMPLES:
        raise EOFError
    return [run[1] for run, length in zip(runs, lengths, strict=True) for _ in range(length)]
