"""An order for long GOPs: random, and yet each group of pictures is decoded once.

A frame in the middle of a GOP of 250 costs the decoding of 125 frames. In plain random order each
sample pays that. Here a few episodes are open at a time and are decoded forward, a chunk of rows
each in turn; the samples of a chunk go into a buffer, and batches are drawn from the buffer at
random. It is the shuffle buffer of streamed datasets (tf.data's ``shuffle``, WebDataset's), with
the reading end spread over many episodes.

A stream is one such buffer. A loader has one for each worker, batch ``i`` comes from stream
``i % streams``, and what a stream draws depends on nothing but the seed, the epoch and its own
samples: the state of a loader needs no pixels.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reelseek.errors import LoaderStateError
from reelseek.loader._orders import Batch, Chunk, Share, checked_samples, samples_digest

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

BUFFER_BYTES = 192 * 1024 * 1024
WITHOUT_PIXELS = 4096
"""Samples in the buffer where there are no pixels to keep."""
FILLED_BY_BATCH = 4
"""Batches' worth of samples that are decoded for one batch at most, until the buffer is full."""


class GopShuffle:
    """Random order out of a buffer, for videos with long GOPs.

    Args:
        samples: Numbers of samples; None for all of the dataset.
        buffer_bytes: Memory for decoded frames, for each worker. The larger, the more random.
        buffer_samples: Samples in the buffer of each worker; None for what ``buffer_bytes`` holds.
        open_episodes: Episodes that each worker reads in turn; fewer where their frames would
            take more than half of the memory.
        chunk: Rows of an episode that are decoded at once.
        piece_rows: Longer episodes are cut into pieces at key frames, for them to be mixed too.
        streams: Buffers; None for one for each worker, which is the fastest.
    """

    def __init__(
        self,
        samples: ArrayLike | None = None,
        *,
        buffer_bytes: int = BUFFER_BYTES,
        buffer_samples: int | None = None,
        open_episodes: int = 16,
        chunk: int = 16,
        piece_rows: int = 1024,
        streams: int | None = None,
    ) -> None:
        for name, value in (
            ("buffer_bytes", buffer_bytes), ("open_episodes", open_episodes), ("chunk", chunk),
            ("piece_rows", piece_rows), ("buffer_samples", buffer_samples), ("streams", streams),
        ):  # fmt: skip
            if value is not None and value < 1:
                raise ValueError(f"{name}={value}: give 1 or more")
        self._wanted = None if samples is None else np.unique(np.asarray(samples, np.int64))
        self._buffer_bytes = buffer_bytes
        self._asked_samples = buffer_samples
        self._asked_open = open_episodes
        self._chunk = chunk
        self._piece_rows = piece_rows
        self._asked_streams = streams
        self.streams = streams or 1
        self.open_episodes = open_episodes
        self.buffer_samples = buffer_samples or WITHOUT_PIXELS
        self._pieces: list[NDArray[np.int64]] = []
        self._num_samples = 0
        self._digest = ""

    def bind(self, dataset: Dataset, num_workers: int) -> None:
        """Find the episodes' pieces, and how many samples the memory holds."""
        samples = checked_samples(self._wanted, dataset)
        self._num_samples = len(samples)
        self._digest = samples_digest(samples)
        self._pieces = list(pieces_of(dataset, samples, self._piece_rows))
        self.streams = self._asked_streams or max(1, num_workers)
        self._size_buffer(dataset)

    def num_samples(self) -> int:
        """How many samples an epoch has, over all ranks."""
        return self._num_samples

    def batches(self, share: Share, first: int) -> Iterator[Batch]:
        """The batches of one rank's epoch, from the batch of this number on."""
        count = share.num_batches(self._num_samples)
        streams = self._streams_of(share)
        is_behind = [first > 0] * len(streams)  # frames of earlier batches' chunks are missing
        for number in range(count):
            place = number % len(streams)
            stream = streams[place]
            size = share.size_of(number, self._num_samples)
            ahead = stream.admit(size)
            if number >= first and is_behind[place]:
                ahead, is_behind[place] = stream.everything(), False
            samples = stream.draw(size)
            if number >= first:
                yield Batch(number, share.seed_of(number), samples, tuple(ahead), share.run)

    def describe(self) -> dict[str, Any]:
        """The order's kind and options, for the state."""
        return {
            "kind": type(self).__name__,
            "samples": self._digest,
            "buffer_samples": self.buffer_samples,
            "open_episodes": self.open_episodes,
            "chunk": self._chunk,
            "piece_rows": self._piece_rows,
            "streams": self.streams,
        }

    def go_on_from(self, description: Any) -> None:
        """Take over the number of streams of a state, which may be of other workers."""
        streams = description.get("streams") if isinstance(description, dict) else None
        if isinstance(streams, int) and streams > 0 and self._asked_streams is None:
            own, self.streams = self.streams, streams
            if self.describe() == description:
                return
            self.streams = own
        if self.describe() != description:
            raise LoaderStateError(f"the state's order is {description}, not {self.describe()}")

    def _size_buffer(self, dataset: Dataset) -> None:
        sizes = [
            (dataset.frame_bytes(camera), dataset.offsets_of(camera))
            for camera in dataset.video_cameras
        ]
        behind = sum(size * (max(off) - min(off) + self._chunk) for size, off in sizes)
        each = sum(size * len(set(off)) for size, off in sizes)
        self.open_episodes = max(1, min(self._asked_open, len(self._pieces)))
        if behind:
            fitting = max(2, self._buffer_bytes // (2 * behind))
            self.open_episodes = min(self.open_episodes, fitting)
        if self._asked_samples is not None:
            self.buffer_samples = self._asked_samples
        elif each:
            left = self._buffer_bytes - self.open_episodes * behind
            self.buffer_samples = max(1, left // each)

    def _streams_of(self, share: Share) -> list[_Stream]:
        """Deal the pieces, in random order, to the ranks and their streams."""
        own = share.samples_per_rank(self._num_samples)
        order = [self._pieces[place] for place in share.permutation(len(self._pieces))]
        dealt = _run_of(order, share.rank * own, own) if own else []
        sizes = [0] * self.streams
        for number in range(share.num_batches(self._num_samples)):
            sizes[number % self.streams] += share.size_of(number, self._num_samples)
        streams, start = [], 0
        for place, size in enumerate(sizes):
            pieces = _run_of(dealt, start, size) if size else []
            name = f"{share.seed} {share.epoch} {share.rank} {place}"
            streams.append(
                _Stream(
                    pieces,
                    random.Random(name),  # noqa: S311 - a choice, not a secret
                    place,
                    self.buffer_samples,
                    self._chunk,
                    self.open_episodes,
                )
            )
            start += size
        return streams


class _Stream:
    """A shuffle buffer that is filled from several pieces in turn."""

    def __init__(
        self,
        pieces: list[NDArray[np.int64]],
        chance: random.Random,
        place: int,
        buffer_samples: int,
        chunk: int,
        open_pieces: int,
    ) -> None:
        self._pieces = pieces
        self._chance = chance
        self._place = place
        self._limit = buffer_samples
        self._chunk = chunk
        self._open_limit = open_pieces
        self._next_piece = 0
        self._open: dict[int, int] = {}  # piece to the rows of it that were taken
        self._numbers: list[int] = []  # the open pieces, for a random one of them
        self._buffer: list[tuple[int, int]] = []  # a sample and its piece
        self._allowed = 0

    def admit(self, size: int) -> list[Chunk]:
        """Fill the buffer, so that at least ``size`` samples are in it; what is to be decoded."""
        self._allowed = min(self._limit, self._allowed + FILLED_BY_BATCH * size)
        chunks: list[Chunk] = []
        while len(self._buffer) < max(self._allowed, size) and self._open_more():
            chunks.append(self._take_chunk())
        return chunks

    def draw(self, size: int) -> NDArray[np.int64]:
        """Take random samples out of the buffer."""
        buffer, drawn = self._buffer, np.empty(size, np.int64)
        for number in range(size):
            place = self._below(len(buffer))
            drawn[number] = buffer[place][0]
            buffer[place] = buffer[-1]
            buffer.pop()
        return drawn

    def everything(self) -> list[Chunk]:
        """All that is in the buffer, as if it were to be decoded now."""
        by_piece: dict[int, list[int]] = {}
        for sample, piece in self._buffer:
            by_piece.setdefault(piece, []).append(sample)
        return [self._as_chunk(piece, sorted(samples)) for piece, samples in by_piece.items()]

    def _take_chunk(self) -> Chunk:
        place = self._below(len(self._numbers))
        piece = self._numbers[place]
        taken = self._open[piece]
        samples = self._pieces[piece][taken : taken + self._chunk].tolist()
        self._open[piece] = taken + len(samples)
        if self._open[piece] == len(self._pieces[piece]):
            del self._open[piece]
            self._numbers[place] = self._numbers[-1]
            self._numbers.pop()
        self._buffer += [(sample, piece) for sample in samples]
        return self._as_chunk(piece, samples)

    def _as_chunk(self, piece: int, samples: list[int]) -> Chunk:
        taken = self._open.get(piece)
        following = -1 if taken is None else int(self._pieces[piece][taken])
        return Chunk((self._place, piece), np.array(samples, np.int64), following)

    def _open_more(self) -> bool:
        """Have as many pieces open as there may be; False where all were read to their ends."""
        while len(self._numbers) < self._open_limit and self._next_piece < len(self._pieces):
            self._open[self._next_piece] = 0
            self._numbers.append(self._next_piece)
            self._next_piece += 1
        return bool(self._numbers)

    def _below(self, count: int) -> int:
        """A random number: Python promises what ``random`` gives, not what it makes of it."""
        return int(self._chance.random() * count)


def pieces_of(
    dataset: Dataset, samples: NDArray[np.int64], piece_rows: int
) -> Iterator[NDArray[np.int64]]:
    """Samples by episode; long episodes in pieces that begin at key frames.

    Args:
        dataset: Whose samples they are.
        samples: (N,) their numbers, ascending.
        piece_rows: A piece has at least so many samples before it is cut.
    """
    starts = np.cumsum(dataset.episodes.lengths)
    for own in np.split(samples, np.searchsorted(samples, starts)):
        if len(own) >= 2 * piece_rows:
            yield from _cut(own, dataset.key_samples(int(own[0])), piece_rows)
        elif len(own):
            yield own


def _cut(
    samples: NDArray[np.int64], keys: NDArray[np.int64], piece_rows: int
) -> Iterator[NDArray[np.int64]]:
    start = 0
    for place in np.searchsorted(samples, keys).tolist():
        if place - start >= piece_rows and len(samples) - place >= piece_rows:
            yield samples[start:place]
            start = place
    yield samples[start:]


def _run_of(pieces: list[NDArray[np.int64]], start: int, count: int) -> list[NDArray[np.int64]]:
    """The pieces that hold ``count`` samples from the ``start``-th on, round and round."""
    total = sum(map(len, pieces))
    run: list[NDArray[np.int64]] = []
    before, wanted_from, left = 0, start % total, count
    while left:
        for piece in pieces:
            part = piece[max(0, wanted_from - before) :][:left]
            before += len(piece)
            if len(part):
                run.append(part)
                left -= len(part)
        before, wanted_from = 0, 0
    return run
