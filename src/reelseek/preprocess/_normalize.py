"""From uint8 to the floats that a model takes, and SigLIP's whole preprocessing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reelseek.preprocess._layout import Layout, channels_first
from reelseek.preprocess._resize import Size, resize

if TYPE_CHECKING:
    from torch import Tensor

PerChannel = float | Sequence[float]
"""One number for all channels, or one for each."""


def normalize(
    pixels: Tensor, *, mean: PerChannel = 0.5, std: PerChannel = 0.5, dtype: Any = None
) -> Tensor:
    """``(pixels / 255 - mean) / std`` of uint8 pixels: SigLIP's range, -1 to 1, by default.

    A float takes four times a pixel's memory: do it after the transfer to the device, where it
    costs nothing to speak of.

    Args:
        pixels: (..., C, H, W) uint8, on any device; not changed.
        mean: Of a channel's values from 0 to 1.
        std: Of a channel's values from 0 to 1.
        dtype: Of the result; None for float32, in which it is computed in any case.

    Returns:
        (..., C, H, W), in the order in memory that the pixels have.

    Raises:
        TypeError: The pixels aren't uint8.
        ValueError: The shape isn't one, or a list has another length than there are channels.

    Example:
        >>> import torch
        >>> from reelseek.preprocess import normalize
        >>> normalize(torch.tensor([[[0, 51, 255]]], dtype=torch.uint8))
        tensor([[[-1.0000, -0.6000,  1.0000]]])
    """
    values = channels_first(pixels, "CHW").float()
    scales = _numbers(std, values, "std")
    scale = [1 / (255 * number) for number in scales]
    shift = [number / of for number, of in zip(_numbers(mean, values, "mean"), scales, strict=True)]
    values = values.mul_(_factor(scale, values)).sub_(_factor(shift, values))
    return values if dtype is None else values.to(dtype)


def siglip(
    frames: Tensor,
    size: Size = 224,
    *,
    mean: PerChannel = 0.5,
    std: PerChannel = 0.5,
    dtype: Any = None,
    layout: Layout = "CHW",
) -> Tensor:
    """What SiglipImageProcessor makes of frames: resized (bicubic, antialiased) and normalised.

    On a CPU it equals SiglipImageProcessorFast within the rounding of floats (1e-6), and Pillow's
    SiglipImageProcessor within 2 of 255 levels, which is what those two differ by.

    Args:
        frames: (..., C, H, W) uint8, on any device; (..., H, W, C) with ``layout="HWC"``.
        size: As for ``resize``; the processor's ``size``.
        mean: As for ``normalize``; the processor's ``image_mean``.
        std: As for ``normalize``; the processor's ``image_std``.
        dtype: Of the result; None for float32.
        layout: The order of the last three dimensions of ``frames``.

    Returns:
        (..., C, height, width): the model's ``pixel_values``, with the frames' leading dimensions.

    Raises:
        TypeError, ValueError: As ``resize`` and ``normalize``.
    """
    return normalize(resize(frames, size, layout=layout), mean=mean, std=std, dtype=dtype)


def _numbers(value: PerChannel, values: Tensor, name: str) -> list[float]:
    """One number for each channel."""
    channels = values.shape[-3]
    numbers = [float(value)] * channels if isinstance(value, int | float) else list(value)
    if len(numbers) != channels:
        raise ValueError(f"{name} has {len(numbers)} numbers, and the frames {channels} channels")
    return numbers


def _factor(numbers: list[float], values: Tensor) -> Any:
    """A plain number where all channels have the same, which is quicker; else (C, 1, 1)."""
    if len(set(numbers)) == 1:
        return numbers[0]
    return values.new_tensor(numbers).view(-1, 1, 1)
