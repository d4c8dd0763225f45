"""Cutting a rectangle out of every frame, at another place for each sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reelseek.preprocess._layout import Layout, channels_first

if TYPE_CHECKING:
    from torch import Tensor


def crop_size(height: int, width: int, scale: float) -> tuple[int, int]:
    """Height and width of a crop that takes this part of each side, rounded down as GR00T does.

    Raises:
        ValueError: The scale isn't above 0 and at most 1.
    """
    if not 0 < scale <= 1:
        raise ValueError(f"crop scale {scale}: give a part of each side, such as 0.95")
    return max(1, int(height * scale)), max(1, int(width * scale))


def crop(
    frames: Tensor, scale: float = 0.95, *, places: Tensor | None = None, layout: Layout = "CHW"
) -> Tensor:
    """Cut a rectangle out of every frame.

    Args:
        frames: (B, ..., C, H, W) uint8, on any device.
        scale: The part of each side that stays.
        places: (B, 2) where each sample's rectangle lies, from 0 (top, left) up to 1 (bottom,
            right), the same for all its frames; None for the centre.
        layout: The order of the last three dimensions of ``frames``.

    Returns:
        (B, ..., C, h, w): a view for the centre, else a copy in channels-last memory.

    Raises:
        TypeError: The frames aren't uint8.
        ValueError: The shape, the scale or the number of places doesn't fit.
    """
    pixels = channels_first(frames, layout)
    height, width = pixels.shape[-2:]
    h, w = crop_size(height, width, scale)
    if places is None:
        # As torchvision's CenterCrop rounds it.
        top, left = round((height - h) / 2.0), round((width - w) / 2.0)
        return pixels[..., top : top + h, left : left + w]
    if pixels.ndim < 4 or tuple(places.shape) != (pixels.shape[0], 2):
        raise ValueError(
            f"places of shape {tuple(places.shape)} for frames of shape {tuple(pixels.shape)}: "
            "give (B, 2) for (B, ..., C, H, W)"
        )
    cut = pixels.new_empty((*pixels.shape[:-3], h, w, pixels.shape[-3])).movedim(-1, -3)
    for target, source, (down, right) in zip(cut, pixels, places.tolist(), strict=True):
        top = min(int(down * (height - h + 1)), height - h)
        left = min(int(right * (width - w + 1)), width - w)
        target.copy_(source[..., top : top + h, left : left + w])
    return cut
