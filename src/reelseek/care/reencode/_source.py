"""The frames of a video as FFmpeg displays them, in the form in which they are encoded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reelseek.care.reencode._encoding import Encoding, check_size
from reelseek.care.reencode._faults import raise_if_of_disk
from reelseek.errors import CorruptVideoError, DependencyError, UnsupportedVideoError
from reelseek.index import FrameTable
from reelseek.index._source import best_video_stream, open_container, pyav_major
from reelseek.types import Orientation

if TYPE_CHECKING:
    import av

UNSAID_MATRIX = 2
"""H.273's number of a colour matrix that isn't said, which is read as BT.601's."""
FULL_RANGE = "yuvj"
"""Pixel formats whose name says that they use all 256 levels; encoders take the plain name."""
UNSAID_RANGE, LIMITED_RANGE, ALL_LEVELS = 0, 1, 2
"""FFmpeg's numbers of colour ranges. An unsaid one is read as limited."""


MOST_BITS = 8
"""Of a value in the pixel formats that are written."""
LEAST_PYAV = 17
NOT_WHOLE = "its bytes aren't all there, or aren't what was written"
FROM_RGB: dict[str, Any] = {"dst_colorspace": "ITU601", "dst_color_range": "MPEG"}
"""How RGB becomes YUV."""


@dataclass(frozen=True, slots=True)
class Colours:
    """What a stream says of its colours, in the numbers of ITU-T H.273."""

    range: int
    """0 unsaid, 1 limited, 2 full."""
    matrix: int
    primaries: int
    transfer: int

    @classmethod
    def of(cls, picture: Any) -> Colours:
        """Of a decoded picture."""
        is_full = picture.format.name.startswith(FULL_RANGE)
        is_rgb = picture.format.is_rgb  # and becomes YUV as FFmpeg makes it by default
        return cls(
            range=ALL_LEVELS if is_full else LIMITED_RANGE if is_rgb else int(picture.color_range),
            matrix=UNSAID_MATRIX if is_rgb else int(picture.colorspace),
            primaries=int(picture.color_primaries),
            transfer=int(picture.color_trc),
        )

    def is_kept_by(self, other: Colours) -> bool:
        """True where the other means the same; AV1 can't leave the range unsaid."""
        mine = self.range or LIMITED_RANGE
        return (mine, self.matrix, self.primaries, self.transfer) == (
            other.range or LIMITED_RANGE, other.matrix, other.primaries, other.transfer
        )  # fmt: skip


def check_pyav() -> None:
    """DependencyError where PyAV doesn't say all of a frame's colours."""
    if pyav_major() < LEAST_PYAV:
        raise DependencyError(
            f"re-encoding needs PyAV {LEAST_PYAV} or newer, and {pyav_major()} is installed",
            remedy=f"Run `pip install 'av>={LEAST_PYAV}'`",
        )


class Source:
    """The frames of one video, turned, scaled and converted for an encoder."""

    def __init__(self, path: str, table: FrameTable, encoding: Encoding) -> None:
        """Look at a video.

        Raises:
            UnsupportedVideoError: Pictures of its size can't be encoded so.
            CorruptVideoError: It is damaged or cut short.
        """
        self.path = path
        self.table = table
        self.pixel_format = encoding.pixel_format
        self.size = encoding.size or (table.stream.width, table.stream.height)
        self._is_scaled = encoding.size is not None
        try:
            check_size(self.size, encoding.pixel_format)
        except ValueError as exc:
            raise UnsupportedVideoError(
                f"it can't be encoded at its {exc}", remedy="Choose a size by --size", path=path
            ) from exc
        if table.is_cut_short or table.is_damaged.any():
            raise damaged(path, None, NOT_WHOLE)

    @property
    def note(self) -> str:
        """What of its pixels can't be kept, beside what the codec loses; empty where nothing is."""
        return _loss(self.table.stream.pixel_format, self.pixel_format)

    def frames(self, first: int = 0, count: int | None = None) -> Iterator[av.VideoFrame]:
        """Its frames in display order, with numbers from 0 as their times.

        Args:
            first: A key frame's number, at which to begin.
            count: How many; None for all to the end.

        Raises:
            CorruptVideoError: A frame can't be decoded whole, or another number of them comes.
        """
        from av.video.reformatter import Interpolation, VideoReformatter

        reformatter = VideoReformatter()
        width, height = self.size
        turn = _Turn(self.table.stream.orientation)
        wanted = len(self.table) - first if count is None else count
        number = -1
        for number, picture in enumerate(decoded(self.path, self.table, first, wanted)):
            upright = turn.apply(picture)
            self._check_size(number, upright)
            prepared = reformatter.reformat(
                upright,
                width=width,
                height=height,
                format=self.pixel_format,
                interpolation=Interpolation.BICUBIC,
                **(FROM_RGB if picture.format.is_rgb else {}),
            )
            prepared.pts, prepared.pict_type = number, 0  # the encoder chooses the types
            yield prepared
        if number + 1 != wanted:
            raise damaged(self.path, None, f"{number + 1} frames come out of {wanted}")

    def _check_size(self, number: int, picture: Any) -> None:
        """Pictures of several sizes become one only where that was asked for."""
        if not self._is_scaled and (picture.width, picture.height) != self.size:
            raise UnsupportedVideoError(
                f"its size changes on the way, to {picture.width}x{picture.height}",
                remedy="Choose a size by --size",
                path=self.path,
                frame=number,
            )

    def colours(self) -> Colours:
        """What its first frame says of its colours."""
        return Colours.of(next(decoded(self.path, self.table, 0, 1)))


