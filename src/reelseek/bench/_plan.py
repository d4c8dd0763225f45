"""Which frames a seek benchmark reads: the same for every backend, in a seeded order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reelseek.errors import DatasetFormatError, FeatureNotFoundError
from reelseek.video import Video, open_video

if TYPE_CHECKING:
    from reelseek.datasets import Dataset, Episode

MAX_EPISODES = 12
"""Episodes that the seeks are spread over; each of their files is decoded once to be compared."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """What one seek reads from one camera's file."""

    camera: str
    """The camera's key."""
    path: str
    """Its video file."""
    frames: tuple[int, ...]
    """Frame numbers, one for each offset."""
    elsewhere: tuple[int, ...]
    """As many frames at another place in the file, read before the timed ones."""


@dataclass(frozen=True, slots=True)
class Seek:
    """One random sample of the dataset."""

    index: int
    """The sample's number."""
    reads: tuple[FileRead, ...]
    """One for each camera."""


@dataclass(frozen=True, slots=True, eq=False)
class FileFacts:
    """What is known of one of the files."""

    path: str
    """The file."""
    num_bytes: int
    """Its size."""
    codec: str
    """Its codec's name."""
    width: int
    """In pixels."""
    height: int
    """In pixels."""
    num_frames: int
    """Its number of frames."""
    num_key_frames: int
    """How many of them are key frames."""
    seconds: NDArray[np.float64]
    """(N,) when each frame appears."""

    def to_json(self) -> dict[str, Any]:
        """For the JSON document."""
        names = ("path", "num_bytes", "codec", "width", "height", "num_frames", "num_key_frames")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a seek benchmark reads."""

    seeks: tuple[Seek, ...]
    """The timed seeks, in order."""
    offsets: tuple[int, ...]
    """Frames of one seek, from its base."""
    cameras: tuple[str, ...]
    """The cameras read."""
    files: dict[str, FileFacts]
    """The files read, by path."""
    seed: int
    """Of the random choice."""

    def first_reads(self, count: int) -> list[FileRead]:
        """Up to ``count`` reads of files that are all different, over all cameras in turn."""
        chosen: dict[str, FileRead] = {}
        for number, seek in enumerate(self.seeks):
            read = seek.reads[number % len(seek.reads)]
            chosen.setdefault(read.path, read)
        return list(chosen.values())[:count]

    def cold_reads(self) -> list[FileRead]:
        """The first read of every file, in the order of the seeks."""
        first: dict[str, FileRead] = {}
        for seek in self.seeks:
            for read in seek.reads:
                first.setdefault(read.path, read)
        return list(first.values())

    def reads_by_file(self) -> dict[str, list[tuple[int, ...]]]:
        """Every read of the plan, by path."""
        found: dict[str, list[tuple[int, ...]]] = {}
        for seek in self.seeks:
            for read in seek.reads:
                found.setdefault(read.path, []).extend((read.elsewhere, read.frames))
        return found


def make_plan(
    dataset: Dataset,
    *,
    seeks: int,
    offsets: Sequence[int],
    cameras: Sequence[str] | None,
    seed: int,
) -> Plan:
    """Choose random samples of a dataset, and find their frames.

    Args:
        dataset: An open dataset with cameras kept as video.
        seeks: How many samples.
        offsets: Frames of one seek, in rows from the sample's own.
        cameras: Keys of the cameras; None for all.
        seed: Of the random choice.

    Raises:
        FeatureNotFoundError: There is no such camera, or no camera at all.
        DatasetFormatError: The dataset holds no episode.
        VideoError: A file can't be read.
    """
    chosen = _cameras(dataset, cameras)
    random_numbers = random.Random(seed)  # noqa: S311 - a choice, not a secret
    episodes = [episode for episode in dataset.episodes if episode.length]
    if not episodes:
        raise DatasetFormatError("the dataset holds no frame", path=dataset.root)
    episodes = random_numbers.sample(episodes, min(MAX_EPISODES, len(episodes)))
    files: dict[str, FileFacts] = {}
    made = []
    for number in range(seeks):
        episode = episodes[number % len(episodes)]
        bases = [_base(random_numbers, episode, offsets) for _ in range(2)]
        reads = tuple(_file_read(dataset, camera, bases, offsets, files) for camera in chosen)
        made.append(Seek(bases[0], reads))
    random_numbers.shuffle(made)
    return Plan(tuple(made), tuple(offsets), chosen, files, seed)


def _cameras(dataset: Dataset, wanted: Sequence[str] | None) -> tuple[str, ...]:
    known = dataset.cameras
    unknown = [camera for camera in wanted or () if camera not in known]
    if unknown or not known:
        raise FeatureNotFoundError(
            f"no camera {unknown[0]!r}" if unknown else "the dataset has no camera",
            remedy=f"Its cameras: {', '.join(known)}" if known else "",
            path=dataset.root,
        )
    return tuple(wanted or known)


def _base(numbers: random.Random, episode: Episode, offsets: Sequence[int]) -> int:
    """A sample all of whose offsets are inside its episode, where the episode is long enough."""
    first, last = max(0, -min(offsets)), episode.length - 1 - max(0, *offsets)
    return episode.start + (numbers.randint(first, last) if first <= last else 0)


def _file_read(
    dataset: Dataset,
    camera: str,
    bases: Sequence[int],
    offsets: Sequence[int],
    files: dict[str, FileFacts],
) -> FileRead:
    places = [dataset.locate(base, camera, offsets) for base in bases]
    path = places[0].path
    with open_video(path, backend="pyav") as video:
        frames, elsewhere = (
            tuple(video.indices_nearest(place.seconds).tolist()) for place in places
        )
        if path not in files:
            files[path] = file_facts(video)
    return FileRead(camera, path, frames, elsewhere)


def file_facts(video: Video) -> FileFacts:
    """What a report says of a file."""
    info = video.info
    return FileFacts(
        path=video.path,
        num_bytes=Path(video.path).stat().st_size,
        codec=info.codec,
        width=info.width,
        height=info.height,
        num_frames=len(video),
        num_key_frames=len(info.key_frames),
        seconds=video.table.pts_seconds(),
    )
