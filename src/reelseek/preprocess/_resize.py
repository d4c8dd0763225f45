"""Resizing batches of uint8 frames with a filter that takes every source pixel into account.

On a CPU it is torch's uint8 kernel, which is what torchvision and Hugging Face's fast image
processors run too; like Pillow's it works in whole numbers, one direction after the other. Its
way through channels-last memory is twice as fast, and decoded frames lie in memory that way. Other
devices have no uint8 kernel: there the filter runs on floats, rounded after each direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from reelseek.preprocess._layout import Layout, channels_first, rounded

if TYPE_CHECKING:
    from torch import Tensor

Filter = Literal["bicubic", "bilinear"]
Size = int | tuple[int, int]
"""Pixels of a square's side, or height and width."""


def resize(
    frames: Tensor, size: Size = 224, *, interpolation: Filter = "bicubic", layout: Layout = "CHW"
) -> Tensor:
    """Resize frames, antialiased; the aspect ratio isn't kept, as in SiglipImageProcessor.

    Args:
        frames: (..., C, H, W) uint8, on any device; (..., H, W, C) with ``layout="HWC"``. Memory
            that is channels-last in either case, as decoded frames are, is read as it is.
        size: The result's side, or height and width, in pixels.
        interpolation: ``bicubic`` as SigLIP, ``bilinear`` as GR00T; both as Pillow filters.
        layout: The order of the last three dimensions of ``frames``.

    Returns:
        (..., C, height, width) uint8; its memory is channels-last where the frames' is. Where the
        frames have that size already, the same memory.

    Raises:
        TypeError: The frames aren't uint8.
        ValueError: The shape, the layout or the size isn't one.

    Example:
        >>> import torch
        >>> from reelseek.preprocess import resize
        >>> resize(torch.zeros(4, 2, 3, 128, 128, dtype=torch.uint8)).shape
        torch.Size([4, 2, 3, 224, 224])
    """
    pixels = channels_first(frames, layout)
    target = _target(size)
    if tuple(pixels.shape[-2:]) == target:
        return pixels
    flat = pixels.reshape(-1, *pixels.shape[-3:])
    if flat.device.type == "cpu":
        resized = _interpolated(flat, target, interpolation)
    else:
        resized = resize_as_floats(flat, target, interpolation)
    return resized.reshape(*pixels.shape[:-3], *resized.shape[-3:])


def resize_as_floats(flat: Tensor, target: tuple[int, int], interpolation: Filter) -> Tensor:
    """(N, C, H, W) uint8 resized on a device without a kernel for uint8.

    First across and then down, in whole numbers from 0 to 255 in between, as Pillow and the uint8
    kernel do it: at hard edges the filter leaves that range, by up to 30 levels in the result.
    """
    across = (flat.shape[-2], target[1])
    pixels = rounded(_interpolated(flat.float(), across, interpolation))
    return rounded(_interpolated(pixels.float(), target, interpolation))


def _interpolated(flat: Tensor, target: tuple[int, int], interpolation: Filter) -> Tensor:
    from torch.nn.functional import interpolate

    if interpolation not in ("bicubic", "bilinear"):
        raise ValueError(f"interpolation={interpolation!r}: choose 'bicubic' or 'bilinear'")
    resized: Tensor = interpolate(flat, size=target, mode=interpolation, antialias=True)
    return resized


def _target(size: Size) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise ValueError(f"size={size!r}: give the side, or height and width, in pixels")
    return height, width
