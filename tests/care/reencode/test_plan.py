"""Encodings measured on a dataset's own frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reelseek.care.reencode import Encoding, Measured, plan_encodings
from reelseek.care.reencode._compare import MOST_DB, Likeness, compare, psnr_db, quality_of
from reelseek.care.reencode._plan import balanced
from tests.conftest import needs, skip_without

ENCODINGS = (Encoding("h264", 2, 10, "veryfast"), Encoding("h264", None, 40, "veryfast"))


@pytest.fixture(scope="module")
def measured(sources: dict[str, Path]) -> Sequence[Measured]:
    return plan_encodings(sources["v2.1"], ENCODINGS, num_frames=9, num_reads=3)


def test_source_is_first(measured: Sequence[Measured], sources: dict[str, Path]) -> None:
    assert [one.encoding for one in measured] == [None, *ENCODINGS]
    files = list(sources["v2.1"].rglob("*.mp4"))
    assert measured[0].dataset_bytes == sum(path.stat().st_size for path in files)
    assert (measured[0].psnr_db, measured[0].ssim) == (None, None)


def test_all_are_measured_on_the_same_frames(measured: Sequence[Measured]) -> None:
    assert len({one.num_frames for one in measured}) == 1
    assert all(one.seek_ms.lower <= one.seek_ms.median <= one.seek_ms.upper for one in measured)


def test_longer_gop_and_higher_crf_make_smaller_files(measured: Sequence[Measured]) -> None:
    _source, fast, small = measured
    assert small.bytes_per_frame < fast.bytes_per_frame
    assert small.num_key_frames < fast.num_key_frames
    assert (small.psnr_db or 0) <= (fast.psnr_db or 0)
    assert balanced(measured) in (fast, small)


def test_chart_is_a_picture(measured: Sequence[Measured], tmp_path: Path) -> None:
    needs("matplotlib")
    from reelseek.care.reencode._chart import plan_chart

    plan_chart(measured, "title", "footer", tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def _noisy_frames() -> Iterator[tuple[Any, Any]]:
    """Two frames, one with noise, and two equal ones."""
    import av

    rng = np.random.default_rng(0)
    one = rng.integers(40, 200, (96, 64), np.uint8)
    other = (one + rng.integers(-9, 10, one.shape)).astype(np.uint8)
    for pair in ((other, one), (one, one)):
        frames = [av.VideoFrame.from_ndarray(picture, format="yuv420p") for picture in pair]
        yield frames[0], frames[1]


def test_psnr_and_ssim_are_those_of_ffmpegs_filters() -> None:
    import av

    (frame, reference), _same = _noisy_frames()
    if not hasattr(frame, "metadata"):
        skip_without("pyav18", "this PyAV doesn't give a frame's metadata, where filters write")
    found: dict[str, str] = {}
    for name in ("psnr", "ssim"):
        graph = av.filter.Graph()
        inputs = [
            graph.add_buffer(width=64, height=64, format=frame.format, time_base=Fraction(1))
            for _ in range(2)
        ]
        measure, sink = graph.add(name), graph.add("buffersink")
        for number, (source, picture) in enumerate(zip(inputs, (frame, reference), strict=True)):
            source.link_to(measure, 0, number)
            picture.pts, picture.time_base = 0, Fraction(1)
        measure.link_to(sink)
        graph.configure()
        for source, picture in zip(inputs, (frame, reference), strict=True):
            source.push(picture)
            source.push(None)
        found |= sink.pull().metadata
    (likeness,) = compare([(frame, reference)], ssim_every=1)
    assert likeness.mse == pytest.approx(float(found["lavfi.psnr.mse_avg"]), abs=0.006)
    assert likeness.ssim == pytest.approx(float(found["lavfi.ssim.All"]), abs=2e-5)


def test_quality_is_of_all_frames_and_of_the_worst() -> None:
    different, same = compare(_noisy_frames(), ssim_every=1)
    assert same == Likeness(0.0, 1.0)
    quality = quality_of([same, different])
    assert quality.worst_frame == 1
    assert quality.worst_psnr_db == psnr_db(different.mse) < quality.psnr_db < MOST_DB
    assert psnr_db(0.0) == MOST_DB
