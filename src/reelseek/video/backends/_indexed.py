"""The ``indexed`` backend: reads the bytes that the plan names, and decodes only those.

It needs a file whose units are known: where each is, and what it refers to. A read is one or a few
``pread`` calls and a decode; there is no demuxer and no decoder per file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from reelseek.errors import DeviceUnavailableError, UnsupportedVideoError, VideoError
from reelseek.index import FrameTable
from reelseek.index._plan import Run, plan_frames
from reelseek.index._table import MANY_READS
from reelseek.index._unit_build import build_units
from reelseek.index._units import Pruning, UnitTable
from reelseek.video.backends._contexts import (
    CodecState,
    borrow,
    drop,
    has_decoder,
    is_ffmpeg_error,
    release,
)
from reelseek.video.backends._faults import invented, passed, unreadable
from reelseek.video.backends._protocol import OpenRequest, Targets
from reelseek.video.backends._rgb import RgbWriter
from reelseek.video.backends._unit_reader import UnitReader

NAME = "indexed"
FEW_UNITS = 8
"""To keep its place, a decoder that reorders is fed on by about as many units: fewer than these are
rather decoded again."""
FED_ON_UNITS = 4
"""Units that are read at once when a decoder is fed on."""
MOST_HELD_BACK = 40
"""Units after which a picture that hasn't come out doesn't come: decoders hold back 16, or as many
as there are threads."""


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
    units = request.units
    if units is None:
        units = build_units(request.path, request.table)
    if isinstance(units, str):
        raise UnsupportedVideoError(
            units,
            remedy="Pass backend='auto', which takes another",
            path=request.path,
            backend=NAME,
        )
    if not has_decoder(units.codec):
        raise UnsupportedVideoError(
            f"the FFmpeg in PyAV has no decoder for {units.codec!r}",
            remedy="Install PyAV's own wheel: pip install --force-reinstall --only-binary av av",
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
        self._is_pruned = units.pruning is Pruning.SLOTS
        self._spans: dict[int, tuple[int, int]] = {}
        """Where the units of the read in progress are in the file, if all are looked up at once."""
        self._reader = UnitReader(request.path, NAME, request.stamp)
        self._token = object()
        self._writer = RgbWriter(request, NAME)
        self._own_state: CodecState | None = None
        self._num_reads = 0
        self._last_frame = -2
        self._last_entry = self._last_unit = -1
        self._is_going_on = False

    def read(self, frames: Sequence[int], out: Targets) -> None:
        """Decode frames by number into ``out``."""
        self._num_reads += 1
        if self._num_reads == MANY_READS:
            self._units = self._units.for_many_reads()
        places: dict[int, list[int]] = {}
        for position, frame in enumerate(frames):
            places.setdefault(frame, []).append(position)
        runs = plan_frames(self._units, places)
        self._is_going_on = self._goes_on(min(places), runs[0])
        self._last_frame = max(places)
        self._last_entry, self._last_unit = runs[-1].units[0], runs[-1].units[-1]
        self._spans = {}
        if len(runs) > 1 and not self._is_going_on:  # all of them are read: one look-up for all
            units = [unit for run in runs for unit in run.units]
            self._spans = dict(zip(units, self._units.places_of(units), strict=True))
        state = self._borrowed(runs[0])
        if not self._is_going_on:
            for run in runs:
                self._decode(run, state, places, out)
            return
        for run, following in itertools.zip_longest(runs, runs[1:]):
            # Where units are left out, those behind the last one may lack their references.
            is_near = following is None or following.units[0] <= run.units[-1] + FEW_UNITS
            try:
                self._decode(run, state, places, out, feeds_on=is_near and not self._is_pruned)
            except VideoError:
                # What is at fault may lie further on, or before: as if this were read alone.
                state = self._borrowed(run)
                self._decode(run, state, places, out)

    def _goes_on(self, first: int, run: Run) -> bool:
        """True where the file seems to be read in order, so that the decoder keeps its place.

        So it is where a read begins with the next frame, or further on in the same group of
        pictures, unless that is so short that it is as well decoded anew; and from then on as
        long as reads don't leap over more than they would decode again.
        """
        if self._request.keeps_decoder or first == self._last_frame + 1:
            return True
        if first <= self._last_frame:
            return False
        if self._is_going_on:
            return run.units[0] <= self._last_unit + FEW_UNITS
        return run.units[0] == self._last_entry and len(run.units) > FEW_UNITS

    def _borrowed(self, run: Run) -> CodecState:
        """The codec context to use: one of the thread's, or the reader's own."""
        codec, configuration = self._units.codec, self._units.configuration
        try:
            if self._request.keeps_decoder:
                self._own_state = self._own_state or CodecState(codec, configuration)
                return self._own_state
            keeps_place = self._is_going_on or not self._is_pruned
            return borrow(codec, configuration, self._token, keeps_place=keeps_place)
        except Exception as exc:
            if is_ffmpeg_error(exc):
                raise unreadable(self._request.path, run.frames[0], NAME, str(exc)) from exc
            raise

    def close(self) -> None:
        """Close the file."""
        release(self._token)
        self._own_state = None
        self._reader.close()

    def _decode(
        self,
        run: Run,
        state: CodecState,
        places: dict[int, list[int]],
        out: Targets,
        *,
        feeds_on: bool = False,
    ) -> None:
        """Feed a run's units, and write the frames that it is for.

        Args:
            run: What is fed.
            state: To what; no longer to be used after an error.
            places: Where in ``out`` each frame goes.
            out: The caller's memory.
            feeds_on: True to feed what follows, rather than drain the decoder, for pictures that
                it holds back.
        """
        try:
            if state.holds_back:
                self._decode_delayed(run, state, places, out, feeds_on=feeds_on)
            else:
                self._decode_at_once(run, state, places, out)
        except BaseException as exc:
            self._own_state = None
            drop(state)
            if is_ffmpeg_error(exc):
                raise unreadable(self._request.path, run.frames[0], NAME, str(exc)) from exc
            raise

    def _decode_delayed(
        self,
        run: Run,
        state: CodecState,
        places: dict[int, list[int]],
        out: Targets,
        *,
        feeds_on: bool,
    ) -> None:
        """By a decoder that reorders: a picture comes out later than its unit goes in."""
        wanted = run.targets.copy()
        last = max(wanted)
        units = self._units_to_feed(run, state)
        for picture in self._pictures(units, state, last, feeds_on=feeds_on):
            if picture.is_corrupt:
                state.damaged.add(picture.pts)
            frame = wanted.pop(picture.pts, -1)
            if frame >= 0:
                self._write(frame, picture, places[frame], out)
            elif not wanted and feeds_on:
                state.early.append(picture)
        if wanted:
            raise passed(self._request.path, min(wanted.values()), NAME)
        # A damaged picture may come out after those that refer to it: what has come out is right
        # only where all that went in before it is.
        if state.damaged and min(state.damaged) <= last:
            raise invented(self._request.path, run.targets[last], NAME)

    def _decode_at_once(
        self, run: Run, state: CodecState, places: dict[int, list[int]], out: Targets
    ) -> None:
        """By a decoder that puts out each unit's picture when it is fed the unit."""
        targets, num_written = run.targets, 0
        for unit, data in self._data(self._units_to_feed(run, state)):
            pictures = state.feed(unit, data)
            for picture in pictures:
                if picture.is_corrupt:
                    raise invented(self._request.path, min(targets.values()), NAME)
            if unit in targets:
                frame = targets[unit]
                if len(pictures) != 1 or pictures[0].pts != unit:
                    raise passed(self._request.path, frame, NAME)
                self._write(frame, pictures[0], places[frame], out)
                num_written += 1
        if num_written != len(targets):
            raise passed(self._request.path, min(targets.values()), NAME)

    def _write(self, frame: int, picture: Any, places: Sequence[int], out: Targets) -> None:
        if picture.is_corrupt:
            raise invented(self._request.path, frame, NAME)
        first = out[places[0]]
        self._writer.write(frame, picture, first)
        for place in places[1:]:
            out[place][...] = first

    def _units_to_feed(self, run: Run, state: CodecState) -> list[int]:
        """The run's units, without those that the decoder has if it is on the way already."""
        if state.holder is self._token and run.units[0] <= state.place:
            place = state.place
            coming = state.pending | {picture.pts for picture in state.early}
            is_ahead = all(unit > place or unit in coming for unit in run.targets)
            if is_ahead and all(unit in state.fed for unit in run.units if unit <= place):
                return [unit for unit in run.units if unit > place]
        state.reset(self._token)
        return run.units

    def _pictures(
        self, units: Sequence[int], state: CodecState, last: int, *, feeds_on: bool
    ) -> Iterator[Any]:
        """What the decoder puts out for these units, until all up to ``last`` have come out.

        A decoder that reorders holds pictures back. After a jump they are drained, which costs
        nothing but the decoder's place; when frames are read in order, it is fed on.
        """
        early, state.early = state.early, []
        yield from early
        for unit, data in self._data(units):
            yield from state.feed(unit, data)
        if feeds_on:
            end = min(len(self._units), state.place + 1 + MOST_HELD_BACK)
            for start in range(state.place + 1, end, FED_ON_UNITS):
                for unit, data in self._data(range(start, min(start + FED_ON_UNITS, end))):
                    if not state.awaits(last):
                        return
                    yield from state.feed(unit, data)
            if end < len(self._units):
                state.forget(last)  # they show nothing
        if state.awaits(last):
            pictures = state.drain()
            if not feeds_on:
                state.holder = None  # another file may have it
            yield from pictures

    def _data(self, units: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Each unit with its bytes."""
        known = self._spans
        spans = [known[unit] for unit in units] if known else self._units.places_of(units)
        return zip(units, self._reader.read(spans), strict=True)
