"""Parquet columns as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reelseek.datasets._parquet import as_array, read_columns, read_rows
from reelseek.datasets._records import RowSpan
from reelseek.errors import DatasetFormatError

PATH = Path("/data/a.parquet")
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def array_of(values: Any, kind: Any = None, chunks: int = 1) -> NDArray[Any]:
    whole = pa.array(values, kind)
    size = max(1, -(-len(whole) // chunks))
    parts = [whole.slice(start, size) for start in range(0, len(whole), size)]
    return as_array(pa.chunked_array(parts, whole.type), "column", PATH)


@pytest.mark.parametrize("kind", INTS)
@given(data=st.data(), chunks=st.integers(1, 4))
def test_whole_numbers_become_int64(kind: str, data: Any, chunks: int) -> None:
    limits = np.iinfo(kind)
    numbers = st.integers(int(limits.min), min(int(limits.max), 2**63 - 1))
    values = data.draw(st.lists(numbers, max_size=20))
    array = array_of(values, pa.from_numpy_dtype(np.dtype(kind)), chunks)
    assert array.dtype == np.int64
    assert array.tolist() == values


@pytest.mark.parametrize("kind", FLOATS)
@given(data=st.data(), chunks=st.integers(1, 4))
def test_floats_keep_their_size(kind: str, data: Any, chunks: int) -> None:
    widths: dict[str, Any] = {"float16": 16, "float32": 32, "float64": 64}
    values = np.array(data.draw(st.lists(st.floats(width=widths[kind]), max_size=20)), kind)
    array = array_of(values, chunks=chunks)
    assert array.dtype == kind
    assert np.array_equal(array, values, equal_nan=True)


@given(values=st.lists(st.booleans(), max_size=40), chunks=st.integers(1, 4))
def test_booleans_stay_booleans(values: list[bool], chunks: int) -> None:
    array = array_of(values, pa.bool_(), chunks)
    assert array.dtype == np.bool_
    assert array.tolist() == values


@settings(deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    rows=st.integers(0, 6),
    fixed=st.booleans(),
    chunks=st.integers(1, 3),
    start=st.integers(0, 3),
)
def test_lists_of_one_length_become_dimensions(
    shape: Sequence[int], rows: int, fixed: bool, chunks: int, start: int
) -> None:
    values = np.arange(rows * int(np.prod(shape)), dtype=np.float32).reshape(rows, *shape)
    kind = pa.float32()
    for size in reversed(shape):
        kind = pa.list_(kind, size if fixed else -1)
    whole = pa.array(values.tolist(), kind)
    array = as_array(pa.chunked_array([whole.slice(start)]), "column", PATH)
    assert array.dtype == np.float32
    if len(whole) > start:
        assert np.array_equal(array, values[start:])
    if rows:
        assert np.array_equal(array_of(values.tolist(), kind, chunks), values)


@given(values=st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=8))
def test_lists_of_several_lengths_stay_apart(values: list[list[int]]) -> None:
    array = array_of(values, pa.list_(pa.int32()), chunks=2)
    assert [list(row) for row in array] == values
    if len({len(row) for row in values}) > 1:
        assert array.dtype == object
        assert all(row.dtype == np.int64 for row in array)


@given(values=st.lists(st.none() | st.text(), max_size=9), chunks=st.integers(1, 3))
def test_texts_are_objects(values: list[str | None], chunks: int) -> None:
    assert array_of(values, pa.string(), chunks).tolist() == values


def test_categories_are_decoded() -> None:
    assert array_of(pa.array(["a", "b", "a"]).dictionary_encode()).tolist() == ["a", "b", "a"]
    numbers = array_of(pa.array([3, 5, 3]).dictionary_encode())
    assert numbers.dtype == np.int64
    assert numbers.tolist() == [3, 5, 3]


def test_structs_are_dicts() -> None:
    cell = {"bytes": b"x", "path": None}
    assert array_of([cell]).tolist() == [cell]


@pytest.mark.parametrize(
    "values", [[1, None], [1.5, None], [True, None], [[1.0], None], [[1.0, None]], [[[1], None]]]
)
def test_missing_values_are_an_error(values: Any) -> None:
    with pytest.raises(DatasetFormatError, match=r"1 values of column are missing.*Fill them in"):
        array_of(values)


def test_column_of_no_rows_keeps_its_width() -> None:
    assert array_of([], pa.list_(pa.float32(), 7)).shape == (0, 7)
    assert as_array(pa.chunked_array([], pa.int32()), "column", PATH).shape == (0,)


def test_array_has_its_own_memory() -> None:
    whole = pa.array(np.zeros(10**6, np.float32))
    assert as_array(pa.chunked_array([whole.slice(5, 10)]), "column", PATH).flags.owndata


# Files


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    data=st.data(),
)
@settings(deadline=None)
def test_rows_of_a_span_whatever_the_row_groups(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "groups.parquet"
    total = sum(sizes)
    table = pa.table({"n": range(total), "x": range(total)})
    with pq.ParquetWriter(path, table.schema) as writer:
        start = 0
        for size in sizes:
            writer.write_table(table.slice(start, size))
            start += size
    first = data.draw(st.integers(0, total))
    length = data.draw(st.integers(0, total - first))
    rows = read_rows(RowSpan(path, first, length, is_whole_file=False), 0, frozenset({"x"}))
    assert list(rows) == ["n"]
    assert rows["n"].tolist() == list(range(first, first + length))


def test_columns_asked_for_and_not_there_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1], "b.c": [2]}), path)
    assert list(read_columns(path, ["b.c", "d"])) == ["b.c"]
    assert list(read_columns(path, None)) == ["a", "b.c"]