def _loss(before: str, after: str) -> str:
    """What a change of pixel formats leaves out; empty where it is nothing."""
    import av

    if not before:
        return ""
    side = 64
    old, new = (av.VideoFormat(name, side, side) for name in (before, after))
    bits = max(component.bits for component in old.components)
    planes = [component for component in old.components if not component.is_alpha]
    lost = [f"{bits} bits a value, now {MOST_BITS}"] if bits > MOST_BITS else []
    if len(planes) > 1 and planes[1].width * planes[1].height > (
        new.components[1].width * new.components[1].height
    ):
        lost.append(f"colours for more of the pixels than {after} has")
    if len(planes) < len(old.components):
        lost.append("transparency, now left out")
    return f"it was {before}: {'; '.join(lost)}" if lost else ""


def decoded(path: str, table: FrameTable, first: int, count: int) -> Iterator[av.VideoFrame]:
    """Frames as they come from FFmpeg's decoder, on one thread.

    Raises:
        CorruptVideoError: A frame can't be decoded whole.
        OSError: Reading failed in a way that may pass.
    """
    import av

    with open_container(path) as container:
        stream = best_video_stream(container)
        stream.codec_context.thread_count = 1
        number = 0
        try:
            if first:
                container.seek(int(table.pts[first]), stream=stream)
            for picture in container.decode(stream):
                if first and (picture.pts is None or picture.pts < table.pts[first]):
                    continue
                if picture.is_corrupt:
                    raise damaged(path, first + number, "FFmpeg had to invent parts of it")
                if number == count:
                    return
                yield picture
                number += 1
        except av.error.FFmpegError as exc:
            raise_if_of_disk(exc, path)
            raise damaged(path, first + number, str(exc)) from exc


class _Turn:
    """Turns pictures as their container says."""

    def __init__(self, orientation: Orientation) -> None:
        self._names = [
            name
            for name, is_used in (
                ("transpose", orientation.swaps_axes),
                ("hflip", orientation.flips_x),
                ("vflip", orientation.flips_y),
            )
            if is_used
        ]
        self._graph: Any = None

    def apply(self, picture: Any) -> Any:
        """The picture as it is displayed."""
        if not self._names:
            return picture
        if self._graph is None:
            self._graph = self._new_graph(picture)
        self._graph.push(picture)
        return self._graph.pull()

    def _new_graph(self, picture: Any) -> Any:
        import av

        graph = av.filter.Graph()
        parts = [graph.add_buffer(
            width=picture.width, height=picture.height, format=picture.format.name,
            time_base=picture.time_base,
        )]  # fmt: skip
        # Its first way of turning swaps the axes and does no more.
        parts += [graph.add(name, "cclock_flip" if name == "transpose" else "")
                  for name in self._names]  # fmt: skip
        parts.append(graph.add("buffersink"))
        for part, following in itertools.pairwise(parts):
            part.link_to(following)
        graph.configure()
        return graph


def damaged(path: str, frame: int | None, detail: str) -> CorruptVideoError:
    """The error for a video that isn't whole."""
    return CorruptVideoError(
        "the video is damaged, and is not re-encoded: what is missing would be invented",
        remedy="Copy it again from its source, or leave the episode out",
        path=path,
        frame=frame,
        detail=detail,
    )
