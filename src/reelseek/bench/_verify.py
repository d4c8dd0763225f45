"""Are the frames that the index leads to those of FFmpeg's decode from the start?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reelseek.bench._oracle import decode_all, digest
from reelseek.errors import ReelseekError, VideoError
from reelseek.index import VideoTables
from reelseek.video import Video
from reelseek.video._open import open_with_tables

FRAMES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the frames of one file."""

    path: str
    """The file."""
    backend: str
    """Which decoder read it in random order; empty where none did."""
    num_frames: int
    """Frames compared."""
    differing: tuple[int, ...]
    """Frames that aren't equal, bit for bit, or that aren't returned though FFmpeg decodes them."""
    message: str
    """Why frames aren't returned, or why the file can't be compared; empty where all is well."""

    @property
    def is_right(self) -> bool:
        """True where all frames are equal."""
        return not self.differing and not self.message


def verify_file(path: str, tables: VideoTables | None, *, seed: int = 0) -> Verdict:
    """Decode a file once in sequence and once by plan, in random order, and compare the pixels.

    Frames that FFmpeg itself can't decode whole are left out.

    Args:
        path: An absolute path.
        tables: What the index says of it; None indexes it now.
        seed: Of the order.
    """
    try:
        _table, oracle = decode_all(path)
        with open_with_tables(path, tables) as video:
            backend, count = video.info.backend, len(video)
            order = np.random.default_rng(seed).permutation(count)
            found = dict(_digests(video, order.tolist()))
    except ReelseekError as exc:
        return Verdict(path, "", 0, (), str(exc))
    sound = [n for n in range(min(count, len(oracle.digests))) if oracle.is_sound[n]]
    different = tuple(n for n in sound if found[n] != oracle.digests[n])
    failed = [found[n] for n in different if isinstance(found[n], VideoError)]
    message = str(failed[0]) if failed else ""
    if count != len(oracle.digests) and bool(oracle.is_sound.all()):
        message = f"the index lists {count} frames, and FFmpeg decodes {len(oracle.digests)}"
    return Verdict(path, backend, len(sound), different, message)


def _digests(video: Video, order: list[int]) -> Iterator[tuple[int, bytes | VideoError]]:
    """Each frame's number with the digest of its pixels, or with what was raised."""
    for start in range(0, len(order), FRAMES_AT_ONCE):
        some = order[start : start + FRAMES_AT_ONCE]
        try:
            batch = video.get_frames_at(some)
        except VideoError:  # find out which of them it is
            for frame in some:
                yield frame, _digest_or_error(video, frame)
        else:
            for frame, pixels in zip(some, batch.numpy(), strict=True):
                yield frame, digest(pixels)


def _digest_or_error(video: Video, frame: int) -> bytes | VideoError:
    try:
        return digest(video.get_frame_at(frame).numpy())
    except VideoError as exc:
        return exc
