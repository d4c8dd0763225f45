"""The memory that frames are decoded into."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from reelseek.types import Pixels

NewPixels = Callable[[tuple[int, ...]], Pixels]
"""Makes uint8 memory of a shape: a NumPy array, or a torch tensor."""


def new_pixels(shape: tuple[int, ...], device: str) -> Pixels:
    """Uint8 memory: a NumPy array, or a tensor on a GPU."""
    if device == "cpu":
        return np.empty(shape, np.uint8)
    import torch

    return torch.empty(shape, dtype=torch.uint8, device=device)


def new_shared_pixels(shape: tuple[int, ...]) -> Pixels:
    """A uint8 tensor in shared memory: another process gets it without a copy."""
    import torch

    # As torch's own collate function makes the memory of a worker's batch.
    storage = torch.UntypedStorage._new_shared(math.prod(shape), device="cpu")
    return torch.empty(0, dtype=torch.uint8).set_(storage).view(shape)


def writable(pixels: Pixels) -> Any:
    """What decoders write into: a NumPy array of the same memory, or a GPU's tensor."""
    if isinstance(pixels, np.ndarray) or pixels.device.type != "cpu":
        return pixels
    return pixels.numpy()
