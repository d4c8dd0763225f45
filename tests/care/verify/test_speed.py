"""What verify's look at every frame costs beside FFmpeg's own decode from start to end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import av
import pytest

from reelseek.care.verify._check_file import check_file
from reelseek.sample import sample_dataset

ROUNDS = 3
LEAST = 0.6
"""Of FFmpeg's frames a second: far below what is measured, for a machine that does more."""


def sequential(path: Path) -> None:
    """Decode a file on one thread, and drop the frames."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        for _frame in container.decode(stream):
            pass


def seconds_of(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


@pytest.mark.parametrize("name", ["sample", "aloha3cam_v30_480", "gr00t_picknplace"])
def test_decode_is_nearly_as_fast_as_ffmpegs(
    name: str, request: pytest.FixtureRequest, figure: Callable[[str], None]
) -> None:
    root = sample_dataset()
    if name != "sample":
        root = request.getfixturevalue("real_datasets") / name
    path = min(root.rglob("*.mp4"))
    key = str(path.relative_to(root))

    def verify() -> None:
        check_file(key, root=str(root), level="decode", fps=30)

    own, ffmpegs = [], []
    for _round in range(ROUNDS):  # in turn, as the machine's speed changes
        own.append(seconds_of(verify))
        ffmpegs.append(seconds_of(lambda: sequential(path)))
    ratio = statistics.median(ffmpegs) / statistics.median(own)
    figure(f"verify --level decode of {name}: {ratio:.2f} of FFmpeg's frames a second")
    assert ratio >= LEAST
