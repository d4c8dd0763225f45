"""Parquet columns as arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute  # else lists import it, and a fork may interrupt that
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reelseek.datasets._files import (
    LFS_FAULT,
    LFS_REMEDY,
    LFS_START,
    MAX_COUNT,
    brief,
    check_is_file,
)
from reelseek.datasets._records import RowSpan
from reelseek.errors import DatasetError, DatasetFormatError, DatasetNotFoundError

MAX_VALUES = 2**28
"""Values read at once: 2 GiB of numbers. A small file can claim any number of equal values."""

UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, KeyError)
"""What pyarrow raises over damaged files."""


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Translate what pyarrow raises over a damaged file, in the one place where that is done."""
    try:
        yield
    except DatasetError:
        raise
    except UNREADABLE as exc:
        raise damaged(path, exc) from exc


def read_columns(path: Path, names: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    """Some columns of a whole file, those that it has; all of them for None."""
    with open_parquet(path, "meta") as file, reading(path):
        wanted = [n for n in file.schema_arrow.names if names is None or n in names]
        check_size(file, wanted, range(file.metadata.num_row_groups), path)
        table = file.read(columns=wanted, use_threads=False)
        return {name: as_array(table[name], name, path) for name in table.column_names}


def open_parquet(path: Path, folder: str = "data") -> Any:
    """A parquet file, opened for reading.

    Raises:
        DatasetNotFoundError: There is no such file.
        DatasetFormatError: It is no parquet file, or two of its columns have one name.
    """
    check_is_file(path, folder)
    with reading(path):
        # No buffering ahead: it runs on threads, and samples are read in forked workers.
        file = pq.ParquetFile(path, memory_map=False, pre_buffer=False)
        names = file.schema_arrow.names
    if len(set(names)) != len(names):
        file.close()
        twice = next(name for name in names if names.count(name) > 1)
        raise DatasetFormatError(
            f"there are two columns {brief(twice)}",
            remedy="Write the file again with one of them",
            path=path,
        )
    return file


def column_names(path: Path) -> list[str]:
    """The columns of a file.

    Raises:
        DatasetNotFoundError: There is no such file.
        DatasetFormatError: It is no parquet file.
    """
    with open_parquet(path) as file:
        return list(file.schema_arrow.names)


def read_rows(span: RowSpan, episode: int, unused: frozenset[str]) -> dict[str, NDArray[Any]]:
    """An episode's columns, from the row groups that hold its rows.

    Args:
        span: Where they are.
        episode: The episode's number, for errors.
        unused: Columns to leave out.

    Raises:
        DatasetNotFoundError: There is no such file.
        DatasetFormatError: It is damaged, or holds other rows than ``meta`` says.
    """
    with open_parquet(span.path) as file, reading(span.path):
        rows = file.metadata.num_rows
        needed = span.length if span.is_whole_file else span.first + span.length
        if rows != needed if span.is_whole_file else rows < needed:
            raise DatasetFormatError(
                f"episode {episode}: the file has {rows} rows where meta needs {needed}",
                remedy="Copy the dataset again: its data and meta folders don't belong together",
                path=span.path,
            )
        groups, before = _groups_of(file.metadata, span)
        columns = [name for name in file.schema_arrow.names if name not in unused]
        check_size(file, columns, groups, span.path)
        table = file.read_row_groups(groups, columns=columns, use_threads=False)
        table = table.slice(span.first - before, span.length)
        return {name: as_array(table[name], name, span.path) for name in table.column_names}


def _groups_of(metadata: Any, span: RowSpan) -> tuple[list[int], int]:
    """The row groups that hold a span, and the number of rows before them."""
    sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    ends = np.cumsum(sizes)
    first = int(np.searchsorted(ends, span.first, side="right"))
    last = int(np.searchsorted(ends, span.first + max(span.length, 1) - 1, side="right"))
    groups = list(range(first, min(last, len(sizes) - 1) + 1))
    return groups, int(ends[first] - sizes[first]) if groups else span.first


def check_size(file: Any, columns: Sequence[str], groups: Iterable[int], path: Path) -> None:
    """Refuse a file that claims more values than fit in memory."""
    try:
        values = sum(_values_of(file.metadata.row_group(number), columns) for number in groups)
    except UNREADABLE as exc:
        raise damaged(path, exc) from exc
    if values > MAX_VALUES:
        raise DatasetFormatError(
            f"the rows to be read hold {values:,} values, and at most {MAX_VALUES:,} are read",
            remedy="Write the file again with one row group per episode",
            path=path,
        )


def _values_of(group: Any, columns: Sequence[str]) -> int:
    """How many values some columns of a row group hold, as its metadata claims."""
    chunks = [group.column(place) for place in range(group.num_columns)]
    # A leaf of a list is called `name.list.element`; a name may hold dots itself.
    starts = tuple(f"{name}." for name in columns)
    return sum(c.num_values for c in chunks if f"{c.path_in_schema}.".startswith(starts))


def damaged(path: Path, exc: BaseException) -> DatasetFormatError | DatasetNotFoundError:
    """The error for a parquet file that can't be read."""
    try:
        with path.open("rb") as file:
            head = file.read(len(LFS_START))
    except OSError as unreadable:
        return DatasetNotFoundError(
            "the file can't be read",
            remedy="Check its permissions, and that the disk or NAS is mounted",
            path=path,
            detail=unreadable.strerror or "",
        )
    if head == LFS_START.encode():
        return DatasetFormatError(LFS_FAULT, remedy=LFS_REMEDY, path=path)
    return DatasetFormatError(
        "no readable parquet file" if head else "an empty file, no parquet file",
        remedy="Copy it again from its source, and compare the sizes",
        path=path,
        detail=next(iter(str(exc).splitlines()), type(exc).__name__),
    )


def as_array(column: pa.ChunkedArray, name: str, path: Path) -> NDArray[Any]:
    """A column as an array (rows, ...): lists become dimensions, other things objects.

    Whole numbers become int64; floats keep their size, as a time in a long file needs 64 bits.
    Vectors that differ in length stay apart, as an array of arrays. The result has its own
    memory, so that a part of a file doesn't keep the whole of it.

    Raises:
        DatasetFormatError: A value is missing where numbers are expected.
    """
    with reading(path):
        array = column.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        return _nested(array, name, path)


def _nested(array: pa.Array, name: str, path: Path) -> NDArray[Any]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _nested(array.dictionary_decode(), name, path)
    if not (
        pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    ):
        return _flat(array, name, path)
    if array.null_count:
        raise _missing(array.null_count, name, path)
    sizes = _list_sizes(array)
    inner = _nested(array.flatten(), name, path)
    if np.all(sizes == sizes[:1]):
        size = int(sizes[0]) if len(sizes) else getattr(kind, "list_size", 0)
        return inner.reshape(len(array), size, *inner.shape[1:])
    return _objects(np.split(inner, np.cumsum(sizes)[:-1]))


def _list_sizes(array: pa.Array) -> NDArray[np.int64]:
    if pa.types.is_fixed_size_list(array.type):
        return np.full(len(array), array.type.list_size, np.int64)
    return np.asarray(array.value_lengths()).astype(np.int64)


def _flat(array: pa.Array, name: str, path: Path) -> NDArray[Any]:
    kind = array.type
    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    if not (is_number or pa.types.is_boolean(kind)):
        return _objects(array.to_pylist())
    if array.null_count:
        raise _missing(array.null_count, name, path)
    if pa.types.is_integer(kind):
        array = array.cast(pa.int64())  # checked: a number that doesn't fit is an error
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values.copy()


def _missing(count: int, name: str, path: Path) -> DatasetFormatError:
    return DatasetFormatError(
        f"{count} values of {name} are missing",
        remedy="Fill them in, or leave the episode out with `episodes=`",
        path=path,
    )


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    for place, value in enumerate(values):  # at once, NumPy would look into equal vectors
        array[place] = value
    return array


def counts(columns: dict[str, NDArray[Any]], name: str, path: Path) -> NDArray[np.int64]:
    """A column of whole numbers, none of them negative or beyond reason.

    Raises:
        DatasetFormatError: There is no such column, or it holds something else.
    """
    values = _numbers(columns, name, path, "i")
    wrong = values[(values < 0) | (values > MAX_COUNT)]
    if len(wrong):
        raise DatasetFormatError(
            f"{name} is {wrong[0]}, which is no whole number from 0 to {MAX_COUNT}",
            remedy="Copy the dataset's meta folder again",
            path=path,
        )
    return values


def times(columns: dict[str, NDArray[Any]], name: str, path: Path) -> NDArray[Any]:
    """A column of times in seconds, in the precision in which the file keeps them.

    Raises:
        DatasetFormatError: There is no such column, or it holds something else.
    """
    values = _numbers(columns, name, path, "if")
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise DatasetFormatError(
            f"{name} is {values[wrong[0]]} in row {wrong[0]}, which is no time in seconds",
            remedy="Copy the file again from its source, or leave the episode out",
            path=path,
        )
    return values


def _numbers(columns: dict[str, NDArray[Any]], name: str, path: Path, kinds: str) -> NDArray[Any]:
    values = columns.get(name)
    if values is None:
        raise DatasetFormatError(
            f"there is no column {name!r}",
            remedy=f"It has: {brief(sorted(columns))}",
            path=path,
        )
    if values.ndim != 1 or (len(values) and values.dtype.kind not in kinds):
        raise DatasetFormatError(
            f"the column {name!r} holds {values.dtype} of shape {values.shape[1:]}, not numbers",
            remedy="Copy the file again from its source",
            path=path,
        )
    return values
