"""The floor: what a read would cost if there were nothing but the codec and the colour conversion.

Packets of only the needed units lie ready in memory; a kept codec context decodes them in a loop,
and a kept scaler writes the wanted pictures into an array that exists. No reader can be faster
with this codec library; what a reader takes beyond it is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.errors import DecodeError, UnsupportedVideoError
from reelseek.index import index_tables
from reelseek.index._plan import Run, plan_frames
from reelseek.index._source import pyav_major
from reelseek.index._units import Pruning
from reelseek.video.backends._contexts import TEMPORAL_DELIMITER, borrow

NAME = "floor"
USAGE = "only the needed units, as packets in memory: decode, convert, nothing else"


@dataclass(frozen=True, slots=True)
class _Work:
    """One run of the plan, ready to be decoded."""

    packets: list[Any]
    """PyAV packets in decoding order; their pts is the unit's number."""
    rows: dict[int, list[int]]
    """Unit to the rows of the result that its picture goes to."""


class FloorReader:
    """Decodes packets that were made before."""

    def __init__(self, path: str) -> None:
        """Index a file.

        Raises:
            UnsupportedVideoError: It isn't readable by units.
        """
        from av.video.reformatter import Interpolation, VideoReformatter

        self._path = path
        tables = index_tables(path)
        self._stream, units = tables.frames.stream, tables.units
        if isinstance(units, str):
            raise UnsupportedVideoError(units, path=path)
        self._units = units
        self._reformat = VideoReformatter().reformat
        self._scaling: dict[str, Any] = {"interpolation": Interpolation.BICUBIC, "format": "rgb24"}
        if pyav_major() >= 17:  # older releases always use one thread
            self._scaling["threads"] = 1
        self._ready: dict[tuple[int, ...], tuple[list[_Work], NDArray[np.uint8]]] = {}

    def prepare(self, frames: Sequence[int]) -> None:
        """Make the packets and the array for a read."""
        shape = (len(frames), self._stream.height, self._stream.width, 3)
        with Path(self._path).open("rb") as file:
            work = [self._work(run, frames, file) for run in plan_frames(self._units, frames)]
        self._ready[tuple(frames)] = work, np.zeros(shape, np.uint8)

    def read(self, frames: Sequence[int]) -> NDArray[np.uint8]:
        """These frames as (T, H, W, 3), RGB; each call with the same frames writes one array."""
        if tuple(frames) not in self._ready:
            self.prepare(frames)
        works, pixels = self._ready[tuple(frames)]
        for work in works:
            self._decode(work, pixels)
        return pixels

    def close(self) -> None:
        """Forget the packets."""
        self._ready.clear()

    def _work(self, run: Run, frames: Sequence[int], file: Any) -> _Work:
        import av

        is_pruned = self._units.pruning is Pruning.SLOTS
        head = TEMPORAL_DELIMITER + self._units.configuration if is_pruned else b""
        packets = []
        for unit in run.units:
            file.seek(self._units.offset.item(unit))
            packet = av.Packet(head + file.read(self._units.size.item(unit)))
            packet.pts = packet.dts = unit
            packets.append(packet)
            head = TEMPORAL_DELIMITER if is_pruned else b""
        rows: dict[int, list[int]] = {}
        for row, frame in enumerate(frames):
            if (unit := int(self._units.of_frame[frame])) in run.targets:
                rows.setdefault(unit, []).append(row)
        return _Work(packets, rows)

    def _decode(self, work: _Work, pixels: NDArray[np.uint8]) -> None:
        state = borrow(self._units.codec, self._units.configuration, self, keeps_place=False)
        state.reset(self)
        decode = state._context.decode  # without the engine's bookkeeping in CodecState.feed
        rows, missing = work.rows, len(work.rows)
        for packet in (*work.packets, None):
            if packet is None:
                state.holder = None  # drained: it must be reset before the next packet
            for picture in decode(packet):
                if picture.pts in rows:
                    self._convert(picture, rows[picture.pts], pixels)
                    missing -= 1
            if not missing:
                return
        raise DecodeError("the decoder passed a frame without returning it", path=self._path)

    def _convert(self, picture: Any, rows: Sequence[int], pixels: NDArray[np.uint8]) -> None:
        rgb = self._reformat(picture, **self._scaling)
        plane: Any = rgb.planes[0]
        lines = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        upright: NDArray[np.uint8] = lines[:, : rgb.width * 3].reshape(plane.height, rgb.width, 3)
        if not self._stream.orientation.is_identity:
            upright = self._stream.orientation.apply(upright)
        for row in rows:
            pixels[row] = upright
