"""What a dataset is, at a glance, and what looks wrong with it.

Quick: all files are looked at by name and size, a few videos per camera are indexed, none decoded.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reelseek.datasets._dataset import Dataset
from reelseek.errors import ReelseekError
from reelseek.video import Video, open_video

ENCODERS = {"av1": ("libsvtav1", "libaom-av1"), "h264": ("libx264", "avc1"), "hevc": ("libx265",)}
"""Names that some writers give instead of the codec's."""

VIDEOS_LOOKED_AT = 3
"""Per camera: the first, the middle and the last episode's."""


@dataclass(frozen=True, slots=True)
class CameraSummary:
    """One camera, as its first readable video shows it."""

    key: str
    """Its key in a sample."""
    codec: str
    """The codec's name; ``image`` for pictures in parquet; empty where no video was readable."""
    width: int
    """In pixels."""
    height: int
    """In pixels."""
    pixel_format: str
    """FFmpeg's name of the coded pixel format."""
    mean_gop: float
    """Frames per key frame, over the videos looked at."""
    num_files: int
    """Video files that there should be."""
    num_bytes: int
    """Bytes of those that are there."""


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The dataset's index, which ``reelseek index`` makes."""

    path: str
    """The file; empty where there is none that can be used."""
    num_bytes: int
    """Its size."""
    num_fresh: int
    """Videos that it has as they are now."""
    num_videos: int
    """Videos of the dataset."""
    note: str
    """What is wrong with an index that is there and isn't used; empty where nothing is."""


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    """A dataset at a glance."""

    root: str
    """The folder."""
    format: str
    """Such as ``LeRobot v2.1, with GR00T's modality.json``."""
    robot_type: str
    """What ``info.json`` says; empty where it doesn't."""
    num_episodes: int
    """Episodes in ``meta``."""
    num_frames: int
    """Rows in ``meta``."""
    fps: float
    """Frames a second."""
    episode_lengths: tuple[int, int, int]
    """Frames of the shortest, the median and the longest episode."""
    tasks: tuple[str, ...]
    """Task texts."""
    cameras: tuple[CameraSummary, ...]
    """The cameras that have files."""
    index: IndexSummary
    """Whether the first read of a video has to look into it."""
    num_bytes: int
    """Bytes of the whole folder."""
    findings: tuple[str, ...]
    """What looks wrong, a line each."""

    @property
    def hours(self) -> float:
        """Recorded time, per camera, in hours."""
        return self.num_frames / self.fps / 3600


def summarise(dataset: Dataset) -> DatasetSummary:
    """Look a dataset over."""
    findings = [*_disagreements(dataset), *_missing_parquet(dataset)]
    cameras = []
    for key in dataset.sample_keys.cameras:
        if key.is_video:
            camera, wrong = _camera(dataset, key.key, key.camera)
            findings += wrong
        else:
            camera = _image_camera(dataset, key.key, key.camera)
        cameras.append(camera)
    lengths = dataset.episodes.lengths if len(dataset.episodes) else np.zeros(1, np.int64)
    with_modality = ", with GR00T's modality.json" if dataset.modality else ""
    return DatasetSummary(
        root=str(dataset.root),
        format=f"LeRobot {dataset.info.version}{with_modality}",
        robot_type=str(dataset.info.raw.get("robot_type") or ""),
        num_episodes=len(dataset.episodes),
        num_frames=len(dataset),
        fps=dataset.fps,
        episode_lengths=(int(lengths.min()), int(np.median(lengths)), int(lengths.max())),
        tasks=tuple(dataset.tasks.values()),
        cameras=tuple(cameras),
        index=_index(dataset),
        num_bytes=sum(size for _path, size in _files(dataset.root)),
        findings=tuple(findings),
    )


def _index(dataset: Dataset) -> IndexSummary:
    layout = dataset.layout
    videos = {
        layout.video_of(position, key.camera).path
        for key in dataset.sample_keys.cameras
        if key.is_video
        for position in range(len(layout.episodes))
    }
    sidecar = dataset.index.sidecar
    return IndexSummary(
        path="" if sidecar is None else sidecar.path,
        num_bytes=0 if sidecar is None else sidecar.num_bytes,
        num_fresh=sum(dataset.index.lookup(str(path)) is not None for path in videos),
        num_videos=len(videos),
        note=dataset.index.note,
    )


