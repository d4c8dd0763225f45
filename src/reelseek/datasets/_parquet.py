"""Parquet columns as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reelseek.datasets._records import RowSpan
from reelseek.errors import DatasetFormatError, DatasetNotFoundError


def read_columns(path: Path, names: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    """Some columns of a whole file, those that it has; all of them for None."""
    file = open_parquet(path)
    wanted = None if names is None else [n for n in names if n in file.schema_arrow.names]
    try:
        table = file.read(columns=wanted)
    except (pa.ArrowException, OSError) as exc:
        raise damaged(path, exc) from exc
    return {name: as_array(table[name], name, path) for name in table.column_names}


def open_parquet(path: Path, metadata: Any = None) -> Any:
    """A parquet file, opened for reading.

    Raises:
        DatasetNotFoundError: There is no such file.
        DatasetFormatError: It is no parquet file.
    """
    try:
        return pq.ParquetFile(path, metadata=metadata, memory_map=False)
    except FileNotFoundError as exc:
        raise DatasetNotFoundError(
            "a file of the dataset is missing",
            remedy="Copy or download the dataset's data folder again",
            path=path,
        ) from exc
    except (pa.ArrowException, OSError) as exc:
        raise damaged(path, exc) from exc


def read_rows(span: RowSpan, episode: int, unused: frozenset[str]) -> pa.Table:
    """An episode's rows: the row groups that hold them, cut to size.

    Args:
        span: Where they are.
        episode: The episode's number, for errors.
        unused: Columns to leave out.

    Raises:
        DatasetNotFoundError: There is no such file.
        DatasetFormatError: It is damaged, or holds other rows than ``meta`` says.
    """
    file = open_parquet(span.path)
    with file:
        rows = file.metadata.num_rows
        wrong = rows != span.length if span.is_whole_file else rows < span.first + span.length
        if wrong:
            needed = span.length if span.is_whole_file else span.first + span.length
            raise DatasetFormatError(
                f"episode {episode}: the file has {rows} rows where meta needs {needed}",
                remedy="Copy the dataset again: its data and meta folders don't belong together",
                path=span.path,
            )
        groups, before = _groups_of(file.metadata, span)
        try:
            columns = [name for name in file.schema_arrow.names if name not in unused]
            table = file.read_row_groups(groups, columns=columns)
        except (pa.ArrowException, OSError) as exc:
            raise damaged(span.path, exc) from exc
    return table.slice(span.first - before, span.length)


def _groups_of(metadata: Any, span: RowSpan) -> tuple[list[int], int]:
    """The row groups that hold a span, and the number of rows before them."""
    sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    ends = np.cumsum(sizes)
    first = int(np.searchsorted(ends, span.first, side="right"))
    last = int(np.searchsorted(ends, span.first + max(span.length, 1) - 1, side="right"))
    groups = list(range(first, min(last, len(sizes) - 1) + 1))
    return groups, int(ends[first] - sizes[first]) if groups else span.first


def damaged(path: Path, exc: Exception) -> DatasetFormatError:
    """The error for a parquet file that can't be read."""
    with path.open("rb") as file:
        is_pointer = file.read(22) == b"version https://git-lfs"[:22]
    return DatasetFormatError(
        "a Git LFS pointer, not the file itself" if is_pointer else "no readable parquet file",
        remedy="Run `git lfs pull` in the dataset's folder"
        if is_pointer
        else "Copy it again from its source, and compare the sizes",
        path=path,
        detail="" if is_pointer else str(exc).splitlines()[0],
    )


def as_array(column: pa.ChunkedArray, name: str, path: Path) -> NDArray[Any]:
    """A column as an array (rows, ...): lists become dimensions, strings objects.

    Whole numbers become int64; floats keep their size, as a time in a long file needs 64 bits.

    Raises:
        DatasetFormatError: A value is missing where numbers are expected.
    """
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return _nested(array, name, path)


def _nested(array: pa.Array, name: str, path: Path) -> NDArray[Any]:
    kind = array.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if array.null_count == 0:
            sizes = np.unique(np.asarray(array.value_lengths()))
            if len(sizes) <= 1:
                inner = _nested(array.flatten(), name, path)
                size = int(sizes[0]) if len(sizes) else getattr(kind, "list_size", 0)
                return inner.reshape(len(array), size, *inner.shape[1:])
        ragged = array.to_pylist()
        return _objects([None if value is None else np.asarray(value) for value in ragged])
    return _flat(array, name, path)


def _flat(array: pa.Array, name: str, path: Path) -> NDArray[Any]:
    kind = array.type
    if pa.types.is_floating(kind):
        return _whole(array, name, path)
    if pa.types.is_integer(kind):
        return _whole(array, name, path).astype(np.int64)
    if pa.types.is_boolean(kind):
        return _whole(array, name, path).astype(np.bool_)
    return _objects(array.to_pylist())


def _whole(array: pa.Array, name: str, path: Path) -> NDArray[Any]:
    if array.null_count:
        raise DatasetFormatError(f"{array.null_count} values of {name} are missing", path=path)
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array
