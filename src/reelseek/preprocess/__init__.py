"""From decoded frames to a model's input: batched torch operations on uint8, on any device."""

from reelseek.preprocess._colour import Jitter, adjust_colours, draw_jitter
from reelseek.preprocess._crop import crop, crop_size
from reelseek.preprocess._idm import Draws, IdmTransform
from reelseek.preprocess._normalize import normalize, siglip
from reelseek.preprocess._resize import resize

__all__ = [
    "Draws",
    "IdmTransform",
    "Jitter",
    "adjust_colours",
    "crop",
    "crop_size",
    "draw_jitter",
    "normalize",
    "resize",
    "siglip",
]
