"""Single samples, warm and cold: what a Dataset's ``__getitem__`` costs in each way of reading.

The rows of the report that reelseek started from: PyAV opening the file in each call, with the
decoder threads that a node of 32 or 64 cores gives it; torchcodec with a cache of decoders; and
reelseek with the dataset's index.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.bench._loader_ways import Job, frames_with_pyav, open_ours
from reelseek.bench._loops import (
    in_turn,
    milliseconds,
    no_garbage_collection,
    now,
    only_new_garbage,
)
from reelseek.bench._timing import median
from reelseek.datasets import Location
from reelseek.errors import ReelseekError

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

Read = Callable[[int, Sequence[Location]], Any]
"""Reads a sample's frames: its number, and where they are for each camera."""


@dataclass(slots=True)
class SmokeTiming:
    """What single samples take in one way."""

    name: str
    """What is called."""
    why_not: str = ""
    """Why it has no times; empty where it has."""
    warm_ms: list[float] = field(default_factory=list)
    """Samples of an episode whose files were read before by this reader."""
    cold_ms: list[float] = field(default_factory=list)
    """The first sample of each episode."""

    @property
    def cold_to_warm(self) -> float | None:
        """How many times as long the first takes."""
        warm, cold = median(self.warm_ms), median(self.cold_ms)
        return cold / warm if warm and cold else None

    def to_json(self) -> dict[str, Any]:
        """For the JSON document."""
        return {
            "name": self.name,
            "why_not": self.why_not,
            "warm_median_ms": median(self.warm_ms),
            "cold_median_ms": median(self.cold_ms),
            "cold_to_warm": self.cold_to_warm,
            "warm_ms": self.warm_ms,
            "cold_ms": self.cold_ms,
        }


def time_smoke(dataset: Dataset, job: Job, samples: int, seed: int) -> tuple[SmokeTiming, ...]:
    """Time single samples in all ways, in turn.

    Args:
        dataset: The dataset; it says where frames are.
        job: What a sample is.
        samples: How many, cold and warm; cold ones take episodes in turn with new readers.
        seed: Of the choice.
    """
    chance = random.Random(seed)  # noqa: S311 - a choice, not a secret
    makers = _makers(job)
    timings = {name: SmokeTiming(name) for name in makers}
    pairs = _pairs(dataset, samples, chance)
    # New readers each time round; the first of the episodes is what they load libraries with.
    per_round = len(dataset.episodes)
    for start in range(0, len(pairs), per_round):
        readers: dict[str, Read] = {}
        for name, make in makers.items():
            if timings[name].why_not:
                continue
            try:
                readers[name] = make()
                _read(readers[name], dataset, job, pairs[start][0])
            except (ReelseekError, ImportError, RuntimeError) as exc:
                readers.pop(name, None)
                timings[name].why_not = str(exc)
        before = pairs[start][1]
        with only_new_garbage():
            for number, (cold, warm) in enumerate(pairs[start + 1 : start + per_round]):
                for name in in_turn(list(readers), number):
                    with no_garbage_collection():
                        # Untimed: else the cold one would also pay for what another reader left.
                        _read(readers[name], dataset, job, before)
                        timings[name].cold_ms.append(_read(readers[name], dataset, job, cold))
                        timings[name].warm_ms.append(_read(readers[name], dataset, job, warm))
                before = warm
    return tuple(timings.values())


def _pairs(dataset: Dataset, count: int, chance: random.Random) -> list[tuple[int, int]]:
    """Two samples each of one episode, episode after episode."""
    starts = np.concatenate([[0], np.cumsum(dataset.episodes.lengths)])
    order = list(range(len(dataset.episodes)))
    chance.shuffle(order)
    pairs = []
    for number in range(count):
        episode = order[number % len(order)]
        first, end = int(starts[episode]), int(starts[episode + 1])
        pairs.append((chance.randrange(first, end), chance.randrange(first, end)))
    return pairs


def _read(read: Read, dataset: Dataset, job: Job, sample: int) -> float:
    """The milliseconds that a sample takes."""
    places = [dataset.locate(sample, camera, job.offsets) for camera in dataset.cameras]
    started = now()
    read(sample, places)
    return milliseconds(started, now())[0]


def _makers(job: Job) -> dict[str, Callable[[], Read]]:
    """What makes a reader that has read nothing yet, by name."""
    return {
        "PyAV, open per call": lambda: partial(_with_pyav, None),
        "PyAV, 32 threads": lambda: partial(_with_pyav, 32),
        "PyAV, 64 threads": lambda: partial(_with_pyav, 64),
        "torchcodec, decoders cached": _TorchcodecCache,
        "reelseek, indexed": lambda: _Ours(job),
    }


def _with_pyav(threads: int | None, _sample: int, places: Sequence[Location]) -> Any:
    return [frames_with_pyav(place.path, np.array(place.seconds), threads) for place in places]


class _TorchcodecCache:
    """A VideoDecoder for each file that was read, on one thread, kept by the worker."""

    def __init__(self) -> None:
        from reelseek.native import activate

        activate()
        from torchcodec.decoders import VideoDecoder

        self._open = partial(VideoDecoder, num_ffmpeg_threads=1)
        self._decoders: dict[str, Any] = {}

    def __call__(self, _sample: int, places: Sequence[Location]) -> Any:
        found = []
        for place in places:
            decoder = self._decoders.get(place.path)
            if decoder is None:
                decoder = self._decoders[place.path] = self._open(place.path)
            frames = decoder.get_frames_at(list(place.frames)).data
            found.append(frames.permute(0, 2, 3, 1).numpy())
        return found


class _Ours:
    """``ds[i]``: all of the sample, states and actions too, whose rows are in memory."""

    def __init__(self, job: Job) -> None:
        self._dataset = open_ours(job)
        self._dataset.read_rows_ahead()

    def __call__(self, sample: int, _places: Sequence[Location]) -> Any:
        return self._dataset[sample]
