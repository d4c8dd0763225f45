"""Colour jitter of whole batches: each sample has its own changes, the same for all its frames.

The changes and their order are drawn as torchvision's ColorJitter draws them. Each step gives whole
numbers, as torchvision's functions do on uint8. Between the steps the pixels stay floats, so that
they are converted once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reelseek.preprocess._layout import Layout, channels_first

if TYPE_CHECKING:
    from torch import Tensor

CHANNEL_SHIFTS = (3 / 6, 1 / 6, -1 / 6)
"""Where red, green and blue stand on the hue's circle, as in the formula of ``_hue``."""


@dataclass(frozen=True, slots=True)
class Jitter:
    """Changes of colour for some samples."""

    factors: Tensor
    """(B, 4) float32: of brightness, contrast and saturation, 1 for no change; then what is added
    to the hue, in turns."""
    order: Tensor
    """(B, 4) int64: which of the four comes first, second, third and last."""


def draw_jitter(
    num_samples: int,
    *,
    brightness: float = 0.3,
    contrast: float = 0.4,
    saturation: float = 0.5,
    hue: float = 0.08,
    generator: Any = None,
) -> Jitter:
    """Draw changes as torchvision's ColorJitter does, for each sample anew.

    Args:
        num_samples: B.
        brightness: The factor lies within 1 ± this, and isn't below 0.
        contrast: The same for the contrast.
        saturation: The same for the saturation.
        hue: The shift lies within ± this, in turns; at most 0.5.
        generator: A seeded ``torch.Generator`` of the CPU; None for torch's own.

    Raises:
        ValueError: A strength is negative, or the hue above 0.5.
    """
    import torch

    strengths = {"brightness": brightness, "contrast": contrast, "saturation": saturation}
    for name, strength in {**strengths, "hue": hue}.items():
        if strength < 0 or (name == "hue" and strength > 0.5):
            raise ValueError(f"{name}={strength}: give 0 or more, for the hue at most 0.5")
    low = torch.tensor([*(max(0.0, 1 - s) for s in strengths.values()), -hue])
    high = torch.tensor([*(1 + s for s in strengths.values()), hue])
    drawn = torch.rand((num_samples, 8), generator=generator)
    return Jitter(low + (high - low) * drawn[:, :4], drawn[:, 4:].argsort(dim=1))


def adjust_colours(frames: Tensor, jitter: Jitter, *, layout: Layout = "CHW") -> Tensor:
    """Change the colours of every sample's frames.

    Equal to torchvision's functions on uint8 in nearly all pixels. As a step rounds down, a float's
    last bit can make a level of difference, which the steps after it may enlarge.

    Args:
        frames: (B, ..., 3, H, W) uint8, RGB, on any device; not changed.
        jitter: Of B samples.
        layout: The order of the last three dimensions of ``frames``.

    Returns:
        (B, ..., 3, H, W) uint8, in the order in memory that the frames have.

    Raises:
        TypeError: The frames aren't uint8.
        ValueError: They aren't RGB, or the jitter is of another number of samples.
    """
    import torch

    pixels = channels_first(frames, layout)
    if pixels.ndim < 4 or pixels.shape[-3] != 3 or len(pixels) != len(jitter.factors):
        raise ValueError(
            f"frames of shape {tuple(pixels.shape)} and a jitter of {len(jitter.factors)} samples: "
            "give (B, ..., 3, H, W) and one of B"
        )
    # Channel by channel in memory: most of these steps treat the channels differently.
    values = pixels.to(torch.float32, memory_format=torch.contiguous_format)
    factors = jitter.factors.to(values.device).view(len(values), 4, *[1] * (values.ndim - 1))
    apply = _one_by_one if values.device.type == "cpu" else _at_once
    for step in range(4):
        for kind, adjust in enumerate((_brightness, _contrast, _saturation, _hue)):
            rows = torch.nonzero(jitter.order[:, step] == kind).flatten()
            apply(adjust, values, factors[:, kind], rows)
    changed = torch.empty_like(pixels)
    return changed.copy_(values)


def _one_by_one(adjust: Any, values: Tensor, factors: Tensor, rows: Tensor) -> None:
    """On a CPU: a sample at a time stays in its caches."""
    for row in rows.tolist():
        adjust(values[row], factors[row])


def _at_once(adjust: Any, values: Tensor, factors: Tensor, rows: Tensor) -> None:
    """On other devices: few large steps rather than many small ones."""
    if len(rows):
        on_device = rows.to(values.device)
        part = values[on_device]
        adjust(part, factors[on_device])
        values[on_device] = part


def _brightness(values: Tensor, factor: Tensor) -> None:
    values.mul_(factor).clamp_(0, 255).floor_()


def _contrast(values: Tensor, factor: Tensor) -> None:
    """Towards or away from each frame's mean grey."""
    _blend(values, _grey(values).mean(dim=(-3, -2, -1), keepdim=True), factor)


def _saturation(values: Tensor, factor: Tensor) -> None:
    """Towards or away from each pixel's grey."""
    _blend(values, _grey(values), factor)


def _blend(values: Tensor, other: Tensor, factor: Tensor) -> None:
    values.mul_(factor).add_(other.mul_(1 - factor)).clamp_(0, 255).floor_()


def _grey(values: Tensor) -> Tensor:
    """(..., 1, H, W): the luma of ITU-R BT.601, with torchvision's weights."""
    red, green, blue = values.unbind(dim=-3)
    luma = red.mul(0.2989).add_(green, alpha=0.587).add_(blue, alpha=0.114)
    return luma.floor_().unsqueeze(-3)


def _hue(values: Tensor, shift: Tensor) -> None:
    """Turn the hue in HSV.

    With v the largest channel, c the span between the largest and the smallest, and h the hue from
    0 to 1, a channel is ``v - c * clamp(2 - 6 * d, 0, 1)``. There d is how far ``h + n`` is from
    the nearest whole number, and n is 3/6, 1/6, -1/6 for red, green and blue.
    """
    import torch

    red, green, blue = values.unbind(dim=-3)
    high = torch.maximum(torch.maximum(red, green), blue)
    span = high - torch.minimum(torch.minimum(red, green), blue)
    is_red, is_green = high == red, high == green
    lead = torch.where(is_green, blue - red, red - green)
    lead = torch.where(is_red, green - blue, lead)
    start = torch.where(is_green, 2 / 6, 4 / 6).masked_fill_(is_red, 0)
    hue = lead.div_((span * 6).clamp_(min=1)).add_(start).add_(shift[..., 0])
    # As torchvision goes from floats of 0 to 1 to uint8.
    to_levels = (256 - 1e-3) / 255
    for channel, n in zip((red, green, blue), CHANNEL_SHIFTS, strict=True):
        d = hue + n
        part = d.sub_(d.round()).abs_().mul_(-6).add_(2).clamp_(0, 1)
        channel.copy_(high).sub_(part.mul_(span)).mul_(to_levels).floor_()
