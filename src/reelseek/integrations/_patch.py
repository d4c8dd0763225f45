"""Replacing functions of an installed package, in this process and in the workers it starts.

A function is replaced in every module that holds it, as ``from package.video import decode`` gives
the importing module a name of its own. A forked worker inherits that. A spawned one imports the
package afresh: there the package's dataset objects, which are pickled to it, bring the replacement
along. No environment variable, no file in site-packages.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import get_spawning_popen
from typing import Any

Function = Callable[..., Any]
REDUCE = "__reduce_ex__"
"""The method by which pickle takes an object apart."""


class Patch:
    """Functions of one package, replaced until ``undo`` is called."""

    def __init__(
        self,
        functions: Mapping[Function, Function],
        carriers: Sequence[type] = (),
        start_in_worker: Function | None = None,
    ) -> None:
        """Describe it; nothing is replaced before ``apply``.

        Args:
            functions: Replacements by the function that they replace.
            carriers: Classes whose instances, pickled to a spawned worker, call
                ``start_in_worker`` there before they are made.
            start_in_worker: Called without arguments; it has to pickle.
        """
        self._functions = functions
        self._carriers = carriers
        self._start = start_in_worker
        self._own_ways: list[tuple[type, Any]] = []

    def apply(self) -> None:
        """Replace the functions wherever they are held."""
        rebind(self._functions)
        if self._start is None:
            return
        for carrier in self._carriers:
            self._own_ways.append((carrier, vars(carrier).get(REDUCE)))
            _carry(carrier, self._start)

    def undo(self) -> None:
        """Put the package's own functions back wherever the replacements are held now."""
        while self._own_ways:
            carrier, own = self._own_ways.pop()
            if own is None:
                delattr(carrier, REDUCE)
            else:
                setattr(carrier, REDUCE, own)
        rebind({new: old for old, new in self._functions.items()})


def rebind(functions: Mapping[Function, Function]) -> None:
    """Let these functions' own names mean their replacements, in every module that has them.

    Other names are left alone: who keeps a function as ``original`` means that one.
    """
    modules: list[object] = list(sys.modules.values())
    for module in modules:
        if not isinstance(module, types.ModuleType):
            continue
        # Not `module.__dict__`: that would import a module whose import is put off.
        names = types.ModuleType.__getattribute__(module, "__dict__")
        for old, new in functions.items():
            if names.get(old.__name__) is old:
                names[old.__name__] = new


def _carry(carrier: type, start: Function) -> None:
    own: Function = carrier.__reduce_ex__

    def reduce_ex(self: Any, protocol: Any) -> Any:
        reduced = own(self, protocol)
        # Copied, or pickled to a file: what reads it decides for itself.
        is_for_worker: bool = get_spawning_popen() is not None
        if not is_for_worker or isinstance(reduced, str):
            return reduced
        make, arguments, *state = reduced
        return (_started, (start, make, arguments), *state)

    setattr(carrier, REDUCE, reduce_ex)


def _started(start: Function, make: Function, arguments: tuple[Any, ...]) -> Any:
    """In a spawned worker: replace the functions, then make the object."""
    start()
    return make(*arguments)
