"""info.json, and what all files of a camera or column have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from reelseek.care.verify._codes import found, size_remedy
from reelseek.care.verify._findings import Finding
from reelseek.care.verify._judge_rows import Table
from reelseek.care.verify._judge_videos import Video
from reelseek.datasets._files import brief
from reelseek.datasets._records import DatasetInfo, Feature, Layout
from reelseek.datasets._summary import ENCODERS

PATH = "meta/info.json"
SPLIT = re.compile(r"\s*(\d{1,18})\s*:\s*(\d{1,18})\s*")
MAX_NUMBER = 1e9
"""No frame rate is beyond it; whole numbers in JSON may even be too large for a float."""
OPTIONAL = frozenset({"timestamp", "frame_index", "episode_index", "index", "task_index"})
"""Columns that LeRobot lists, and that other writers leave out."""
MIXED = (
    ("size", "mixed-size"), ("codec", "mixed-codec"), ("pixel_format", "mixed-pixel-format"),
    ("time_base", "mixed-time-base"), ("parameter_sets", "mixed-parameter-sets"),
)  # fmt: skip
HEIGHT_AND_WIDTH = (("height", "width"), ("h", "w"))
"""What writers call the dimensions of a picture."""
KINDS = {"float": "float", "int": "int", "uint": "int", "bool": "bool"}


def judge_totals(
    info: DatasetInfo, layout: Layout, num_rows: int, num_videos: int
) -> Iterator[Finding]:
    """The totals and splits of info.json against what is there."""
    episodes = len(layout.episodes)
    for name, code, counted, of in (
        ("total_episodes", "info-total-episodes", episodes, "episodes are listed in meta"),
        ("total_frames", "info-total-frames", num_rows, "rows are there"),
        ("total_tasks", "info-total-tasks", len(layout.tasks), "tasks are listed in meta"),
        ("total_videos", "info-total-videos", num_videos, "videos belong to the episodes"),
    ):
        said = info.raw.get(name)
        # Where an episode's rows aren't its length, that is told; the total may be of either.
        is_listed = name == "total_frames" and said == int(layout.episodes.starts[-1])
        if said is not None and said != counted and not is_listed:
            yield found(code, f"{name} is {brief(said)}, and {counted} {of}", path=PATH)
    yield from _splits(info.raw.get("splits"), episodes)
    yield from _gaps(layout)


def _splits(splits: Any, episodes: int) -> Iterator[Finding]:
    for name, span in splits.items() if isinstance(splits, dict) else ():
        match = SPLIT.fullmatch(span) if isinstance(span, str) else None
        if match and int(match[2]) > episodes:
            what = f"the split {brief(name)} is {span}, and there are {episodes} episodes"
            yield found("info-splits", what, path=PATH)


def _gaps(layout: Layout) -> Iterator[Finding]:
    for code, numbers, noun in (
        ("episode-gap", sorted(map(int, layout.episodes.indices)), "episodes"),
        ("task-gap", sorted(layout.tasks), "tasks"),
    ):
        if numbers and numbers[-1] + 1 != len(numbers):
            missing = next(n for n in range(len(numbers) + 1) if n >= len(numbers)
                           or numbers[n] != n)  # fmt: skip
            what = f"{len(numbers)} {noun} are numbered up to {numbers[-1]}: {missing} is left out"
            yield found(code, what, path="meta")


def judge_camera(feature: Feature, fps: float, videos: Sequence[Video]) -> Iterator[Finding]:
    """What the files of one camera have in common, and what info.json says of them."""
    facts = {video.path: video.facts for video in videos if "fault" not in video.facts}
    usual: dict[str, Any] = {}
    for name, code in MIXED:
        values = {path: _value(fact, name) for path, fact in facts.items()}
        # Another codec has other parameter sets, another clock another time base: said once.
        if values:
            usual[name] = Counter(values.values()).most_common(1)[0][0]
        if name == "parameter_sets":
            values = {p: v for p, v in values.items() if _is_usual(facts[p], usual)}
        for path, value in values.items():
            if value != usual[name]:
                what = _mixed_text(name, value, usual[name])
                remedy = size_remedy(*usual[name]) if name == "size" else ""
                yield found(code, what, remedy=remedy, path=path, camera=feature.name)
    yield from _about_camera(feature, fps, usual)


def _value(facts: dict[str, Any], name: str) -> Any:
    value = facts[name]
    return tuple(value) if isinstance(value, list) else value


def _is_usual(facts: dict[str, Any], usual: dict[str, Any]) -> bool:
    return all(_value(facts, name) == usual[name] for name in ("size", "codec", "pixel_format"))


def _mixed_text(name: str, value: Any, usual: Any) -> str:
    if name == "parameter_sets":
        return "its parameter sets differ from most of the camera's videos'"
    texts = [f"{v[0]}x{v[1]}" if name == "size" else f"{v[0]}/{v[1]} s" if name == "time_base"
             else str(v) for v in (value, usual)]  # fmt: skip
    return f"{texts[0]}, and most of the camera's videos are {texts[1]}"


def _about_camera(feature: Feature, fps: float, usual: dict[str, Any]) -> Iterator[Finding]:
    where = {"path": PATH, "camera": feature.name}
    said = _number(feature.info.get("video.fps"))
    if said is not None and said != fps:
        yield found("info-fps", f"video.fps is {said:g}, and the dataset's fps {fps:g}", **where)
    if not usual:
        return
    width, height = usual["size"]
    if len(feature.shape) == 3 and (height, width) not in _heights_and_widths(feature):
        what = f"info.json says {list(feature.shape)}, and the videos are {width}x{height}"
        yield found("info-shape", what, **where)
    codec = feature.info.get("video.codec")
    if codec and codec not in (usual["codec"], *ENCODERS.get(usual["codec"], ())):
        what = f"info.json says {brief(codec)}, and the videos are {usual['codec']}"
        yield found("info-codec", what, **where)
    pixel_format = feature.info.get("video.pix_fmt")
    if pixel_format and pixel_format != usual["pixel_format"]:
        what = f"info.json says {brief(pixel_format)}, and the videos are {usual['pixel_format']}"
        yield found("info-pixel-format", what, **where)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) <= MAX_NUMBER else None


def _heights_and_widths(feature: Feature) -> set[tuple[int, int]]:
    """What a shape of three may mean: its names say, else writers differ in the order."""
    shape, names = feature.shape, feature.names
    for height, width in HEIGHT_AND_WIDTH:
        if isinstance(names, list) and len(names) == 3 and height in names and width in names:
            return {(shape[names.index(height)], shape[names.index(width)])}
    return set(permutations(shape, 2))


def judge_columns(info: DatasetInfo, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """The columns of the files against the features of info.json."""
    unlisted: dict[str, None] = {}
    for table in tables.values():
        if not table.is_readable:
            continue
        columns = table.facts["columns"]
        for name, feature in info.features.items():
            if feature.dtype != "video":
                yield from _column(feature, columns.get(name), table)
        unlisted |= dict.fromkeys(set(columns) - set(info.features) - OPTIONAL)
    for name in sorted(unlisted):
        what = f"the column {brief(name)} isn't among the features"
        yield found("column-unlisted", what, path=PATH, camera=name)


def _column(feature: Feature, column: dict[str, Any] | None, table: Table) -> Iterator[Finding]:
    where = {"path": table.path, "camera": feature.name}
    if column is None:
        if feature.name not in OPTIONAL:
            yield found("column-missing", f"there is no column {brief(feature.name)}", **where)
        return
    if column["kind"] == "other" or column.get("shape") is None:
        return
    kind = KINDS.get(feature.dtype.rstrip("0123456789"))
    if kind is not None and kind != column["kind"]:
        what = f"info.json says {brief(feature.dtype)}, and the column holds {column['kind']}s"
        yield found("info-dtype", what, **where)
    shape = tuple(column["shape"])
    is_same = shape == feature.shape or (shape == () and feature.shape == (1,))
    if table.facts["num_rows"] and feature.shape and not is_same:
        what = f"info.json says {list(feature.shape)}, and the column has {list(shape)}"
        yield found("info-shape", what, **where)
