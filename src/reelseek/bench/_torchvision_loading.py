"""Importing torchvision, and what needs it, beside a torch without CUDA."""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

from reelseek.errors import DependencyError

BOXES = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
OPERATORS = {"nms": BOXES, "qnms": BOXES}
"""Operators that torchvision asks for by name when it is imported."""


def let_torchvision_load() -> None:
    """Declare the operators that torchvision's compiled part would, where it can't be loaded.

    PyPI's torchvision is built for CUDA. Beside a torch for CPUs only its import fails on the names
    of two operators; its transforms, which are torch code, use neither. For benchmarks and tests:
    the names stay declared in this process. Does nothing where they are.
    """
    import torch

    if torch.version.cuda is not None:
        return
    if "torchvision" not in sys.modules:
        # What an import that failed has left behind belongs to a package that is gone.
        for left in [name for name in sys.modules if name.startswith("torchvision.")]:
            del sys.modules[left]
    for name, signature in OPERATORS.items():
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", signature)


def import_peer(module: str) -> Any:
    """Import a module that may need torchvision, without the warnings of its dependencies.

    Raises:
        DependencyError: It isn't installed, or doesn't load.
    """
    let_torchvision_load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except (ImportError, RuntimeError) as exc:
            package = module.partition(".")[0]
            raise DependencyError(
                f"{module} can't be imported",
                remedy=f"Run `pip install {package}`, in a release that fits your torch",
                detail=str(exc).strip().partition("\n")[0],
            ) from exc
