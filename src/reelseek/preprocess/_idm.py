"""The transforms of GR00T's inverse-dynamics models: crop, resize, colour jitter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reelseek.preprocess._colour import Jitter, adjust_colours, draw_jitter
from reelseek.preprocess._crop import crop
from reelseek.preprocess._layout import Layout
from reelseek.preprocess._resize import Filter, resize

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Draws:
    """What chance decides for some samples in training; the same for all cameras of a sample."""

    places: Tensor
    """(B, 2) where each crop lies, from 0 (top, left) up to 1 (bottom, right)."""
    jitter: Jitter
    """Changes of colour."""


@dataclass(frozen=True, slots=True)
class IdmTransform:
    """Crop 0.95, resize to 224 (bilinear), colour jitter: uint8 to uint8, for a whole batch.

    GR00T does the same on floats, one sample at a time, and converts to uint8 at the end; the
    numbers are GR00T's defaults.

    Example:
        >>> import torch
        >>> from reelseek.preprocess import IdmTransform
        >>> transform = IdmTransform()
        >>> frames = torch.zeros(4, 2, 3, 128, 128, dtype=torch.uint8)
        >>> draws = transform.draw(4, generator=torch.Generator().manual_seed(7))
        >>> transform(frames, draws).shape  # in training: the same draws for every camera
        torch.Size([4, 2, 3, 224, 224])
        >>> transform(frames).shape  # in evaluation: the centre, and no jitter
        torch.Size([4, 2, 3, 224, 224])
    """

    size: int = 224
    """The result's side, in pixels."""
    crop: float = 0.95
    """The part of each side that stays."""
    interpolation: Filter = "bilinear"
    """How it is resized."""
    brightness: float = 0.3
    """As for torchvision's ColorJitter."""
    contrast: float = 0.4
    """As for torchvision's ColorJitter."""
    saturation: float = 0.5
    """As for torchvision's ColorJitter."""
    hue: float = 0.08
    """As for torchvision's ColorJitter."""

    def draw(self, num_samples: int, generator: Any = None) -> Draws:
        """Draw crops and colours for a batch.

        Args:
            num_samples: B.
            generator: A seeded ``torch.Generator`` of the CPU; None for torch's own.
        """
        import torch

        places = torch.rand((num_samples, 2), generator=generator)
        jitter = draw_jitter(
            num_samples,
            brightness=self.brightness,
            contrast=self.contrast,
            saturation=self.saturation,
            hue=self.hue,
            generator=generator,
        )
        return Draws(places, jitter)

    def __call__(
        self, frames: Tensor, draws: Draws | None = None, *, layout: Layout = "CHW"
    ) -> Tensor:
        """Transform the frames of one camera.

        Args:
            frames: (B, ..., 3, H, W) uint8, RGB, on any device.
            draws: What chance decided for these samples; None in evaluation.
            layout: The order of the last three dimensions of ``frames``.

        Returns:
            (B, ..., 3, size, size) uint8.

        Raises:
            TypeError, ValueError: As ``crop``, ``resize`` and ``adjust_colours``.
        """
        places = None if draws is None else draws.places
        pixels = crop(frames, self.crop, places=places, layout=layout)
        pixels = resize(pixels, self.size, interpolation=self.interpolation)
        return pixels if draws is None else adjust_colours(pixels, draws.jitter)
