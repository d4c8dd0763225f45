"""Encodings measured on a dataset's own frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from reelseek.care.reencode import Encoding, Measured, plan_encodings
from reelseek.care.reencode._compare import MOST_DB, Likeness, compare, psnr_db, quality_of
from reelseek.care.reencode._plan import balanced
from tests.conftest import needs

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


def test_psnr_and_ssim_are_those_of_the_definition() -> None:
    import av

    rng = np.random.default_rng(0)
    one = rng.integers(0, 256, (96, 64), np.uint8)
    other = np.clip(one.astype(int) + rng.integers(-9, 10, one.shape), 0, 255).astype(np.uint8)
    frames = [av.VideoFrame.from_ndarray(picture, format="yuv420p") for picture in (one, other)]
    copies = [av.VideoFrame.from_ndarray(one, format="yuv420p") for _ in range(2)]
    different, same = compare([(frames[1], frames[0]), (copies[0], copies[1])])
    mse = float(np.mean((one.astype(float) - other) ** 2))
    assert different.mse == pytest.approx(mse, rel=1e-3) and different.ssim < 1
    assert same == Likeness(0.0, 1.0)
    assert psnr_db(mse) == pytest.approx(10 * np.log10(255**2 / mse))
    assert psnr_db(0.0) == MOST_DB
    assert quality_of([same, different]).worst_frame == 1
