"""The decoders, one module each behind one protocol and one registry."""

from reelseek.video.backends._protocol import Backend, Decoder, OpenRequest, Targets, visits
from reelseek.video.backends._registry import (
    AUTO_ORDER,
    ON_GPU,
    backend_names,
    is_backend,
    load_backend,
    open_decoder,
)

__all__ = [
    "AUTO_ORDER",
    "ON_GPU",
    "Backend",
    "Decoder",
    "OpenRequest",
    "Targets",
    "backend_names",
    "is_backend",
    "load_backend",
    "open_decoder",
    "visits",
]
