"""The files that a dataset should have, and those that it has."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reelseek.care.verify._codes import found
from reelseek.care.verify._findings import Finding
from reelseek.care.verify._meta import Meta
from reelseek.datasets._records import Layout, RowSpan, VideoSpan
from reelseek.errors import FeatureNotFoundError, ReelseekError
from reelseek.index._build_index import list_videos

NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What ``stat`` says where there is no file, or a link to none."""


@dataclass(slots=True)
class Files:
    """Which episodes are in which file; paths are relative to the dataset."""

    rows: dict[str, list[tuple[int, RowSpan]]] = field(default_factory=dict)
    """By parquet file: the places of the episodes that it should hold, and where in it."""
    videos: dict[str, dict[str, list[tuple[int, VideoSpan]]]] = field(default_factory=dict)
    """By camera, then by video: the same."""
    findings: list[Finding] = field(default_factory=list)
    """Files that are missing, and files that nothing refers to."""
    to_check: list[str] = field(default_factory=list)
    """Files that are there, and are to be looked into."""


def list_files(meta: Meta) -> Files:
    """What is there, beside what should be."""
    files = Files()
    present = [os.fsdecode(path) for path in list_videos(str(meta.root))]
    parquet = list(_parquet_files(meta.root))
    if meta.layout is None or meta.info is None:
        files.to_check = sorted({*present, *parquet})
        return files
    try:
        _place_rows(meta, meta.layout, files)
        _place_videos(meta, meta.layout, files)
    except ReelseekError as exc:  # a template that leads out of the dataset
        files.findings.append(
            found("meta-unreadable", exc.what, remedy=exc.remedy, path="meta/info.json")
        )
        files.to_check = sorted({*present, *parquet})
        return files
    _drop_unused_cameras(meta, files)
    expected = {path for camera in files.videos.values() for path in camera} | set(files.rows)
    _find_missing(meta, files)
    files.to_check = sorted(path for path in expected if _is_there(meta.root / path))
    for path in sorted({*present, *parquet} - expected):
        files.findings.append(found("file-unused", "no episode refers to the file", path=path))
    return files


def _parquet_files(root: Path) -> Iterator[str]:
    for folder, _folders, names in os.walk(root / "data"):
        for name in names:
            if name.endswith(".parquet") and not name.startswith("."):
                yield os.path.relpath(os.path.join(folder, name), root)


def _place_rows(meta: Meta, layout: Layout, files: Files) -> None:
    for position in range(len(layout.episodes)):
        span = layout.rows_of(position)
        files.rows.setdefault(meta.relative(span.path), []).append((position, span))


def _place_videos(meta: Meta, layout: Layout, files: Files) -> None:
    assert meta.info is not None
    cameras = [name for name, feature in meta.info.features.items() if feature.dtype == "video"]
    for camera in cameras:
        places = files.videos.setdefault(camera, {})
        try:
            for position in range(len(layout.episodes)):
                span = layout.video_of(position, camera)
                places.setdefault(meta.relative(span.path), []).append((position, span))
        except FeatureNotFoundError:  # v3's meta has no files of it: as good as none
            places.clear()


def _drop_unused_cameras(meta: Meta, files: Files) -> None:
    """Cameras of info.json of which there is no file at all."""
    for camera in list(files.videos):
        places = files.videos[camera]
        if any(os.path.lexists(meta.root / path) for path in places) or not files.rows:
            continue
        del files.videos[camera]
        named = set(meta.modality.video.values()) if meta.modality else {camera}
        if camera in named:
            what = "meta/episodes places none of its videos"
            if places:
                what = f"none of its {len(places)} videos exists, such as {next(iter(places))}"
            files.findings.append(found("camera-without-files", what, camera=camera))
        else:
            what = "info.json lists the camera, it has no file, and modality.json doesn't use it"
            files.findings.append(found("camera-unused", what, camera=camera))


def _find_missing(meta: Meta, files: Files) -> None:
    assert meta.layout is not None
    for camera, places in files.videos.items():
        for path, episodes in places.items():
            if not _is_there(meta.root / path):
                what = f"the video {_of(meta.layout, episodes)} {_gone(meta.root / path)}"
                files.findings.append(
                    found("video-missing", what,
                          path=path, camera=camera, episode=_only(meta.layout, episodes))
                )  # fmt: skip
    for path, rows in files.rows.items():
        if not _is_there(meta.root / path):
            what = f"the file {_of(meta.layout, rows)} {_gone(meta.root / path)}"
            files.findings.append(
                found("parquet-missing", what, path=path, episode=_only(meta.layout, rows))
            )


def _is_there(path: Path) -> bool:
    """False where there is no file; True where only looking into it can tell, as on a bad disk."""
    try:
        path.stat()
    except OSError as exc:
        return exc.errno not in NO_FILE
    return True


def _gone(path: Path) -> str:
    return "is a link to a file that isn't there" if path.is_symlink() else "isn't there"


def _of(layout: Layout, episodes: list[tuple[int, VideoSpan]] | list[tuple[int, RowSpan]]) -> str:
    numbers = [int(layout.episodes.indices[position]) for position, _span in episodes]
    if len(numbers) == 1:
        return f"of episode {numbers[0]}"
    return f"of {len(numbers)} episodes, {min(numbers)} to {max(numbers)},"


def _only(
    layout: Layout, episodes: list[tuple[int, VideoSpan]] | list[tuple[int, RowSpan]]
) -> int | None:
    return int(layout.episodes.indices[episodes[0][0]]) if len(episodes) == 1 else None
