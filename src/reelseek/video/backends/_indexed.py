"""The ``indexed`` backend: reads the bytes that the plan names, and decodes only those.

It needs a file whose units are known: where each is, and what it refers to. A read is one or a few
``pread`` calls and a decode; there is no demuxer and no decoder per file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Sized
from typing import Any

from reelseek.errors import (
    CorruptVideoError,
    DecodeError,
    DeviceUnavailableError,
    UnsupportedVideoError,
    VideoNotFoundError,
)
from reelseek.index import FrameTable
from reelseek.index._plan import Run, plan_frames
from reelseek.index._unit_build import build_units
from reelseek.index._units import Pruning, UnitTable
from reelseek.video.backends._contexts import CodecState, borrow, drop
from reelseek.video.backends._protocol import OpenRequest, Targets, visits
from reelseek.video.backends._rgb import RgbWriter

NAME = "indexed"
TEMPORAL_DELIMITER = b"\x12\x00"
FED_ON_UNITS = 4
"""Units that are read at once when a decoder is fed on."""
GAP_BYTES = 64 * 1024
"""Bytes between two units that are rather read along than skipped by another call."""


def version() -> str:
    """reelseek's version, with PyAV's, whose codecs do the work."""
    import av

    import reelseek

    return f"{reelseek.__version__} (av {av.__version__})"


def open_decoder(request: OpenRequest) -> IndexedDecoder:
    """Open one file by its index."""
    if request.device != "cpu":
        raise DeviceUnavailableError(
            f"the indexed backend can't decode on {request.device!r}",
            remedy="Pass backend='torchcodec', or device='cpu'",
            backend=NAME,
        )
    units = build_units(request.path, request.table)
    if isinstance(units, str):
        raise UnsupportedVideoError(
            units,
            remedy="Pass backend='auto', which takes another",
            path=request.path,
            backend=NAME,
        )
    return IndexedDecoder(request, units)


class IndexedDecoder:
    """Reads frames by number from a file whose units are known."""

    def __init__(self, request: OpenRequest, units: UnitTable) -> None:
        self._request = request
        self._table: FrameTable = request.table
        self._units = units
        self._offsets: list[int] = units.units["offset"].tolist()
        self._sizes: list[int] = units.units["size"].tolist()
        self._heads = (b"", b"")
        if units.pruning is Pruning.SLOTS:
            self._heads = (TEMPORAL_DELIMITER + units.configuration, TEMPORAL_DELIMITER)
        self._writer = RgbWriter(request, NAME)
        self._descriptor = -1
        self._last_frame = -2
        self._is_sequential = False

    def read(self, frames: Sequence[int], out: Targets) -> None:
        """Decode frames by number into ``out``."""
        import av

        places = dict(visits(frames))
        self._is_sequential = min(places) == self._last_frame + 1
        self._last_frame = max(places)
        for run in plan_frames(self._units, frames):
            state = borrow(self._units.codec, self._units.configuration, self._request.threads)
            try:
                self._decode(run, state, places, out)
            except av.error.FFmpegError as exc:
                drop(state)
                raise CorruptVideoError(
                    "the decoder can't read the data on the way to this frame",
                    remedy="Copy the file again from its source, or leave the episode out",
                    path=self._request.path,
                    frame=run.frames[0],
                    backend=NAME,
                    detail=str(exc),
                ) from exc
            except BaseException:
                drop(state)
                raise

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _decode(
        self, run: Run, state: CodecState, places: dict[int, list[int]], out: Targets
    ) -> None:
        """Feed a run's units, and write the frames that it is for."""
        frame_of = {int(self._units.of_frame[frame]): frame for frame in run.frames}
        units: Sequence[int] = run.units
        if state.holder is self and self._continues(run, state):
            units = [unit for unit in run.units if unit not in state.fed]
        else:
            state.reset(self)
        for picture in self._pictures(units, state, frame_of):
            frame = frame_of.pop(picture.pts, None)
            if frame is None:
                continue
            self._check(picture, frame)
            first, *others = places[frame]
            self._writer.write(frame, picture, out[first])
            for other in others:
                out[other][...] = out[first]
            if not frame_of:
                return
        raise DecodeError(
            "the decoder passed this frame without returning it",
            remedy="The file is damaged there, or its index is: copy it again, or run "
            "`reelseek probe` on it",
            path=self._request.path,
            frame=min(frame_of.values()),
            backend=NAME,
        )

    def _continues(self, run: Run, state: CodecState) -> bool:
        """True where the decoder is on the way: it has all that the run needs up to its place."""
        place = max(state.fed, default=-1)
        for frame in run.frames:
            target = int(self._units.of_frame[frame])
            if target not in state.pending and target <= place:
                return False
        return all(unit in state.fed for unit in run.units if unit <= place)

    def _pictures(self, units: Sequence[int], state: CodecState, wanted: Sized) -> Iterator[Any]:
        """What the decoder puts out for these units, until nothing is wanted any more.

        A decoder that reorders holds pictures back. After a jump they are drained, which costs
        nothing but the decoder's place; when frames are read one after the other, it is fed on.
        """
        for unit, data in self._data(units):
            yield from state.feed(unit, data)
        if wanted and self._is_sequential:
            following = range(max(state.fed) + 1, len(self._offsets))
            for start in range(following.start, following.stop, FED_ON_UNITS):
                if not wanted:
                    return
                some = following[start - following.start :][:FED_ON_UNITS]
                for unit, data in self._data(some):
                    yield from state.feed(unit, data)
                    if not wanted:
                        return
        if wanted:
            yield from state.drain()

    def _data(self, units: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Each unit's bytes, as the decoder takes them; neighbours are read in one call."""
        offsets, sizes = self._offsets, self._sizes
        head, later = self._heads
        place = 0
        while place < len(units):
            start = offsets[units[place]]
            end = start + sizes[units[place]]
            after = place + 1
            while after < len(units) and 0 <= offsets[units[after]] - end <= GAP_BYTES:
                end = offsets[units[after]] + sizes[units[after]]
                after += 1
            block = self._read_bytes(start, end - start)
            for unit in units[place:after]:
                piece = block[offsets[unit] - start : offsets[unit] - start + sizes[unit]]
                yield unit, head + piece
                head = later
            place = after

    def _read_bytes(self, offset: int, size: int) -> bytes:
        if self._descriptor < 0:
            self._descriptor = self._opened()
        data = os.pread(self._descriptor, size, offset)
        if len(data) != size:
            raise CorruptVideoError(
                f"the file ends {size - len(data)} bytes before the data of this frame",
                remedy="Copy it again from its source, and compare the sizes",
                path=self._request.path,
                byte_offset=offset,
                backend=NAME,
            )
        return data

    def _opened(self) -> int:
        try:
            return os.open(self._request.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as exc:
            raise VideoNotFoundError(
                "the file is gone since it was indexed",
                remedy="Check that the disk or NAS is still mounted",
                path=self._request.path,
                backend=NAME,
                detail=exc.strerror or "",
            ) from exc

    def _check(self, picture: Any, frame: int) -> None:
        if picture.is_corrupt:
            raise CorruptVideoError(
                "the decoder had to invent parts of this frame",
                remedy="Copy the file again from its source, or leave the episode out",
                path=self._request.path,
                frame=frame,
                backend=NAME,
            )
