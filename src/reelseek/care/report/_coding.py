"""How a camera's videos are coded: key frames, kinds of frames, bytes. Nothing is decoded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reelseek.care.report._records import CameraCoding, Sampled
from reelseek.care.report._source import READ_ERRORS, Source, fault_text, spread
from reelseek.index import FrameTable, VideoTables
from reelseek.index._gop import UnitKind, gop_span, read_units
from reelseek.index._units import Pruning

MAX_VIDEOS = 8
"""Videos looked at for each camera."""
MAX_UNITS = 600
"""Coded frames of each video whose kind is read, from its start to the end of a group."""
UNITS_DRAWN = 60
"""Coded frames that are drawn, from the start of the first video."""


@dataclass(frozen=True, slots=True)
class KnownVideo:
    """A video that was looked at."""

    path: str
    tables: VideoTables


def videos_of(source: Source, camera: str) -> tuple[list[KnownVideo], Sampled, list[str]]:
    """Some videos of a camera, of how many, and what is wrong with those that can't be read."""
    episodes = source.some_episodes(len(source.layout.episodes))
    paths = list(dict.fromkeys(source.video_path(position, camera) for position in episodes))
    chosen = spread(paths, MAX_VIDEOS)
    found, faults = [], []
    for path in chosen:
        try:
            found.append(KnownVideo(path, source.tables(path)))
        except READ_ERRORS as exc:
            faults.append(fault_text(source.root, exc))
    return found, Sampled(len(chosen), len(paths), "videos"), faults


def coding_of(
    camera: str, videos: Sequence[KnownVideo], sample: Sampled, faults: Sequence[str]
) -> CameraCoding:
    """Sum up how these videos of a camera are coded."""
    first = videos[0].tables if videos else None
    kinds: Counter[str] = Counter()
    drawn: list[tuple[str, int]] = []
    for video in videos:
        units = _first_units(video)
        kinds.update(kind for kind, _size in units)
        drawn = drawn or units[:UNITS_DRAWN]
    stream = first.frames.stream if first else None
    groups = [_group_lengths(video.tables.frames) for video in videos]
    return CameraCoding(
        key=camera,
        codec=stream.codec if stream else "",
        width=stream.width if stream else 0,
        height=stream.height if stream else 0,
        pixel_format=stream.pixel_format if stream else "",
        num_frames=sum(len(video.tables.frames) for video in videos),
        num_bytes=sum(os.stat(video.path).st_size for video in videos),
        group_lengths=np.concatenate(groups) if groups else np.zeros(0, np.int64),
        kinds={kind.value: kinds[kind.value] for kind in UnitKind if kinds[kind.value]},
        first_units=tuple(drawn),
        pruning=_pruning(first),
        sample=sample,
        faults=tuple(faults),
    )


def _pruning(tables: VideoTables | None) -> str:
    if tables is None:
        return ""
    if isinstance(tables.units, str):
        return f"{Pruning.NONE.value}: not readable by units, {tables.units}"
    return tables.units.pruning.value


def _group_lengths(table: FrameTable) -> NDArray[np.int64]:
    """Frames from each key frame to the next, or to the end."""
    keys = np.flatnonzero(table.is_key)
    return np.diff(np.append(keys, len(table))).astype(np.int64)


def _first_units(video: KnownVideo) -> list[tuple[str, int]]:
    """Kind and bytes of the first coded frames of a video, up to the end of a group."""
    units = video.tables.units
    if isinstance(units, str) or len(units) == 0:
        return _first_packets(video.tables.frames)
    stop = gop_span(units, min(MAX_UNITS, len(units)) - 1).stop
    found = read_units(video.path, units, range(stop))
    return [(one.kind.value, one.num_bytes) for one in found]


def _first_packets(table: FrameTable) -> list[tuple[str, int]]:
    """The same where only packets are known."""
    count = min(MAX_UNITS, len(table))
    packets = table.decode_position[:count]
    sizes = np.where(packets >= 0, table.packet_size[packets], 0).tolist()
    kinds = [UnitKind.KEY if key else UnitKind.INTER for key in table.is_key[:count].tolist()]
    return [(kind.value, size) for kind, size in zip(kinds, sizes, strict=True)]
