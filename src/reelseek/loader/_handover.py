"""What a worker sends to the main process: large tensors in shared memory, small ones by value.

PyTorch sends each tensor as a shared memory file of its own, which costs both processes about half
a millisecond (``multiprocessing.reductions``: a file, a connection to the worker and its answer).
A batch of a robot dataset is a few large tensors, its frames, and a dozen of a few hundred bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray

MOST_BYTES_BY_VALUE = 64 * 1024
"""Of a tensor that goes through the pipe. A larger one costs less in a file of its own."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A small tensor on its way."""

    array: NDArray[Any]

    def tensor(self) -> torch.Tensor:
        return torch.from_numpy(self.array)


@dataclass(frozen=True, slots=True)
class Handover:
    """A batch on its way from a worker."""

    content: Any
    """The batch; each small tensor in it is a ``_Value``."""

    def batch(self) -> Any:
        """The batch as the worker had it."""
        return _mapped(self.content, _Value, _Value.tensor)

    def pin_memory(self) -> Any:
        """The batch in page-locked memory; PyTorch's pinning thread calls it."""
        from torch.utils.data._utils.pin_memory import pin_memory

        return pin_memory(self.batch())


def handed_over(batch: Any) -> Handover:
    """The batch as it is sent.

    Args:
        batch: Dicts, lists and tuples of anything that can be pickled.
    """
    return Handover(_mapped(batch, torch.Tensor, _by_value))


def _by_value(tensor: torch.Tensor) -> torch.Tensor | _Value:
    is_plain = (
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.requires_grad
        and tensor.dtype in _NUMPY_HAS
        and not (tensor.is_conj() or tensor.is_neg())
    )
    if not is_plain or tensor.nbytes > MOST_BYTES_BY_VALUE:
        return tensor
    return _Value(tensor.numpy())


_NUMPY_HAS = frozenset(
    (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
        torch.float32, torch.float64, torch.complex64, torch.complex128,
    )
)  # fmt: skip


def _mapped(content: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """The same dicts, lists and tuples with each member of a kind changed."""
    if isinstance(content, kind):
        return change(content)
    if type(content) is dict:
        return {key: _mapped(value, kind, change) for key, value in content.items()}
    if type(content) in (list, tuple):
        return type(content)(_mapped(value, kind, change) for value in content)
    return content
