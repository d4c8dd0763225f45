"""Batches for training: the loader, the orders in which samples come, and its state."""

from reelseek.loader._make import make_loader
from reelseek.loader._orders import Batch, Order, Sequential, Shuffle
from reelseek.loader._select import select_samples

__all__ = ["Batch", "Order", "Sequential", "Shuffle", "make_loader", "select_samples"]