def _disagreements(dataset: Dataset) -> Iterator[str]:
    """Where ``info.json`` says other things than the files."""
    raw, found = dataset.info.raw, dataset.layout.episodes
    for name, counted in (
        ("total_episodes", len(found)),
        ("total_frames", int(found.starts[-1])),
        ("total_tasks", len(dataset.tasks)),
    ):
        if raw.get(name) is not None and raw[name] != counted:
            yield f"info.json says {name} {raw[name]}, and meta lists {counted}"
    with_files = {camera.camera for camera in dataset.every_key.cameras}
    for name, feature in dataset.features.items():
        if feature.is_camera and name not in with_files:
            yield f"info.json lists the camera {name}, which has no files"
    if dataset.modality:
        for key, camera in dataset.modality.video.items():
            if camera not in with_files:
                yield f"modality.json takes {key} from {camera}, which has no files"


def _missing_parquet(dataset: Dataset) -> Iterator[str]:
    paths = {
        dataset.layout.rows_of(position).path for position in range(len(dataset.layout.episodes))
    }
    yield from _missing(sorted(paths), "parquet files")


def _missing(paths: list[Path], what: str) -> Iterator[str]:
    sizes = {path: _size(path) for path in paths}
    absent = [path for path, size in sizes.items() if size is None]
    empty = [path for path, size in sizes.items() if size == 0]
    for kind, which in (("missing", absent), ("empty", empty)):
        if which:
            yield f"{len(which)} of {len(paths)} {what} {kind}, the first: {which[0]}"


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _camera(dataset: Dataset, key: str, camera: str) -> tuple[CameraSummary, list[str]]:
    """A camera kept as video, and what looks wrong with it."""
    layout = dataset.layout
    count = len(layout.episodes)
    spans = [layout.video_of(position, camera) for position in range(count)]
    paths = list(dict.fromkeys(span.path for span in spans))
    findings = list(_missing(paths, f"videos of {key}"))
    rows: Counter[Path] = Counter()
    for position, span in enumerate(spans):
        rows[span.path] += int(layout.episodes.lengths[position])
    videos: list[Video] = []
    for path in _some(paths):
        try:
            with open_video(path, backend="pyav") as video:
                videos.append(video)
                findings += _video_findings(dataset, camera, video, rows[path])
        except ReelseekError as exc:
            if _size(path):
                findings.append(str(exc))
    sizes = [_size(path) or 0 for path in paths]
    return _camera_summary(key, videos, len(paths), sum(sizes)), findings


def _camera_summary(key: str, videos: list[Video], num_files: int, size: int) -> CameraSummary:
    if not videos:
        return CameraSummary(key, "", 0, 0, "", 0.0, num_files, size)
    stream = videos[0].table.stream
    frames = sum(len(video) for video in videos)
    keys = sum(int(video.table.is_key.sum()) for video in videos)
    return CameraSummary(
        key=key,
        codec=stream.codec,
        width=stream.width,
        height=stream.height,
        pixel_format=stream.pixel_format,
        mean_gop=frames / max(keys, 1),
        num_files=num_files,
        num_bytes=size,
    )


def _some(paths: list[Path]) -> list[Path]:
    places = np.linspace(0, len(paths) - 1, min(VIDEOS_LOOKED_AT, len(paths))).astype(int)
    return [paths[place] for place in dict.fromkeys(places.tolist())]


def _video_findings(dataset: Dataset, camera: str, video: Video, num_rows: int) -> Iterator[str]:
    stream, feature = video.table.stream, dataset.features[camera]
    if len(video) != num_rows:
        yield f"{video.path} has {len(video)} frames for {num_rows} rows"
    if stream.average_fps and abs(float(stream.average_fps) - dataset.fps) > 0.01:
        yield (
            f"{video.path} runs at {float(stream.average_fps):.3f} frames a second, "
            f"info.json says {dataset.fps:g}"
        )
    said = tuple(feature.shape[:2])
    if len(feature.shape) == 3 and said != (stream.height, stream.width):
        yield f"{video.path} is {stream.width}x{stream.height}, info.json says {said[1]}x{said[0]}"
    codec = feature.info.get("video.codec")
    if isinstance(codec, str) and codec not in (stream.codec, *ENCODERS.get(stream.codec, ())):
        yield f"{video.path} is {stream.codec}, info.json says {codec}"
    yield from (f"{video.path}: {note}" for note in video.table.notes)


def _image_camera(dataset: Dataset, key: str, camera: str) -> CameraSummary:
    shape = dataset.features[camera].shape
    height, width = shape[:2] if len(shape) == 3 else (0, 0)
    return CameraSummary(key, "image", width, height, "", 1.0, 0, 0)


def _files(root: Path) -> Iterator[tuple[str, int]]:
    for folder, _folders, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            yield path, _size(Path(path)) or 0
