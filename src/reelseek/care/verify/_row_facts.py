"""The facts of one parquet file: its columns, and what each episode's rows say of themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._files import LFS_FAULT
from reelseek.errors import ReelseekError

Facts = dict[str, Any]
MAX_ELEMENTS = 4096
"""Of a vector whose elements' ranges are kept one by one."""
ROW_TOLERANCE = 1e-4
"""LeRobot's tolerance_s, in seconds."""
COUNTED = ("episode_index", "frame_index", "index", "task_index", "timestamp")


def row_facts(path: str, fps: float | None) -> Facts:
    """What a parquet file holds, without judging it.

    ``fault`` (code, what, remedy) stands alone where the file can't be read. Else ``num_rows``,
    ``columns`` (by name: ``kind``, ``shape``, ``missing``, ``not_finite``, ``least`` and ``most``
    of each element) and ``episodes`` (runs of rows with one episode_index; see ``_episode``).
    """
    try:
        return _facts(Path(path), fps)
    except ReelseekError as exc:
        what = exc.what + (f" ({exc.detail})" if exc.detail else "")
        return {"fault": {"code": _fault_code(path, exc), "what": what, "remedy": exc.remedy}}


def _fault_code(path: str, exc: ReelseekError) -> str:
    if exc.what == LFS_FAULT:
        return "parquet-lfs-pointer"
    is_empty = Path(path).is_file() and Path(path).stat().st_size == 0
    return "parquet-empty" if is_empty else "parquet-unreadable"


def _facts(path: Path, fps: float | None) -> Facts:
    from reelseek.datasets._parquet import as_array, check_size, open_parquet, reading

    columns: dict[str, Facts] = {}
    kept: dict[str, NDArray[Any]] = {}
    with open_parquet(path) as file, reading(path):
        num_rows = int(file.metadata.num_rows)
        for name in file.schema_arrow.names:
            kind = _kind(file.schema_arrow.field(name).type)
            columns[name] = {"kind": kind, "missing": 0}
            if kind == "other":
                continue
            check_size(file, [name], range(file.metadata.num_row_groups), path)
            column = file.read(columns=[name], use_threads=False)[name]
            columns[name]["missing"] = _num_missing(column)
            if columns[name]["missing"] == 0:
                values = as_array(column, name, path)
                columns[name] |= _values(values)
                if name in COUNTED and _is_countable(values):
                    kept[name] = values
    return {
        "num_rows": num_rows,
        "columns": columns,
        "episodes": list(_episodes(kept, num_rows, fps)),
    }


def _is_countable(values: NDArray[Any]) -> bool:
    """True for one number a row; where one isn't finite, that is the finding."""
    return values.ndim == 1 and values.dtype.kind in "if" and bool(np.isfinite(values).all())


def _kind(arrow_type: Any) -> str:
    """``int``, ``float`` or ``bool``, of a vector its elements'; ``other`` for all else."""
    import pyarrow as pa

    arrow_type = getattr(arrow_type, "storage_type", arrow_type)
    while (
        pa.types.is_list(arrow_type)
        or pa.types.is_fixed_size_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
    ):
        arrow_type = arrow_type.value_type
    for name in ("integer", "floating", "boolean"):
        if getattr(pa.types, f"is_{name}")(arrow_type):
            return {"integer": "int", "floating": "float", "boolean": "bool"}[name]
    return "other"


def _num_missing(column: Any) -> int:
    """Cells, or elements of cells, that are empty."""
    import pyarrow as pa

    missing = int(column.null_count)
    for chunk in column.chunks:
        inner = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        while hasattr(inner, "flatten") and not pa.types.is_struct(inner.type):
            if not hasattr(inner.type, "value_type") or pa.types.is_dictionary(inner.type):
                break
            inner = inner.flatten()
            missing += int(inner.null_count)
    return missing


