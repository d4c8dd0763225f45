"""One video's tables as bytes, and back, equal field by field.

What many videos have in common (the stream's properties, the codec's configuration, notes) is a
JSON document of its own, which the sidecar stores once; the rest are columns. In a file whose
packets lie one behind the other and whose frames are evenly spaced, only the units' sizes, slots
and flags and the frames' units and entries take up room.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from reelseek._small_cache import kept_where_small
from reelseek.errors import UnsupportedVideoError
from reelseek.index._stamp import Stamp
from reelseek.index._stored_columns import NUMBER_OF, Counts, StoredColumns, write_columns
from reelseek.index._stored_tables import stored_frames, stored_units
from reelseek.index._table import FrameTable
from reelseek.index._unit_build import FED_BY_FRAME, FED_BY_PACKET
from reelseek.index._units import Pruning, UnitTable
from reelseek.index._video_tables import VideoTables
from reelseek.types import Orientation, StreamInfo

HEAD = struct.Struct("<QqIIIHqqqH")
"""The file's size in bytes and mtime in ns; numbers of frames, packets and units; flags;
average fps as a fraction, 0/0 for none; frames that the header lists, -1 for none; the path's
length in bytes. The path and the columns follow."""
MOST_UNITS = 1 << 23
"""Of one video, three days of it: more is no number that memory is asked for."""
MOST_PIXELS = 1 << 28
"""Of a picture, as FFmpeg has none with more."""
MOST_TICKS = (1 << 32) - 1
"""Of a time base's numbers, as MP4 keeps them."""
MOST_FACTS = 512
"""Documents of shared facts that a process keeps parsed."""

MOST_SEEN = 64
"""What videos with the same facts differ in, lengths mostly, that is kept until there is more."""

TRUTHS = tuple(field.name for field in dataclasses.fields(FrameTable) if field.type == "bool")
"""The fields of FrameTable that are one truth value, from the lowest bit of the flags on."""
FRAME_COLUMNS, UNIT_COLUMNS = (
    tuple(field.name for field in dataclasses.fields(table) if field.name in NUMBER_OF)
    for table in (FrameTable, UnitTable)
)
"""The fields of each that are columns."""


class VideoRecord(NamedTuple):
    """One video's tables as bytes."""

    facts: bytes
    """What other videos may have in common with it, as JSON."""
    body: bytes
    """The rest: HEAD, the path, the columns."""

    def head(self) -> RecordHead:
        """The beginning of the body."""
        return read_head(self.body)


class RecordHead(NamedTuple):
    """The beginning of a record's body."""

    path: bytes
    """Relative to the index's folder, as the file system writes it."""
    num_bytes: int
    """The video's size."""
    mtime_ns: int
    """When the video was last changed."""
    counts: Counts
    """Frames, packets and units; 0 units where the video can't be read by them."""
    flags: int
    """``TRUTHS``, a bit each."""
    average_fps: tuple[int, int]
    """Numerator and denominator, which is 0 where it isn't known."""
    num_frames_from_header: int
    """-1 where the header doesn't list them."""
    columns_at: int
    """Where the columns begin in the bytes that it was read from."""

    @property
    def stamp(self) -> Stamp:
        """The video's when it was indexed."""
        return self.num_bytes, self.mtime_ns


def write_record(path: bytes, num_bytes: int, mtime_ns: int, tables: VideoTables) -> VideoRecord:
    """One video's tables as bytes.

    Args:
        path: The video's path, relative to the index's folder.
        num_bytes: Its size.
        mtime_ns: When it was last changed.
        tables: What ``index_tables`` found.

    Raises:
        UnsupportedVideoError: It has more packets or frames than an index holds.
        struct.error: A number doesn't fit, as no real video's does.
    """
    frames, units = tables.frames, tables.units
    fps = frames.stream.average_fps
    listed = frames.stream.num_frames_from_header
    num_units = len(units) if isinstance(units, UnitTable) else 0
    counts = (len(frames), len(frames.packet_pts), num_units)
    if max(counts) > _most_of(num_bytes):
        raise UnsupportedVideoError(
            f"{max(counts)} frames or packets in {num_bytes} bytes are more than an index holds",
            remedy="It can be read without one; copy or record it again",
        )
    head = HEAD.pack(
        num_bytes,
        mtime_ns,
        *counts,
        _flags(frames),
        fps.numerator if fps is not None else 0,
        fps.denominator if fps is not None else 0,
        -1 if listed is None else listed,
        len(path),
    )
    columns = write_columns(_columns_of(tables), counts)
    return VideoRecord(_facts(*_common(tables)), head + path + columns)


