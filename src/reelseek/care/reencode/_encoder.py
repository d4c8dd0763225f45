"""Writing a video: frames in, an MP4 file out.

Each part of a file (an episode, in files that hold several) is encoded on its own and joined to
those before it, as LeRobot does: so it starts with a key frame and refers to nothing before it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reelseek.care.reencode._clock import Clock
from reelseek.care.reencode._encoding import Encoding
from reelseek.care.reencode._faults import raise_if_of_disk
from reelseek.care.reencode._source import Colours
from reelseek.errors import UnsupportedVideoError

if TYPE_CHECKING:
    import av

REORDER_DELAY = 2
"""Frames that x264 and x265 decode ahead of display where they use B-frames in pyramids."""
SVT_LOG = "SVT_LOG"
"""SVT-AV1 prints its settings to stderr for each file, unless this variable says 1 (errors)."""
TAGS = {"h264": "avc1", "hevc": "hvc1", "av1": "av01"}


@dataclass(frozen=True, slots=True)
class Output:
    """What a file is to be."""

    path: str
    """Where it is written."""
    encoding: Encoding
    """How its frames are encoded."""
    size: tuple[int, int]
    """(width, height) of its frames."""
    colours: Colours
    """What it says of its colours."""
    clock: Clock
    """When its frames appear."""


def write_video(
    output: Output, frames: Iterable[av.VideoFrame], starts: Collection[int] = ()
) -> None:
    """Encode frames and write them, the index (moov) first.

    The same frames give the same bytes: the encoders have one thread each.

    Args:
        output: What is written.
        frames: As many as the clock has times for.
        starts: Numbers of the frames that begin a part.

    Raises:
        UnsupportedVideoError: The encoder refuses the pictures.
        OutputError: The disk takes no more.
        OSError: Writing failed in a way that may pass.
    """
    import av

    options = {"movflags": "+faststart"}
    try:
        with av.open(output.path, "w", format="mp4", options=options) as container:
            stream: Any = container.add_stream(output.encoding.encoder, rate=output.clock.rate)
            stream.time_base = output.clock.time_base
            _configure(stream.codec_context, output)
            with _tame_svt():
                container.start_encoding()
            packets = _packets(stream.codec_context, output, frames, frozenset(starts))
            for number, packet in enumerate(packets):
                packet.stream = stream
                packet.dts = _decode_time(output, number)
                container.mux(packet)
    except av.error.FFmpegError as exc:
        raise_if_of_disk(exc, output.path)
        raise UnsupportedVideoError(
            f"{output.encoding.encoder} can't write it as {output.encoding}",
            remedy="Choose another --codec, --size or --preset",
            path=output.path,
            detail=str(exc),
        ) from exc


def _packets(
    first: Any, output: Output, frames: Iterable[av.VideoFrame], starts: frozenset[int]
) -> Iterator[Any]:
    """All packets in decode order."""
    encoder = first
    pts, step = output.clock.pts, output.clock.step
    for number, frame in enumerate(frames):
        if number and number in starts:
            yield from encoder.encode(None)
            encoder = _following(first, output)
        frame.pts, frame.time_base = int(pts[number]), output.clock.time_base
        frame.duration = int(pts[number + 1] - pts[number]) if number + 1 < len(pts) else step
        yield from encoder.encode(frame)
    yield from encoder.encode(None)


def _following(first: Any, output: Output) -> Any:
    """An encoder for the next part, whose frames the first one's parameter sets fit."""
    import av

    encoder = av.CodecContext.create(output.encoding.encoder, "w")
    _configure(encoder, output)
    with _tame_svt():
        encoder.open()
    if encoder.extradata != first.extradata:
        raise UnsupportedVideoError(
            "the encoder describes two parts of one file in two ways",
            remedy="Please report it, and choose another --codec",
            path=output.path,
        )
    return encoder


def _configure(context: Any, output: Output) -> None:
    from av.codec.context import Flags

    colours, encoding = output.colours, output.encoding
    context.width, context.height = output.size
    context.pix_fmt = encoding.pixel_format
    context.time_base, context.framerate = output.clock.time_base, output.clock.rate
    context.thread_count = 1
    context.color_range, context.colorspace = colours.range, colours.matrix
    context.color_primaries, context.color_trc = colours.primaries, colours.transfer
    context.codec_tag = TAGS[encoding.codec]
    context.flags |= int(Flags.global_header)
    context.options = encoding.encoder_options()


def _decode_time(output: Output, number: int) -> int:
    """When the packet of this number, in decode order, is decoded, in ticks.

    As display runs, and a fixed number of frames ahead of it where frames are reordered: parts
    that are joined then go on without a step back.
    """
    clock, encoding = output.clock, output.encoding
    delay = REORDER_DELAY if encoding.b_frames and encoding.codec != "av1" else 0
    at = number - delay
    return int(clock.pts[at]) if at >= 0 else int(clock.pts[0]) + at * clock.step


@contextmanager
def _tame_svt() -> Iterator[None]:
    """An encoder that is opened in here prints no settings, and all threads wait their turn.

    SVT-AV1 run by root gives its threads the highest real-time priority (SCHED_FIFO 99), and the
    one that opens it too, from which later threads and processes have it: nothing else runs on
    their cores while they do. They get the scheduling that the opening thread had.
    """
    log, threads = os.environ.get(SVT_LOG), _threads()
    policy, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    os.environ.setdefault(SVT_LOG, "1")
    try:
        yield
    finally:
        for thread in (threading.get_native_id(), *(_threads() - threads)):
            with contextlib.suppress(OSError):  # it has ended
                os.sched_setscheduler(thread, policy, priority)
        if log is None:
            os.environ.pop(SVT_LOG, None)


def _threads() -> set[int]:
    """This process's threads; none where the system doesn't list them."""
    try:
        return {int(thread.name) for thread in Path("/proc/self/task").iterdir()}
    except FileNotFoundError:
        return set()
