"""A few encodings measured on a sample of the dataset's own frames."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.care.reencode._compare import Likeness, compare, quality_of
from reelseek.care.reencode._encoding import DEFAULT_ENCODINGS, Encoding
from reelseek.care.reencode._sample import encode_clip
from reelseek.care.reencode._seek import Spread, Stretch, time_in_turn
from reelseek.care.reencode._source import Source, check_pyav, decoded
from reelseek.care.reencode._videos import DatasetVideo, videos_of
from reelseek.datasets import Dataset, open_dataset
from reelseek.errors import DatasetError
from reelseek.index import FrameTable, index_video

if TYPE_CHECKING:
    import av

LEAST_CLIPS = 3
MOST_CLIPS = 8
SSIM_EVERY = 5
"""Frames of which one has its SSIM computed."""
MOST_CLIP_BYTES = 1 << 28
"""What the frames of one clip may take in memory."""
Tell = Callable[[int, int], None]
"""(steps done, steps in all)."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One encoding of the sample."""

    encoding: Encoding | None
    """How it was encoded; None for the source as it is."""
    bytes_per_frame: float
    """On average over the sample."""
    dataset_bytes: int
    """What all videos of the dataset would take: known for the source, estimated for others."""
    seek_ms: Spread
    """Reading two frames at a random place, warm, one thread, in milliseconds."""
    psnr_db: float | None
    """Of the encoded frames against what was encoded; None for the source."""
    ssim: float | None
    """The same, as structural similarity; None for the source."""
    encode_frames_per_second: float | None
    """How fast it was encoded, on one thread; None for the source."""
    num_key_frames: int
    """Key frames in the sample."""
    num_frames: int
    """Frames in the sample."""

    def document(self) -> dict[str, Any]:
        """For JSON."""
        options = None if self.encoding is None else self.encoding.command_options()
        return {**dataclasses.asdict(self), "options": options}


def plan_encodings(
    root: str | os.PathLike[str],
    encodings: Sequence[Encoding] = DEFAULT_ENCODINGS,
    *,
    num_frames: int = 300,
    num_reads: int = 40,
    cameras: Sequence[str] | None = None,
    seed: int = 0,
    tell: Tell | None = None,
) -> tuple[Measured, ...]:
    """Encode clips of a dataset's own frames in several ways, and measure each.

    The clips are consecutive frames of several videos of all cameras. Reads go through
    ``open_video``, the same places in each encoding in turn, so that what else the machine does
    meets all of them alike.

    Args:
        root: The dataset; it isn't changed.
        encodings: What to measure.
        num_frames: Of each clip. Fewer than a GOP has make long GOPs look cheaper than they are.
        num_reads: Of each clip, in each encoding.
        cameras: The cameras' own names; None takes all.
        seed: Of the choice of clips and places.
        tell: Is told how far it is.

    Returns:
        The source as it is, then the encodings as they were given.

    Raises:
        DatasetError: The dataset can't be read, or has no videos.
        DependencyError: PyAV is older than 17.
    """
    check_pyav()
    dataset = open_dataset(root, output="numpy")
    videos = videos_of(dataset, cameras)
    if not videos:
        raise DatasetError("it has no videos to encode", path=dataset.root)
    rng = np.random.default_rng(seed)
    clips = _choose(dataset, videos, num_frames, rng)
    steps = _Steps(len(clips) * (len(encodings) + 1), tell)
    trials = [_Trial(None), *map(_Trial, encodings)]
    with tempfile.TemporaryDirectory(prefix="reelseek-plan-") as folder:
        for number, clip in enumerate(clips):
            _encode(clip, number, trials, Path(folder), dataset.fps, steps)
        for number, clip in enumerate(clips):
            _time(clip, number, trials, num_reads, rng)
            steps.next()
    total = sum(video.num_rows for video in videos)
    size = sum(video.num_bytes for video in videos)
    return tuple(trial.measured(total, size) for trial in trials)


def balanced(measured: Sequence[Measured]) -> Measured:
    """The encoding whose seek time squared times size is least: fast first, then small."""
    encodings = [one for one in measured if one.encoding is not None]
    return min(encodings, key=lambda one: one.seek_ms.median**2 * one.bytes_per_frame)


@dataclass(frozen=True, slots=True)
class _Clip:
    """Consecutive frames of one video, from a key frame on."""

    path: str
    table: FrameTable
    first: int
    count: int


