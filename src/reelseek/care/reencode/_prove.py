"""A new file is held against its source before it counts as done, frame by frame."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reelseek.bench._oracle import digest
from reelseek.care.reencode._compare import Quality, compare, quality_of
from reelseek.care.reencode._encoder import Output
from reelseek.care.reencode._source import Colours, Source, decoded
from reelseek.errors import DecodeError, VideoError
from reelseek.index import FrameTable, index_tables
from reelseek.video import Video
from reelseek.video._open import open_with_tables

if TYPE_CHECKING:
    import av

FRAMES_AT_ONCE = 8
RANDOM_READS = 16
"""Frames that are read once more, each after a jump."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a new file was found to be."""

    num_frames: int
    """Its frames: as many as its source's."""
    num_key_frames: int
    """Those that are key frames."""
    quality: Quality
    """How near its frames are to its source's."""


def prove(source: Source, output: Output, starts: list[int]) -> Proof:
    """Check a new file against its source, and against itself read at random.

    The number of frames, their times, size and colours are as they were to be; the frames that
    begin a part are key frames; reelseek's reader returns just what FFmpeg decodes.

    Args:
        source: The frames that were encoded.
        output: What was to be written.
        starts: Numbers of the frames that begin a part.

    Raises:
        DecodeError: The file isn't what it was to be; says how.
    """
    try:
        tables = index_tables(output.path)
        _check_table(tables.frames, output, starts)
        _check_colours(tables.frames, source, output)
        with open_with_tables(output.path, tables) as video:
            likenesses = compare(_pairs(source, video, output.path))
            quality = quality_of(likenesses)
    except DecodeError:
        raise
    except VideoError as exc:
        _fail(output.path, "can't be read", str(exc))
    return Proof(len(tables.frames), int(tables.frames.is_key.sum()), quality)


def _check_table(table: FrameTable, output: Output, starts: list[int]) -> None:
    clock, stream = output.clock, table.stream
    if len(table) != len(clock.pts):
        _fail(output.path, f"has {len(table)} frames of {len(clock.pts)}")
    if (stream.width, stream.height) != output.size:
        _fail(output.path, f"is {stream.width}x{stream.height}, not {output.size}")
    if stream.codec != output.encoding.codec:
        _fail(output.path, f"is {stream.codec}, not {output.encoding.codec}")
    exact = clock.time_base / stream.time_base
    wrong = np.flatnonzero(table.pts * exact.denominator != clock.pts * exact.numerator)
    if len(wrong):
        at = table.pts_seconds()[wrong[0]]
        _fail(output.path, f"frame {wrong[0]} is at {at} s, not {clock.seconds()[wrong[0]]} s")
    if not table.is_key[[0, *starts]].all():
        _fail(output.path, "an episode's first frame is no key frame")


def _check_colours(table: FrameTable, source: Source, output: Output) -> None:
    found = Colours.of(next(decoded(output.path, table, 0, 1)))
    if not output.colours.is_kept_by(found):
        _fail(output.path, f"has the colours {found}, and its source {output.colours}")
    if table.stream.pixel_format.replace("yuvj", "yuv") != source.pixel_format:
        _fail(output.path, f"is {table.stream.pixel_format}, not {source.pixel_format}")


def _pairs(
    source: Source, video: Video, path: str
) -> Iterator[tuple[av.VideoFrame, av.VideoFrame]]:
    """The new file's frames, each with its source's, once the reader has returned it too."""
    from av.video.reformatter import VideoReformatter

    read, reformatter = _read_in_turn(video), VideoReformatter()
    digests: list[bytes] = []
    frames = decoded(path, video.table, 0, len(video))
    for number, (frame, reference) in enumerate(zip(frames, source.frames(), strict=True)):
        pixels = _rgb(reformatter, frame)
        if not np.array_equal(pixels, next(read)):
            _fail(path, f"frame {number} isn't read as FFmpeg decodes it", video.info.backend)
        digests.append(digest(pixels))
        yield frame, reference
    _check_jumps(video, digests)


def _read_in_turn(video: Video) -> Iterator[NDArray[np.uint8]]:
    with video.reader_of_its_own() as reader:
        for first in range(0, len(video), FRAMES_AT_ONCE):
            yield from reader.get_frames_in_range(first, first + FRAMES_AT_ONCE).numpy()


def _check_jumps(video: Video, digests: list[bytes]) -> None:
    """Read some frames in random order."""
    choice = random.Random(0)  # noqa: S311 - a sample, no secret
    for number in choice.sample(range(len(digests)), min(RANDOM_READS, len(digests))):
        if digest(video.get_frame_at(number).numpy()) != digests[number]:
            _fail(video.path, f"frame {number} is another one when read at random")


def _rgb(reformatter: Any, frame: Any) -> NDArray[np.uint8]:
    """(H, W, 3), as every backend converts it."""
    from av.video.reformatter import Interpolation

    picture = reformatter.reformat(frame, format="rgb24", interpolation=Interpolation.BICUBIC)
    pixels: NDArray[np.uint8] = picture.to_ndarray()
    return pixels


def _fail(path: str, what: str, detail: str = "") -> NoReturn:
    raise DecodeError(
        f"the new file {what}",
        remedy="The source is untouched; try another --codec or --preset, and please report it",
        path=path,
        detail=detail,
    )
