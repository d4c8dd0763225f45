"""How near frames are to others: PSNR and SSIM, as FFmpeg's filters of these names define them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import av

PEAK = 255
MOST_DB = 100.0
"""What stands for the PSNR of equal frames, which has no number."""
BLOCK = 4
"""SSIM is computed over windows of 8x8 pixels, each of four blocks of so many a side."""
C1 = 0.01**2 * PEAK**2 * 64
C2 = 0.03**2 * PEAK**2 * 64 * 63
"""The constants of Wang et al. (2004), for sums over 64 pixels in place of means."""

Plane = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How near one frame is to another."""

    mse: float
    """The mean squared difference over all planes, in levels of 0 to 255."""
    ssim: float | None
    """The structural similarity over all planes, 1 where they are equal; None where it wasn't
    computed."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How near a video's frames are to its source's."""

    psnr_db: float
    """Of the mean squared difference over all frames; 100 where all are equal."""
    worst_psnr_db: float
    """Of the frame that differs most."""
    worst_frame: int
    """The number of that frame."""
    ssim: float | None
    """The mean over the frames for which it was computed; None where there are none."""


def compare(
    pairs: Iterable[tuple[av.VideoFrame, av.VideoFrame]], *, ssim_every: int = 0
) -> Iterator[Likeness]:
    """Compare each frame with its reference, both of one size and planar format of 8 bits.

    Args:
        pairs: A frame and its reference.
        ssim_every: SSIM is computed for one frame in so many; 0 for none.
    """
    for number, (frame, reference) in enumerate(pairs):
        planes = [*zip(_planes(frame), _planes(reference), strict=True)]
        weights = [one.size for one, _other in planes]
        mse = _mean([_mse(*pair) for pair in planes], weights)
        is_looked_at = ssim_every > 0 and number % ssim_every == 0
        ssim = _mean([_ssim(*pair) for pair in planes], weights) if is_looked_at else None
        yield Likeness(mse, ssim)


def quality_of(likenesses: Iterable[Likeness]) -> Quality:
    """All frames together."""
    found = list(likenesses)
    worst = max(range(len(found)), key=lambda number: found[number].mse)
    known = [one.ssim for one in found if one.ssim is not None]
    return Quality(
        psnr_db=psnr_db(sum(one.mse for one in found) / len(found)),
        worst_psnr_db=psnr_db(found[worst].mse),
        worst_frame=worst,
        ssim=sum(known) / len(known) if known else None,
    )


def psnr_db(mse: float) -> float:
    """The peak signal-to-noise ratio of a mean squared difference, in dB."""
    return min(MOST_DB, 10 * math.log10(PEAK**2 / mse)) if mse > 0 else MOST_DB


def _planes(frame: Any) -> list[Plane]:
    """Views of a frame's planes, without the bytes that pad their rows."""
    return [
        np.ndarray((plane.height, plane.width), np.uint8, plane, 0, (plane.line_size, 1))
        for plane in frame.planes
    ]


def _mean(values: Sequence[float], weights: Sequence[int]) -> float:
    return float(np.average(values, weights=weights))


def _mse(one: Plane, other: Plane) -> float:
    difference = np.subtract(one, other, dtype=np.int16).astype(np.float32).ravel()
    return float(difference @ difference) / difference.size


def _ssim(one: Plane, other: Plane) -> float:
    """The mean over windows that begin at every fourth pixel."""
    a, b = one.astype(np.float32), other.astype(np.float32)
    sum_a, sum_b = _window_sums(a), _window_sums(b)
    squares, products = _window_sums(a * a + b * b), _window_sums(a * b)
    variances = squares * 64 - sum_a * sum_a - sum_b * sum_b
    covariances = products * 64 - sum_a * sum_b
    similar = (2 * sum_a * sum_b + C1) * (2 * covariances + C2)
    return float((similar / ((sum_a**2 + sum_b**2 + C1) * (variances + C2))).mean())


def _window_sums(values: NDArray[np.float32]) -> NDArray[np.float64]:
    rows, columns = (size // BLOCK for size in values.shape)
    whole = values[: rows * BLOCK, : columns * BLOCK]
    of_rows = whole.reshape(rows, BLOCK, columns * BLOCK).sum(axis=1)  # exact: below 2**24
    blocks = np.add.reduceat(of_rows, np.arange(0, columns * BLOCK, BLOCK), axis=1)
    windows: NDArray[np.float64] = (
        blocks[:-1, :-1] + blocks[:-1, 1:] + blocks[1:, :-1] + blocks[1:, 1:]
    ).astype(np.float64)
    return windows