@dataclass(slots=True)
class _Trial:
    """What is known of one encoding so far."""

    encoding: Encoding | None
    files: list[Path] = field(default_factory=list)
    num_bytes: int = 0
    num_frames: int = 0
    num_keys: int = 0
    seconds: float = 0.0
    likenesses: list[Likeness] = field(default_factory=list)
    seek_ms: list[float] = field(default_factory=list)

    def measured(self, total_frames: int, source_bytes: int) -> Measured:
        per_frame = self.num_bytes / self.num_frames
        quality = quality_of(self.likenesses) if self.likenesses else None
        return Measured(
            encoding=self.encoding,
            bytes_per_frame=per_frame,
            dataset_bytes=round(per_frame * total_frames) if self.encoding else source_bytes,
            seek_ms=Spread.of(self.seek_ms),
            psnr_db=quality.psnr_db if quality else None,
            ssim=quality.ssim if quality else None,
            encode_frames_per_second=self.num_frames / self.seconds if self.encoding else None,
            num_key_frames=self.num_keys,
            num_frames=self.num_frames,
        )


class _Steps:
    def __init__(self, total: int, tell: Tell | None) -> None:
        self._done, self._total, self._tell = 0, total, tell

    def next(self) -> None:
        """One more is done."""
        self._done += 1
        if self._tell is not None:
            self._tell(self._done, self._total)


def _choose(
    dataset: Dataset, videos: list[DatasetVideo], num_frames: int, rng: np.random.Generator
) -> list[_Clip]:
    """Clips of several videos: each camera's in turn, its files at random."""
    of_camera: dict[str, list[DatasetVideo]] = {}
    for place in rng.permutation(len(videos)):
        of_camera.setdefault(videos[place].camera, []).append(videos[place])
    wanted = min(MOST_CLIPS, max(LEAST_CLIPS, len(of_camera)))
    turns = [of_camera[camera] for camera in sorted(of_camera)]
    chosen = [turns[n % len(turns)][n // len(turns) % len(turns[n % len(turns)])]
              for n in range(wanted)]  # fmt: skip
    return [
        _clip(os.path.join(dataset.root, video.key), num_frames, rng) for video in chosen
    ]  # fmt: skip


def _clip(path: str, num_frames: int, rng: np.random.Generator) -> _Clip:
    """From a key frame at random, so near to the start that there are frames enough after it."""
    table = index_video(path)
    most = MOST_CLIP_BYTES // (table.stream.width * table.stream.height * 3 // 2)
    count = min(num_frames, len(table), max(2, most))
    starts = np.flatnonzero(table.is_key[: len(table) - count + 1])
    is_free = table.has_unique_pts and not table.has_partial_keys
    first = int(rng.choice(starts)) if is_free and len(starts) else 0
    return _Clip(path, table, first, count)


def _encode(
    clip: _Clip, number: int, trials: list[_Trial], folder: Path, fps: float, steps: _Steps
) -> None:
    """Encode a clip in each way, and compare the frames."""
    _take_source(clip, trials[0])
    for place, trial in enumerate(trials[1:]):
        assert trial.encoding is not None
        source = Source(clip.path, clip.table, trial.encoding)
        frames = list(source.frames(clip.first, clip.count))
        path = folder / f"{number}-{place}.mp4"
        started = time.perf_counter()
        trial.num_bytes += encode_clip(path, source, trial.encoding, frames, fps)
        trial.seconds += time.perf_counter() - started
        table = index_video(str(path))
        trial.num_keys += int(table.is_key.sum())
        trial.num_frames += len(frames)
        trial.likenesses += compare(_pairs(path, table, frames), ssim_every=SSIM_EVERY)
        trial.files.append(path)
        steps.next()


def _pairs(
    path: Path, table: FrameTable, frames: list[av.VideoFrame]
) -> Iterator[tuple[av.VideoFrame, av.VideoFrame]]:
    return zip(decoded(str(path), table, 0, len(frames)), frames, strict=True)


def _take_source(clip: _Clip, trial: _Trial) -> None:
    table, span = clip.table, slice(clip.first, clip.first + clip.count)
    positions = table.decode_position[span]
    sizes = table.packet_size[positions] if np.all(positions >= 0) else table.packet_size
    trial.num_bytes += int(sizes.sum() * clip.count / len(sizes))
    trial.num_keys += int(table.is_key[span].sum())
    trial.num_frames += clip.count
    trial.files.append(Path(clip.path))


def _time(
    clip: _Clip, number: int, trials: list[_Trial], num_reads: int, rng: np.random.Generator
) -> None:
    """Time reads of a clip in each encoding."""
    stretches = [
        Stretch(trial.files[number], clip.first if trial.encoding is None else 0)
        for trial in trials
    ]
    times = time_in_turn(stretches, clip.count, num_reads, rng)
    for trial, found in zip(trials, times, strict=True):
        trial.seek_ms += found
