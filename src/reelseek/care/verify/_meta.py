"""What a dataset's meta folder says, as far as it can be read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from reelseek.care.verify._codes import found
from reelseek.care.verify._findings import Finding
from reelseek.datasets._files import LFS_FAULT, check_json_lines, read_json, read_json_lines
from reelseek.datasets._info import read_info
from reelseek.datasets._layout_v2 import LayoutV2
from reelseek.datasets._layout_v3 import TASK_TEXT, LayoutV3
from reelseek.datasets._modality import Modality, read_modality
from reelseek.datasets._records import DatasetInfo, Layout
from reelseek.errors import DatasetNotFoundError, ReelseekError

T = TypeVar("T")
NOT_READ_ELSEWHERE = ("stats.json", "episodes_stats.jsonl", "episodes.jsonl", "tasks.jsonl")
"""LeRobot's files whose content isn't checked, or not where another file of meta is damaged."""


@dataclass(frozen=True, slots=True)
class Meta:
    """The meta folder; what couldn't be read is None, and a finding."""

    root: Path
    """The dataset's folder."""
    info: DatasetInfo | None
    """info.json."""
    layout: Layout | None
    """The episodes and tasks, and where the files are."""
    modality: Modality | None
    """modality.json; None also where there is none."""
    findings: tuple[Finding, ...]
    """What is wrong in the folder itself."""

    def relative(self, path: str | os.PathLike[str]) -> str:
        """A path as findings have it."""
        return os.path.relpath(path, self.root)


def read_meta(root: Path) -> Meta:
    """Read what can be read.

    Raises:
        DatasetNotFoundError: The folder is no dataset: it has neither ``meta/info.json`` nor a
            ``data`` or ``videos`` folder beside a ``meta`` folder.
    """
    findings: list[Finding] = []

    def tried(read: Callable[[], T]) -> T | None:
        try:
            return read()
        except ReelseekError as exc:
            findings.append(_fault(root, exc))
            return None

    _check_is_dataset(root)
    info = tried(lambda: read_info(root))
    layout = modality = None
    if info is not None:
        doubled = tried(lambda: list(_doubled(root, info)))
        findings += doubled or []
        if not any(finding.code == "episode-duplicate" for finding in findings):
            layout = tried(lambda: _layout(root, info))
    modality = tried(lambda: read_modality(root))
    for name in NOT_READ_ELSEWHERE:
        if (root / "meta" / name).exists():
            tried(lambda name=name: _check_syntax(root / "meta" / name))  # type: ignore[misc]
    return Meta(root, info, layout, modality, tuple(dict.fromkeys(findings)))


def _check_is_dataset(root: Path) -> None:
    if (root / "meta" / "info.json").exists():
        return
    if (root / "meta").is_dir() and ((root / "data").is_dir() or (root / "videos").is_dir()):
        return
    read_info(root)  # raises with the reason


def _layout(root: Path, info: DatasetInfo) -> Layout:
    return LayoutV3(root, info) if info.version == "v3.0" else LayoutV2(root, info)


def _check_syntax(path: Path) -> None:
    """Is it what its name says?"""
    if path.suffix == ".jsonl":
        check_json_lines(path)
    else:
        read_json(path)


def _fault(root: Path, exc: ReelseekError) -> Finding:
    what = exc.what + (f" ({exc.detail})" if exc.detail else "")
    code = "meta-unreadable"
    if isinstance(exc, DatasetNotFoundError):
        code = "meta-missing"
    elif exc.what == LFS_FAULT:
        code = "meta-lfs-pointer"
    path = "meta" if exc.path is None else os.path.relpath(exc.path, root)
    return found(code, what, remedy=exc.remedy, path=path)


def _doubled(root: Path, info: DatasetInfo) -> Iterator[Finding]:
    """Episodes and tasks that are listed twice."""
    episodes, tasks = _numbers_v3(root) if info.version == "v3.0" else _numbers_v2(root)
    path = "meta/episodes" if info.version == "v3.0" else "meta/episodes.jsonl"
    for number, times in Counter(filter(_is_plain, episodes)).items():
        if times > 1:
            yield found("episode-duplicate", f"episode {number} is listed {times} times",
                        path=path, episode=number)  # fmt: skip
    path = "meta/tasks.parquet" if info.version == "v3.0" else "meta/tasks.jsonl"
    for place, label in ((0, "task_index"), (1, "text")):
        values = (task[place] for task in tasks if _is_plain(task[place]))
        for value, times in Counter(values).items():
            if times > 1:
                what = f"the task with the {label} {value!r} is listed {times} times"
                yield found("task-duplicate", what, path=path)


def _is_plain(value: object) -> bool:
    """True for what can be listed twice; all else is refused where the layout is read."""
    return isinstance(value, int | str)


def _numbers_v2(root: Path) -> tuple[list[object], list[tuple[object, str]]]:
    episodes: list[object] = [
        line.get("episode_index") for line in read_json_lines(root / "meta/episodes.jsonl")
    ]
    tasks = [
        (line.get("task_index"), str(line.get("task")))
        for line in read_json_lines(root / "meta/tasks.jsonl")
    ]
    return episodes, tasks


def _numbers_v3(root: Path) -> tuple[list[object], list[tuple[object, str]]]:
    from reelseek.datasets._parquet import read_columns

    nothing = np.zeros(0, np.int64)
    episodes: list[object] = []
    for path in sorted((root / "meta" / "episodes").glob("*/*.parquet")):
        columns = read_columns(path, ["episode_index"])
        episodes += columns.get("episode_index", nothing).tolist()
    columns = read_columns(root / "meta/tasks.parquet", None)
    texts = columns.get(TASK_TEXT, columns.get("task", nothing)).tolist()
    numbers = columns.get("task_index", nothing).tolist()
    return episodes, [(n, str(text)) for n, text in zip(numbers, texts, strict=False)]
