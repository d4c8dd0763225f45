"""Open videos of a dataset, kept up to a bound by count and by file descriptors."""

from __future__ import annotations

import resource
from collections import OrderedDict
from collections.abc import Callable

from reelseek._fork_lock import ForkLock
from reelseek.video import Video

DEFAULT_MAX_OPEN = 32
DESCRIPTORS_LEFT_FOR_OTHERS = 64


def max_open_videos(wanted: int | None) -> int:
    """How many videos to keep open: what is wanted, within a quarter of the descriptors left."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = DEFAULT_MAX_OPEN if wanted is None else wanted
    if soft != resource.RLIM_INFINITY:
        count = min(count, (soft - DESCRIPTORS_LEFT_FOR_OTHERS) // 4)
    return max(1, count)


class VideoCache:
    """The videos used last, each open once.

    A video that leaves the cache is closed when nobody reads from it any more: its last owner's
    reference is its life.

    Threads: safe. Fork: a child opens its own decoders (``Video`` sees to it). Pickling: empty.
    """

    def __init__(self, open_one: Callable[[str], Video], max_open: int) -> None:
        self._open_one = open_one
        self._max_open = max_open
        self._videos: OrderedDict[str, Video] = OrderedDict()
        self._lock = ForkLock()

    def get(self, path: str) -> Video:
        """The video of this path, opened where it isn't yet."""
        with self._lock:
            video = self._videos.get(path)
            if video is None:
                while len(self._videos) >= self._max_open:
                    self._videos.popitem(last=False)
                video = self._videos[path] = self._open_one(path)
            self._videos.move_to_end(path)
            return video

    def close(self) -> None:
        """Close all of them; the next ``get`` opens them again."""
        with self._lock:
            self._videos.clear()

    def __len__(self) -> int:
        return len(self._videos)
