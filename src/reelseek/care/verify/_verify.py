"""Looking a whole dataset over: list the files, look into each, judge what was found."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, get_args

from reelseek.care.jobs import Executor
from reelseek.care.verify._check_file import PARQUET
from reelseek.care.verify._codes import found
from reelseek.care.verify._files import Files, list_files
from reelseek.care.verify._findings import Finding, VerifyReport, sorted_findings
from reelseek.care.verify._judge_info import judge_camera, judge_columns, judge_totals
from reelseek.care.verify._judge_modality import judge_modality
from reelseek.care.verify._judge_pictures import judge_pictures, motion_of
from reelseek.care.verify._judge_rows import (
    Table,
    judge_constants,
    judge_table,
    num_rows,
    value_ranges,
)
from reelseek.care.verify._judge_videos import Video, judge_video
from reelseek.care.verify._look import Tell, look_into
from reelseek.care.verify._meta import Meta, read_meta
from reelseek.care.verify._windows import Part
from reelseek.datasets._records import VideoSpan

Level = Literal["quick", "decode"]
LEVELS = get_args(Level)


def verify_dataset(
    root: str | os.PathLike[str],
    *,
    level: Level = "quick",
    executor: Executor | None = None,
    is_fresh: bool = False,
    tell: Tell | None = None,
) -> VerifyReport:
    """Find what is wrong with a dataset.

    Args:
        root: The folder that holds ``meta``, ``data`` and ``videos``.
        level: ``quick`` looks at meta, the parquet columns and each video's index; ``decode`` also
            decodes every frame.
        executor: Where files are looked into; None for this process, one after the other. With
            one, a run that was stopped is gone on from; what was decoded is kept beside the
            dataset's index, so that the next run looks only into files that were changed since.
        is_fresh: Look into all files again, whatever was kept.
        tell: Is told how many of the files are done.

    Raises:
        DatasetNotFoundError: The folder is no dataset. What is wrong with one is a finding.
        ReelseekError: Another run with an executor is at work on it.

    Example:
        >>> from reelseek.care.verify import verify_dataset
        >>> verify_dataset(sample_dataset).is_sound
        True
    """
    if level not in LEVELS:
        raise ValueError(f"level={level!r}: choose one of {', '.join(LEVELS)}")
    started = time.monotonic()
    folder = Path(os.path.abspath(os.fspath(root)))
    meta = read_meta(folder)
    files = list_files(meta)
    looked = look_into(
        folder, files.to_check, level, None if meta.info is None else meta.info.fps,
        executor=executor, is_fresh=is_fresh, tell=tell or _tell_nobody,
    )  # fmt: skip
    failed = [found("check-failed", text, path=path) for path, text in looked.failures.items()]
    facts = looked.facts
    findings = [*meta.findings, *files.findings, *failed, *_judged(meta, files, facts)]
    return VerifyReport(
        root=str(folder),
        level=level,
        findings=sorted_findings(findings),
        num_files=len(facts),
        num_kept=looked.num_kept,
        num_frames=sum(_frames_seen(fact) for fact in facts.values()),
        num_episodes=0 if meta.layout is None else len(meta.layout.episodes),
        seconds=time.monotonic() - started,
    )


def _frames_seen(facts: dict[str, Any]) -> int:
    decoded = facts.get("decoded")
    return int(decoded["num_frames"] if decoded else facts.get("num_frames", 0))


def _judged(meta: Meta, files: Files, facts: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    tables = {
        path: Table(path, fact, tuple(files.rows.get(path, ())))
        for path, fact in facts.items()
        if path.endswith(PARQUET)
    }
    rows = [] if meta.layout is None else num_rows(meta.layout, tables)
    starts = list(accumulate(rows, initial=0))
    for table in tables.values():
        yield from judge_table(table, meta.layout, starts)
    ranges = value_ranges(tables)
    yield from judge_constants(
        ranges, sum(table.facts.get("num_rows", 0) for table in tables.values())
    )
    if meta.modality is not None:
        tasks = None if meta.layout is None else meta.layout.tasks
        yield from judge_modality(meta.modality, meta.info, tasks, tables)
    videos = list(_videos(meta, files, facts, tables, rows))
    motion = motion_of(meta.layout, ranges)
    for video in videos:
        yield from judge_video(video)
        yield from judge_pictures(video, motion)
    if meta.info is not None:
        yield from judge_columns(meta.info, tables)
        for camera in files.videos:
            feature = meta.info.features[camera]
            own = [video for video in videos if video.camera == camera]
            yield from judge_camera(feature, meta.info.fps, own)
        if meta.layout is not None:
            num_videos = sum(len(places) for places in files.videos.values())
            yield from judge_totals(meta.info, meta.layout, starts[-1], num_videos)


def _videos(
    meta: Meta,
    files: Files,
    facts: dict[str, dict[str, Any]],
    tables: dict[str, Table],
    rows: list[int],
) -> Iterator[Video]:
    fps = None if meta.info is None else meta.info.fps
    starts = _row_starts(meta, tables)
    cameras = {path: camera for camera, places in files.videos.items() for path in places}
    for path, fact in facts.items():
        if path.endswith(PARQUET):
            continue
        camera = cameras.get(path, "")
        places = files.videos.get(camera, {}).get(path, [])
        parts = tuple(_part(meta, place, span, rows, starts) for place, span in places)
        is_shared = bool(places) and not places[0][1].is_whole_file
        yield Video(path, camera, fact, parts, is_shared, fps)


def _part(
    meta: Meta, position: int, span: VideoSpan, rows: list[int], starts: dict[int, float]
) -> Part:
    assert meta.layout is not None
    return Part(
        episode=int(meta.layout.episodes.indices[position]),
        rows=rows[position],
        listed=int(meta.layout.episodes.lengths[position]),
        start=span.from_seconds,
        end=span.to_seconds,
        rows_start=starts.get(position, 0.0),
    )


def _row_starts(meta: Meta, tables: dict[str, Table]) -> dict[int, float]:
    """The timestamp of each episode's first row, by the episode's place."""
    starts = {}
    for table in tables.values():
        for position, span in table.spans:
            assert meta.layout is not None
            run = table.run_of(int(meta.layout.episodes.indices[position]), span)
            if run is not None and run["time_start"] is not None:
                starts[position] = run["time_start"]
    return starts


def _tell_nobody(_done: int, _total: int) -> None:
    pass