def _values(values: NDArray[Any]) -> Facts:
    if values.dtype == object:  # vectors that differ in length
        parts = [np.asarray(value).reshape(-1) for value in values]
        flat = np.concatenate(parts) if parts else np.zeros(0)
        finite = bool(np.all(np.isfinite(flat))) if flat.dtype.kind == "f" else True
        return {"shape": None, "not_finite": None if finite else 0, "least": None, "most": None}
    facts: Facts = {"shape": list(values.shape[1:]), "not_finite": None}
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
        facts["not_finite"] = int(wrong[0]) if len(wrong) else None
    return facts | _ranges(values)


def _ranges(values: NDArray[Any]) -> Facts:
    """The least and most finite value of each element."""
    flat = values.reshape(len(values), -1)
    if len(flat) == 0 or flat.shape[1] > MAX_ELEMENTS or flat.shape[1] == 0:
        return {"least": None, "most": None}
    if flat.dtype.kind == "f":
        finite = np.isfinite(flat)
        if not finite.any(axis=0).all():
            return {"least": None, "most": None}
        return {
            "least": np.where(finite, flat, np.inf).min(axis=0).tolist(),
            "most": np.where(finite, flat, -np.inf).max(axis=0).tolist(),
        }
    flat = flat.astype(np.int64)
    return {"least": flat.min(axis=0).tolist(), "most": flat.max(axis=0).tolist()}


def _episodes(
    columns: dict[str, NDArray[Any]], num_rows: int, fps: float | None
) -> Iterator[Facts]:
    numbers = columns.get("episode_index")
    if numbers is None or len(numbers) != num_rows or num_rows == 0:
        yield _episode(columns, slice(0, num_rows), None, fps)
        return
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), num_rows]
    for first, end in itertools.pairwise(edges):
        yield _episode(columns, slice(first, end), int(numbers[first]), fps)


def _episode(
    columns: dict[str, NDArray[Any]], rows: slice, number: int | None, fps: float | None
) -> Facts:
    """The facts of one run of rows.

    Returns:
        ``episode``, ``first`` row and number of ``rows``; ``frame_index``, the first row that
        isn't counted from 0; ``index_start``, and ``index``, the first row that isn't counted from
        there; ``tasks``; ``time_start``, and ``time_row`` with ``time_off``, the row furthest from
        the grid and how far it is in seconds. What isn't there, or isn't wrong, is None.
    """
    part = {name: values[rows] for name, values in columns.items()}
    count = rows.stop - rows.start
    index = part.get("index")
    start = None if index is None or count == 0 else int(index[0])
    return {
        "episode": number,
        "first": rows.start,
        "rows": count,
        "frame_index": _miscounted(part.get("frame_index"), 0),
        "index_start": start,
        "index": _miscounted(index, start),
        "tasks": np.unique(part["task_index"]).tolist() if "task_index" in part else None,
        **_clock(part.get("timestamp"), fps),
    }


def _miscounted(values: NDArray[Any] | None, start: int | None) -> int | None:
    if values is None or start is None:
        return None
    wrong = np.flatnonzero(values != np.arange(start, start + len(values)))
    return int(wrong[0]) if len(wrong) else None


def _clock(times: NDArray[Any] | None, fps: float | None) -> Facts:
    """How the rows' times fit ``first + row / fps``, beyond what their float's size explains."""
    nothing = {"time_start": None, "time_row": None, "time_off": None}
    if times is None or fps is None or len(times) == 0 or not np.all(np.isfinite(times)):
        return nothing
    slack = np.spacing(np.abs(times)).astype(np.float64) if times.dtype == np.float32 else 0.0
    seconds = times.astype(np.float64)
    # The first row may be rounded as well, so the grid goes through the middle of the rows' own.
    own = seconds - np.arange(len(times)) / fps
    off = np.abs(own - np.median(own))
    worst = int(np.argmax(off - slack))
    far = bool((off - slack)[worst] > ROW_TOLERANCE)
    return {
        "time_start": float(seconds[0]),
        "time_row": worst if far else None,
        "time_off": float(off[worst]) if far else None,
    }
