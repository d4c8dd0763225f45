"""Whether a drop-in is on: what ``enable`` and ``disable`` of all of them have in common."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

from reelseek.integrations._patch import Patch

Options = TypeVar("Options")


class Switch(Generic[Options]):
    """A drop-in's patch, on with some options or off.

    Threads: safe. Fork: a child finds it as the parent left it.
    """

    def __init__(self, patch_for: Callable[[Options], Patch]) -> None:
        self._patch_for = patch_for
        self._patch: Patch | None = None
        self._lock = threading.RLock()
        self.options: Options | None = None
        """What it is on with; None while it is off."""

    def set(self, options: Options | None) -> Enabled[Options]:
        """Turn it on with these options, whatever it was before; None turns it off."""
        with self._lock:
            former = self.options
            if options != former:
                self._undo()
                if options is not None:
                    patch = self._patch_for(options)
                    patch.apply()
                    self._patch, self.options = patch, options
        return Enabled(self, former)

    def _undo(self) -> None:
        patch, self._patch, self.options = self._patch, None, None
        if patch is not None:
            patch.undo()


class Enabled(Generic[Options]):
    """What ``enable`` returns: in a ``with`` statement, the end puts back what was before."""

    def __init__(self, switch: Switch[Options], former: Options | None) -> None:
        self._switch = switch
        self._former = former

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._switch.set(self._former)
