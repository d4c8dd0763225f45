"""Frames that are decoded before their sample's turn, in the order of their files, and kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from reelseek.datasets import Dataset
from reelseek.datasets._memory import new_pixels, writable
from reelseek.loader._orders import Chunk
from reelseek.types import Pixels
from reelseek.video import Video

FRAMES_AT_ONCE = 64
"""Frames for which memory is taken at once. It is used again, not given back."""

Name = tuple[str, int]
"""A video file, and the number of a frame of it."""


@dataclass(slots=True, eq=False)
class _Kept:
    """A decoded frame."""

    place: Pixels
    """(H, W, 3) uint8."""
    uses: int
    """How often it is still needed."""


@dataclass(slots=True, eq=False)
class _Cursor:
    """Where the reading of one camera of one piece is."""

    reader: Video
    """Keeps its own decoder, which is at ``following``."""
    following: int
    """The first frame that wasn't decoded."""
    held: set[int] = field(default_factory=set)
    """Frames kept for chunks to come."""


class ReadAhead:
    """Decodes chunks of episodes forward, and hands each frame out as often as it is needed.

    What isn't kept, or not any more, has to be decoded by whoever asks: it decides how fast a
    batch is read, never what is in it.

    Threads: not safe.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._kept: dict[Name, _Kept] = {}
        self._cursors: dict[tuple[int, int], dict[str, _Cursor]] = {}
        self._free: dict[tuple[int, ...], list[Pixels]] = {}
        self._run = -1

    def begin(self, run: int) -> None:
        """Forget the frames of another pass."""
        if run == self._run:
            return
        self._run = run
        for kept in self._kept.values():
            self._give_back(kept.place)
        self._kept.clear()
        self._cursors.clear()

    def admit(self, chunks: Iterable[Chunk]) -> None:
        """Decode the frames of samples whose turn comes.

        Raises:
            DatasetError, VideoError: As ``Dataset.get_batch``.
        """
        for chunk in chunks:
            cursors = self._cursors.setdefault(chunk.piece, {})
            for camera in self._dataset.video_cameras:
                self._admit_camera(chunk, camera, cursors)
            if chunk.following < 0:
                for cursor in cursors.values():
                    self._hold(cursor, set())
                    cursor.reader.close()
                del self._cursors[chunk.piece]

    def take(self, path: str, frame: int, target: Pixels) -> bool:
        """Write a frame, where it is kept; the last time that it is needed, it goes."""
        kept = self._kept.get((path, frame))
        if kept is None:
            return False
        target[...] = kept.place
        self._use((path, frame), kept)
        return True

    def _admit_camera(self, chunk: Chunk, camera: str, cursors: dict[str, _Cursor]) -> None:
        video, numbers = self._dataset.frames_of(camera, chunk.samples)
        needed = Counter(numbers.ravel().tolist())
        cursor = cursors.get(camera)
        if cursor is None:
            cursor = cursors[camera] = _Cursor(video.reader_of_its_own(), min(needed))
        bound = max(needed) + 1  # frames from here on are for chunks to come
        if chunk.following >= 0:
            bound = int(self._dataset.frames_of(camera, [chunk.following])[1].min())
        span = range(cursor.following, max(needed) + 1)
        self._decode(cursor, [f for f in span if f >= bound or f in needed])
        cursor.following = max(cursor.following, span.stop)
        for frame, uses in needed.items():
            kept = self._kept.get((video.path, frame))
            if kept is not None:
                kept.uses += uses
        self._hold(cursor, {f for f in cursor.held if f >= bound})

    def _decode(self, cursor: _Cursor, frames: list[int]) -> None:
        """Decode frames that follow, and hold all of them."""
        path = cursor.reader.path
        stream = cursor.reader.table.stream
        shape = (stream.height, stream.width, 3)
        missing = [frame for frame in frames if (path, frame) not in self._kept]
        places = [self._new_place(shape) for _ in missing]
        try:
            cursor.reader.read_into(missing, places)
        except BaseException:
            for place in places:
                self._give_back(place)
            raise
        for frame, place in zip(missing, places, strict=True):
            self._kept[path, frame] = _Kept(place, 0)
        for frame in frames:
            self._kept[path, frame].uses += 1
        cursor.held.update(frames)

    def _hold(self, cursor: _Cursor, frames: set[int]) -> None:
        """Let go of what a cursor holds but these."""
        path = cursor.reader.path
        for frame in cursor.held - frames:
            self._use((path, frame), self._kept[path, frame])
        cursor.held = frames

    def _use(self, name: Name, kept: _Kept) -> None:
        kept.uses -= 1
        if kept.uses <= 0:
            del self._kept[name]
            self._give_back(kept.place)

    def _new_place(self, shape: tuple[int, ...]) -> Pixels:
        free = self._free.setdefault(shape, [])
        if not free:
            free.extend(writable(new_pixels((FRAMES_AT_ONCE, *shape), self._dataset.device)))
        return free.pop()

    def _give_back(self, place: Pixels) -> None:
        self._free[tuple(place.shape)].append(place)
