"""The ``pyav`` backend: FFmpeg through PyAV, always there, and able to read every file.

It decodes from the frame table's entry for each frame and takes the frame whose timestamp is the
table's; a file whose frames have no timestamps of their own is decoded from its start and counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reelseek.errors import DeviceUnavailableError
from reelseek.index import NO_PTS, FrameTable
from reelseek.index._source import best_video_stream, open_container
from reelseek.video.backends._faults import invented, passed, unreadable
from reelseek.video.backends._protocol import OpenRequest, Targets, visits
from reelseek.video.backends._rgb import RgbWriter

NAME = "pyav"


def version() -> str:
    """PyAV's version."""
    import av

    return av.__version__


def open_decoder(request: OpenRequest) -> PyavDecoder:
    """Open one file with PyAV."""
    if request.device != "cpu":
        raise DeviceUnavailableError(
            f"pyav can't decode on {request.device!r}",
            remedy="Pass backend='torchcodec', or device='cpu'",
            backend=NAME,
        )
    return PyavDecoder(request)


class PyavDecoder:
    """Reads frames by number with one PyAV container."""

    def __init__(self, request: OpenRequest) -> None:
        self._request = request
        self._table: FrameTable = request.table
        self._by_pts = bool(len(self._table) and self._table.decode_position[0] >= 0)
        self._writer = RgbWriter(request, NAME)
        self._packet_of = {int(pts): n for n, pts in enumerate(self._table.packet_pts)}
        self._frames: Iterator[Any] = iter(())
        self._open(is_strict=self._is_strict_for(0))

    def read(self, frames: Sequence[int], out: Targets) -> None:
        """Decode frames by number into ``out``."""
        for frame, positions in visits(frames):
            first = positions[0]
            self._writer.write(frame, self._decode(frame), out[first])
            for position in positions[1:]:
                out[position][...] = out[first]

    def close(self) -> None:
        """Close the container."""
        self._frames = iter(())  # drops the generator, which holds the container
        self._container.close()

    def _is_strict_for(self, frame: int) -> bool:
        """True where damage on the way to a frame is an error.

        FFmpeg conceals damage, and what it shows then depends on where decoding started. It is
        left to do so only where decoding starts at the start of the file, as for the frames
        before the first IDR picture, whose references are missing by design.
        """
        return self._by_pts and bool(self._table.entry[frame] >= 0)

    def _open(self, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._container = open_container(self._request.path)
        self._stream = best_video_stream(self._container)
        self._stream.codec_context.thread_count = self._request.threads
        if is_strict:
            self._stream.codec_context.options = {"err_detect": "explode"}
        self._next = 0  # the first frame, in display order, that can still come out
        self._frames = _decoded(self._container.demux(self._stream))

    def _decode(self, frame: int) -> Any:
        """The decoded picture of a frame."""
        import av

        try:
            if not self._reaches(frame):
                self._seek(frame)
            return self._next_until(frame)
        except av.error.FFmpegError as exc:
            raise unreadable(self._request.path, frame, NAME, str(exc)) from exc

    def _reaches(self, frame: int) -> bool:
        """True where decoding on gives the frame at no more cost than seeking to it."""
        if frame < self._next or self._is_strict != self._is_strict_for(frame):
            return False
        if not self._by_pts:
            return True
        return bool(self._table.entry[frame] <= self._table.decode_position[self._next])

    def _seek(self, frame: int) -> None:
        entry = int(self._table.entry[frame])
        is_strict = self._is_strict_for(frame)
        if not is_strict or not self._is_strict:
            self._restart(is_strict)
        if not is_strict:
            return
        # Containers index by decoding time (MP4) or presentation time (Matroska).
        for ticks in (self._table.packet_pts[entry], self._table.packet_dts[entry]):
            if ticks == NO_PTS:
                continue
            self._container.seek(int(ticks), stream=self._stream, backward=True)
            packets = self._container.demux(self._stream)
            first = next(packets, None)
            landed = -1 if first is None else self._packet_of.get(int(first.pts or 0), -1)
            if 0 <= landed <= entry:
                following = itertools.chain([first], packets)
                self._frames = _decoded(itertools.islice(following, entry - landed, None))
                self._next = 0
                return
        self._restart(is_strict)

    def _restart(self, is_strict: bool) -> None:
        self._container.close()
        self._open(is_strict=is_strict)

    def _next_until(self, frame: int) -> Any:
        for picture in self._frames:
            number = self._number_of(picture)
            if -1 < number < self._next:
                break  # the decoder's order isn't that of the times
            self._next = max(self._next, number + 1)
            if number == frame:
                self._check(picture, frame)
                return picture
            if number > frame:
                break
        raise passed(self._request.path, frame, NAME)

    def _number_of(self, picture: Any) -> int:
        """A decoded picture's number in display order; -1 for one that isn't displayed."""
        if not self._by_pts:
            return self._next
        if picture.pts is None:
            return -1
        number = int(np.searchsorted(self._table.pts, picture.pts))
        found = number < len(self._table) and self._table.pts[number] == picture.pts
        return number if found else -1

    def _check(self, picture: Any, frame: int) -> None:
        if picture.is_corrupt:
            raise invented(self._request.path, frame, NAME)


def _decoded(packets: Iterator[Any]) -> Iterator[Any]:
    for packet in packets:
        yield from packet.decode()
