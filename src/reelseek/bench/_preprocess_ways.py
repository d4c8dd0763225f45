"""Ways to make SigLIP's input from decoded frames: Hugging Face's processors, and reelseek's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reelseek.bench._torchvision_loading import import_peer
from reelseek.errors import DependencyError

if TYPE_CHECKING:
    from torch import Tensor

SLOW_PIL, SLOW, FAST = (
    "SiglipImageProcessor, PIL images",
    "SiglipImageProcessor, arrays",
    "SiglipImageProcessorFast",
)
OURS, OURS_UINT8 = "reelseek, to float32", "reelseek, to uint8"


@dataclass(frozen=True, slots=True)
class Way:
    """One way, ready to run on the frames that it was made for."""

    name: str
    """What it is called in the table."""
    usage: str
    """What is timed."""
    run: Callable[[], Tensor]
    """Makes (N, 3, size, size) pixel values; its input is ready before."""
    has_float_step: bool = True
    """False where it stops at uint8."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A way that can't be measured here."""

    name: str
    """What it is called in the table."""
    why: str
    """What is missing, and the remedy."""


def ways_for(frames: Tensor, size: int) -> tuple[list[Way], list[Absent]]:
    """All ways for some frames, each with its input as it takes it best.

    Args:
        frames: (N, 3, H, W) uint8 as decoded.
        size: The side of the result, in pixels.
    """
    from reelseek.preprocess import resize, siglip

    found = [
        Way(OURS, "preprocess.siglip on the decoded batch", lambda: siglip(frames, size)),
        Way(
            OURS_UINT8,
            "preprocess.resize; normalised after the transfer",
            lambda: resize(frames, size),
            has_float_step=False,
        ),
    ]
    peers, absent = _processors(frames, size)
    return [*peers, *found], absent


def _processors(frames: Tensor, size: int) -> tuple[list[Way], list[Absent]]:
    no_torchvision = _why_not("torchvision.transforms.v2")
    no_transformers = _why_not("transformers.models.siglip")
    if no_transformers:
        return [], [Absent(name, no_transformers) for name in (SLOW_PIL, SLOW, FAST)]
    module = import_peer("transformers.models.siglip")
    slow = _first(module, "SiglipImageProcessorPil", "SiglipImageProcessor")
    arrays = [frame.permute(1, 2, 0).contiguous().numpy() for frame in frames]
    pictures = [import_peer("PIL.Image").fromarray(array) for array in arrays]
    found = [
        Way(SLOW_PIL, "as training code calls it", _call(slow, pictures, size)),
        Way(SLOW, "a list of (H, W, 3) arrays", _call(slow, arrays, size)),
    ]
    if no_torchvision:
        return found, [Absent(FAST, no_torchvision)]
    fast = _first(module, "SiglipImageProcessorFast", "SiglipImageProcessor")
    tensors = list(frames.contiguous())
    return [*found, Way(FAST, "a list of (3, H, W) uint8 tensors", _call(fast, tensors, size))], []


def _why_not(module: str) -> str:
    """Why a module can't be imported; empty where it can."""
    try:
        import_peer(module)
    except DependencyError as exc:
        return str(exc)
    return ""


def _first(module: Any, *names: str) -> Any:
    """The first class of these names: transformers 5 has other names than 4."""
    return next(getattr(module, name) for name in names if hasattr(module, name))


def _call(processor_class: Any, images: Sequence[Any], size: int) -> Callable[[], Tensor]:
    processor = processor_class(size={"height": size, "width": size})

    def run() -> Tensor:
        pixels: Tensor = processor(images=images, return_tensors="pt")["pixel_values"]
        return pixels

    return run
