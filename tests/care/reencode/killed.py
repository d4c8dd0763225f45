"""A run that kills itself: ``python -m tests.care.reencode.killed POINT DATASET OUT``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from reelseek.care.reencode import _dataset, _partial, _source
from tests.care.reencode.conftest import AV1, Inline

POINTS: dict[str, tuple[Any, str, int]] = {
    "encoding": (_source.Source, "frames", 6),
    "between files": (_dataset._Run, "_take", 2),
    "before the rename": (_partial.Partial, "publish", 1),
    "after the rename": (_partial.Partial, "_delete", 1),
    "deleting what isn't needed any more": (_partial, "_remove", 5),
}
"""What is called at a point, and at which call the run is killed. Frames are asked for three times
to estimate the size, then twice for each video: to encode it and to check it."""


def _dying(function: Callable[..., Any], calls: int) -> Callable[..., Any]:
    count = 0

    def call(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count < calls:
            return function(*arguments)
        if function.__name__ == "frames":
            return _dying_on_the_way(function(*arguments))
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    return call


def _dying_on_the_way(frames: Iterator[Any]) -> Iterator[Any]:
    yield next(frames)
    yield next(frames)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    point, root, out = sys.argv[1:]
    owner, name, calls = POINTS[point]
    setattr(owner, name, _dying(getattr(owner, name), calls))
    _dataset.reencode_dataset(root, out, AV1, executor=Inline())


if __name__ == "__main__":
    main()
