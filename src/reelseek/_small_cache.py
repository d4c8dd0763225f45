"""A cache of what is computed from small arguments; large ones are computed each time.

Files that nobody trusts choose some of the arguments: a number of entries alone bounds no memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

MOST_BYTES = 16 * 1024
"""Of all bytes and texts among a call's arguments. A codec's configuration has some hundred, or two
thousand where x265 adds its settings, and as many again in hexadecimal where it is stored."""

P = ParamSpec("P")
R = TypeVar("R")


def kept_where_small(entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function of hashable positional arguments; so many results are kept."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        kept: Any = functools.lru_cache(entries)(function)

        @functools.wraps(function)
        def call(*arguments: P.args, **named: P.kwargs) -> R:
            is_small = _num_bytes(arguments) <= MOST_BYTES
            result: R = (kept if is_small else function)(*arguments, **named)
            return result

        return call

    return decorate


def _num_bytes(values: tuple[object, ...]) -> int:
    count = 0
    for value in values:
        if isinstance(value, (bytes, str)):
            count += len(value)
        elif isinstance(value, tuple):
            count += _num_bytes(value)
    return count
