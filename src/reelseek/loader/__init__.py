"""Batches for training: the loader, the orders in which samples come, and its state."""

from reelseek.loader._gop_shuffle import GopShuffle
from reelseek.loader._make import make_loader
from reelseek.loader._orders import Batch, Chunk, Order, Sequential, Shuffle
from reelseek.loader._randomness import Randomness, measure_randomness
from reelseek.loader._select import select_samples

__all__ = [
    "Batch",
    "Chunk",
    "GopShuffle",
    "Order",
    "Randomness",
    "Sequential",
    "Shuffle",
    "make_loader",
    "measure_randomness",
    "select_samples",
]