def read_head(data: bytes, start: int = 0) -> RecordHead:
    """The beginning of a record's body, which is in ``data`` from ``start`` on.

    Raises:
        struct.error, ValueError: It isn't whole.
    """
    size, mtime_ns, frames, packets, units, flags, above, below, listed, length = HEAD.unpack_from(
        data, start
    )
    path_at = start + HEAD.size
    columns_at = path_at + length
    path = data[path_at:columns_at]
    if len(path) != length or max(packets, units, frames) > _most_of(size):
        raise ValueError("counts or lengths beyond the file's")
    counts, average_fps = (frames, packets, units), (above, below)
    return RecordHead(path, size, mtime_ns, counts, flags, average_fps, listed, columns_at)


def _most_of(num_bytes: int) -> int:
    """Packets, units or frames in a file of so many bytes: a byte for each, where none overlap."""
    return min(num_bytes, MOST_UNITS)


def read_tables(data: bytes, head: RecordHead, facts: SharedFacts) -> VideoTables:
    """The tables of a record, whose columns are read when they are looked at.

    Args:
        data: Bytes that end with the record's body.
        head: The beginning of the body, read from them.
        facts: What ``read_facts`` made of the record's.

    Raises:
        struct.error, ValueError, KeyError, TypeError, IndexError: The bytes are none that
            ``write_record`` made.
    """
    columns = StoredColumns(data, head.columns_at, head.counts)
    frames = stored_frames(columns, facts.frame_fields(head))
    if not head.counts[2]:
        return VideoTables(frames, facts.why_no_units, head.stamp)
    return VideoTables(frames, stored_units(columns, facts.of_units), head.stamp)


@dataclass(frozen=True, slots=True)
class SharedFacts:
    """What videos have in common, parsed."""

    written: bytes
    """The JSON."""
    stream: dict[str, Any]
    """Fields of StreamInfo."""
    of_frames: dict[str, Any]
    """Fields of FrameTable."""
    of_units: dict[str, Any]
    """Fields of UnitTable."""
    why_no_units: str
    """Why such a video can't be read by units; empty where it can."""
    seen: dict[tuple[int, tuple[int, int], int], dict[str, Any]]
    """All fields of FrameTable that are no columns, of videos seen so far."""

    def frame_fields(self, head: RecordHead) -> dict[str, Any]:
        """All fields of a video's FrameTable that are no columns; not to be written to."""
        key = head.flags, head.average_fps, head.num_frames_from_header
        fields = self.seen.get(key)
        if fields is None:
            if len(self.seen) >= MOST_SEEN:
                self.seen.clear()
            truths = {name: bool(head.flags >> bit & 1) for bit, name in enumerate(TRUTHS)}
            fields = {"stream": self._stream(head), **self.of_frames, **truths}
            self.seen[key] = fields
        return fields

    def _stream(self, head: RecordHead) -> StreamInfo:
        above, below = head.average_fps
        listed = head.num_frames_from_header
        return StreamInfo(
            **self.stream,
            average_fps=Fraction(above, below) if below else None,
            num_frames_from_header=None if listed < 0 else listed,
        )


def _common(
    tables: VideoTables,
) -> tuple[tuple[Any, ...], bytes, tuple[str, ...], _UnitFacts | str]:
    """What ``_facts`` writes, without what each file has of its own."""
    frames, units = tables.frames, tables.units
    stream = _stream_facts_of(frames.stream)
    of_units: _UnitFacts | str = (
        _UnitFacts(units.pruning, units.pruning_reason, units.codec, units.configuration)
        if isinstance(units, UnitTable)
        else units
    )
    return stream, frames.configuration, frames.notes, of_units


OF_EACH_FILE = frozenset({"average_fps", "num_frames_from_header"})
"""The fields of StreamInfo that files of one kind don't share."""
STREAM_FACTS = tuple(
    field.name for field in dataclasses.fields(StreamInfo) if field.name not in OF_EACH_FILE
)
"""Those that they share."""
_stream_facts_of: Callable[[StreamInfo], tuple[Any, ...]] = operator.attrgetter(*STREAM_FACTS)


