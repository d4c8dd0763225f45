"""How near frames are to others: PSNR and SSIM, by FFmpeg's own filters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import av

PEAK = 255
MOST_DB = 100.0
"""What stands for the PSNR of equal frames, which has no number."""
MSE, SSIM = "lavfi.psnr.mse_avg", "lavfi.ssim.All"


@dataclass(frozen=True, slots=True)
class Likeness:
    """How near one frame is to another."""

    mse: float
    """The mean squared difference over all planes, in levels of 0 to 255."""
    ssim: float
    """The structural similarity over all planes; 1 where they are equal."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How near a video's frames are to its source's."""

    psnr_db: float
    """Of the mean squared difference over all frames; 100 where all are equal."""
    worst_psnr_db: float
    """Of the frame that differs most."""
    worst_frame: int
    """The number of that frame."""
    ssim: float
    """The mean over all frames."""


def compare(pairs: Iterable[tuple[av.VideoFrame, av.VideoFrame]]) -> Iterator[Likeness]:
    """Compare each frame with its reference, both of one size and pixel format.

    Args:
        pairs: A frame and its reference. The times of both are changed to their numbers.
    """
    graph: _Graph | None = None
    for number, (frame, reference) in enumerate(pairs):
        if graph is None:
            graph = _Graph(frame)
        yield from graph.push(number, frame, reference)
    if graph is not None:
        yield from graph.rest()


def quality_of(likenesses: Iterable[Likeness]) -> Quality:
    """All frames together."""
    found = list(likenesses)
    worst = max(range(len(found)), key=lambda number: found[number].mse)
    return Quality(
        psnr_db=psnr_db(sum(one.mse for one in found) / len(found)),
        worst_psnr_db=psnr_db(found[worst].mse),
        worst_frame=worst,
        ssim=sum(one.ssim for one in found) / len(found),
    )


def psnr_db(mse: float) -> float:
    """The peak signal-to-noise ratio of a mean squared difference, in dB."""
    return min(MOST_DB, 10 * math.log10(PEAK**2 / mse)) if mse > 0 else MOST_DB


class _Graph:
    """FFmpeg's psnr and ssim filters, one after the other; results come as the frames' metadata."""

    def __init__(self, like: Any) -> None:
        import av

        graph = av.filter.Graph()
        shape = {"width": like.width, "height": like.height, "format": like.format.name}
        self._frames, self._references = (
            graph.add_buffer(**shape, time_base=Fraction(1)) for _ in range(2)
        )
        copies, psnr, ssim = graph.add("split", "2"), graph.add("psnr"), graph.add("ssim")
        self._sink = graph.add("buffersink")
        self._frames.link_to(psnr, 0, 0)
        self._references.link_to(copies)
        copies.link_to(psnr, 0, 1)
        psnr.link_to(ssim, 0, 0)
        copies.link_to(ssim, 1, 1)
        ssim.link_to(self._sink)
        graph.configure()
        self._graph = graph  # the filters are its own

    def push(self, number: int, frame: Any, reference: Any) -> Iterator[Likeness]:
        """Give it a pair; what it knows by now comes back."""
        for source, picture in ((self._frames, frame), (self._references, reference)):
            picture.pts, picture.time_base = number, Fraction(1)
            source.push(picture)
        return self._results()

    def rest(self) -> Iterator[Likeness]:
        """What is known once no more pairs come."""
        self._frames.push(None)
        self._references.push(None)
        return self._results()

    def _results(self) -> Iterator[Likeness]:
        import av

        while True:
            try:
                facts = self._sink.pull().metadata
            except (av.error.BlockingIOError, av.error.EOFError):
                return
            yield Likeness(float(facts[MSE]), float(facts[SSIM]))
