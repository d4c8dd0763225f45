"""What the pictures of an MP4 file's stream are, and whether the container says so too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from reelseek.bitstream._mp4 import VideoTrack
from reelseek.bitstream._nal import UNSAID

CODECS = {"avc1": "h264", "hvc1": "hevc", "hev1": "hevc", "av01": "av1", "vp09": "vp9"}
"""Sample entries, and what FFmpeg calls their codec."""
DECODERS = {"av1": "libdav1d"}
FIRST_FRAME_PACKETS = 64
WITHOUT_PIXELS = {"skip_loop_filter": "all", "skip_idct": "all"}
"""What a decoder can leave out where only a picture's size and format are asked for."""


class Picture(NamedTuple):
    """What a stream's pictures are, as coded."""

    width: int
    height: int
    pixel_format: str
    color_matrix: int


def configuration_of(track: VideoTrack) -> bytes:
    """The codec's configuration record, as FFmpeg has it."""
    return b"" if track.format == "vp09" else track.configuration


def says_colours(matrix: int, color_range: int, track: VideoTrack) -> bool:
    """False where the container says of the colours what the stream leaves out."""
    colours = track.colours
    if colours is None:
        return True
    adds_matrix = matrix == UNSAID and colours.matrix != UNSAID
    return not adds_matrix and not (color_range == 0 and colours.is_full_range)


def first_picture(track: VideoTrack, samples: Iterator[bytes]) -> Picture | None:
    """What the first picture is that the decoder puts out; None where it puts out none.

    Args:
        track: The track.
        samples: Its first samples, ``FIRST_FRAME_PACKETS`` at most.
    """
    frame = _first_frame(track, samples)
    if frame is None or not says_colours(int(frame.colorspace), int(frame.color_range), track):
        return None
    return Picture(frame.width, frame.height, frame.format.name, int(frame.colorspace))


def _first_frame(track: VideoTrack, samples: Iterator[bytes]) -> Any:
    import av

    codec = CODECS[track.format]
    context: Any = av.CodecContext.create(DECODERS.get(codec, codec), "r")
    context.extradata = configuration_of(track)
    context.thread_count = 1
    context.options = WITHOUT_PIXELS
    try:
        # Drained at once: a decoder that reorders would hold the first picture back.
        for data in samples:
            packet = av.Packet(data)
            for picture in [*context.decode(packet), *context.decode(None)]:
                return picture
            context.flush_buffers()
    except av.error.FFmpegError:
        pass
    return None