class _UnitFacts(NamedTuple):
    """The fields of UnitTable that are no columns."""

    pruning: Pruning
    reason: str
    codec: str
    configuration: bytes


@kept_where_small(MOST_FACTS)
def _facts(
    stream: tuple[Any, ...],
    configuration: bytes,
    notes: tuple[str, ...],
    units: _UnitFacts | str,
) -> bytes:
    of_stream = dict(zip(STREAM_FACTS, stream, strict=True))
    turn, time_base = of_stream["orientation"], of_stream["time_base"]
    facts: dict[str, Any] = {
        "container": of_stream["container"],
        "codec": of_stream["codec"],
        "size": [of_stream["width"], of_stream["height"]],
        "pixel_format": of_stream["pixel_format"],
        "color_matrix": of_stream["color_matrix"],
        "orientation": [turn.swaps_axes, turn.flips_x, turn.flips_y],
        "time_base": [time_base.numerator, time_base.denominator],
        "configuration": configuration.hex(),
        "notes": list(notes),
    }
    if isinstance(units, _UnitFacts):
        facts["units"] = {
            "pruning": units.pruning.name,
            "reason": units.reason,
            "codec": units.codec,
        }
        if units.configuration != configuration:  # it may be long
            facts["units"]["configuration"] = units.configuration.hex()
    else:
        facts["why_no_units"] = units
    return json.dumps(facts, separators=(",", ":"), sort_keys=True).encode()


@kept_where_small(MOST_FACTS)
def read_facts(written: bytes) -> SharedFacts:
    """What ``write_record`` wrote of a video's facts.

    Raises:
        ValueError, KeyError, TypeError, RecursionError: The bytes are none that it made.
    """
    about = _mapping(json.loads(written))
    units = _mapping(about.get("units", {}))
    width, height = (_whole(pixels, 1, MOST_PIXELS) for pixels in about["size"])
    _whole(width * height, 1, MOST_PIXELS)
    ticks, seconds = (_whole(number, 1, MOST_TICKS) for number in about["time_base"])
    swaps_axes, flips_x, flips_y = (_whole(truth, False, True) for truth in about["orientation"])
    configuration = bytes.fromhex(_text(about["configuration"]))
    of_units: dict[str, Any] = {
        "pruning": Pruning[units.get("pruning", "NONE")],
        "pruning_reason": _text(units.get("reason", "")),
        "codec": _text(units.get("codec", "")),
        "configuration": configuration,
    }
    if units and of_units["codec"] not in FED_BY_FRAME | FED_BY_PACKET:
        raise ValueError(f"no units of {of_units['codec']!r}")
    if "configuration" in units:
        of_units["configuration"] = bytes.fromhex(_text(units["configuration"]))
    return SharedFacts(
        written=written,
        stream={
            "container": _text(about["container"]),
            "codec": _text(about["codec"]),
            "pixel_format": _text(about["pixel_format"]),
            "color_matrix": _whole(about["color_matrix"], 0, 255),
            "width": width,
            "height": height,
            "orientation": Orientation(bool(swaps_axes), bool(flips_x), bool(flips_y)),
            "time_base": Fraction(ticks, seconds),
        },
        of_frames={"configuration": configuration, "notes": tuple(map(_text, about["notes"]))},
        of_units=of_units,
        why_no_units=_text(about.get("why_no_units", "")),
        seen={},
    )


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no mapping")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    value.encode()  # half of a surrogate pair can't be shown
    return value


def _whole(value: Any, least: int, most: int) -> int:
    if not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{value!r} is no whole number from {least} to {most}")
    return value


def _flags(frames: FrameTable) -> int:
    return sum(getattr(frames, name) << bit for bit, name in enumerate(TRUTHS))


def _columns_of(tables: VideoTables) -> dict[str, Any]:
    """The columns of both tables by name."""
    columns = {name: getattr(tables.frames, name) for name in FRAME_COLUMNS}
    if isinstance(tables.units, UnitTable):
        columns.update({name: getattr(tables.units, name) for name in UNIT_COLUMNS})
    return columns
