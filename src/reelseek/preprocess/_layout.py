"""Which dimension of a tensor of frames is which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

Layout = Literal["CHW", "HWC"]
"""The last three dimensions: channels first, as a dataset's samples, or channels last."""


def channels_first(frames: Tensor, layout: Layout) -> Tensor:
    """(..., C, H, W) uint8 frames, a view of the same memory.

    Raises:
        TypeError: They aren't uint8.
        ValueError: They have too few dimensions, or there is no such layout.
    """
    import torch

    if layout not in ("CHW", "HWC"):
        raise ValueError(f"layout={layout!r}: choose 'CHW' or 'HWC'")
    if frames.dtype != torch.uint8:
        raise TypeError(
            f"frames are {frames.dtype}, and this works on uint8: pass them as they were decoded, "
            "and call normalize() afterwards"
        )
    if frames.ndim < 3:
        raise ValueError(
            f"frames of shape {tuple(frames.shape)}: give (..., {', '.join(layout)}), "
            "such as (B, T, C, H, W)"
        )
    return frames if layout == "CHW" else frames.movedim(-1, -3)


def rounded(values: Tensor) -> Tensor:
    """Floats as the nearest uint8; those beyond 0 to 255 become 0 or 255. Changes ``values``."""
    import torch

    return values.round_().clamp_(0, 255).to(torch.uint8)
