"""GR00T's modality.json against the columns, cameras and tasks that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reelseek.care.verify._codes import found
from reelseek.care.verify._findings import Finding
from reelseek.care.verify._judge_rows import Table
from reelseek.datasets._files import brief
from reelseek.datasets._modality import Modality
from reelseek.datasets._records import DatasetInfo

PATH = "meta/modality.json"


def judge_modality(
    modality: Modality,
    info: DatasetInfo | None,
    tasks: Mapping[int, str] | None,
    tables: Mapping[str, Table],
) -> Iterator[Finding]:
    """Names that stand for nothing.

    Args:
        modality: The file.
        info: info.json; None where it can't be read.
        tasks: Task texts by number; None where they can't be read.
        tables: The parquet files.
    """
    columns = _columns(tables)
    if columns:
        yield from _parts(modality, columns)
    if info is not None:
        yield from _cameras(modality, info)
    if tasks is not None:
        yield from _annotations(modality, tasks, tables)


def _columns(tables: Mapping[str, Table]) -> dict[str, dict[str, Any]]:
    """Each column, as the first file has it that has any."""
    columns: dict[str, dict[str, Any]] = {}
    for table in tables.values():
        columns = {**table.facts.get("columns", {}), **columns}
    return columns


def _parts(modality: Modality, columns: Mapping[str, dict[str, Any]]) -> Iterator[Finding]:
    named = {key: part.column for key, part in modality.parts.items()} | modality.annotation
    for key, column in named.items():
        if column not in columns:
            what = f"{brief(key)} is taken from the column {brief(column)}, which isn't there"
            yield found("modality-column", what, path=PATH, camera=key)
    for key, part in modality.parts.items():
        shape = columns.get(part.column, {}).get("shape")
        width = None if shape is None else shape[0] if shape else 1
        if width is not None and part.end > width:
            what = f"{brief(key)} is {part.start} to {part.end} of {brief(part.column)}, which has "
            yield found("modality-slice", f"{what}{width} numbers", path=PATH, camera=key)


def _cameras(modality: Modality, info: DatasetInfo) -> Iterator[Finding]:
    cameras = {name for name, feature in info.features.items() if feature.is_camera}
    for key, camera in modality.video.items():
        if camera not in cameras and key.removeprefix("video.") not in cameras:
            what = f"{brief(key)} is taken from the camera {brief(camera)}, not in info.json"
            yield found("modality-camera", what, path=PATH, camera=key)


def _annotations(
    modality: Modality, tasks: Mapping[int, str], tables: Mapping[str, Table]
) -> Iterator[Finding]:
    """Annotations that are no task; of the task_index column that is told of the rows."""
    for key, column in modality.annotation.items():
        for table in tables.values() if column != "task_index" else ():
            facts = table.facts.get("columns", {}).get(column, {})
            ends = (facts.get(end) or () for end in ("least", "most"))
            unknown = [number for end in ends for number in end if number not in tasks]
            if unknown:
                what = f"{brief(column)} holds {unknown[0]:g}, which isn't among the tasks"
                yield found("modality-task", what, path=table.path, camera=key)
