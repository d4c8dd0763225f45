"""Real LeRobot reads what comes of re-encoding, frame by frame as reelseek does."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.care.reencode import Encoding, reencode_dataset
from reelseek.sample import sample_dataset
from tests.care.reencode.conftest import Inline
from tests.conftest import needed
from tests.datasets.makers import SPEC, TOP, WRIST
from tests.datasets.test_lerobot_parity import compare, lerobot_class

pytestmark = pytest.mark.slow

needed("torch")
__all__ = ["lerobot_class"]  # a fixture


def test_every_sample_of_v30_equals_lerobots(
    lerobot_class: Any,
    encoded: dict[str, Path],
    tmp_path: Path,
) -> None:
    root = shutil.copytree(encoded["v3.0"], tmp_path / "v30")
    deltas = {TOP: [0, 5], WRIST: [-2, 0, 1]}
    assert compare(lerobot_class, root, deltas) == sum(SPEC.lengths) * 14


def test_v21_is_read_by_lerobot_once_its_converter_made_v30_of_it(
    lerobot_class: Any,
    tmp_path: Path,
) -> None:
    root = tmp_path / "local/dataset"
    encoding = Encoding("h264", 12, preset="veryfast", b_frames=True)
    reencode_dataset(sample_dataset(), root, encoding, executor=Inline())
    ours = reelseek.open_dataset(shutil.copytree(root, tmp_path / "v21"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LeRobot's own
        from lerobot.datasets.v30.convert_dataset_v21_to_v30 import convert_dataset

        convert_dataset("local/dataset", root=tmp_path, push_to_hub=False)
    theirs = lerobot_class("local/dataset", root=root, video_backend="torchcodec")
    assert len(ours) == len(theirs) == 381
    for row in np.random.default_rng(0).permutation(len(ours))[:40].tolist():
        for camera in ours.cameras:
            expected = (theirs[row][camera] * 255).round().byte()
            assert np.array_equal(ours[row][camera].reshape(expected.shape), expected)


def test_real_v30_equals_lerobots(
    lerobot_class: Any,
    real_datasets: Path,
    tmp_path: Path,
) -> None:
    root = tmp_path / "out"
    encoding = Encoding("av1", 20, preset="11")
    report = reencode_dataset(real_datasets / "aloha3cam_v30_128", root, encoding)
    assert (report.num_frames, report.failures) == (3 * 2641, ())
    deltas = {file.key.split("/")[1]: [0, 16] for file in report.files}
    assert compare(lerobot_class, root, deltas, slice(0, 2641, 40)) == 67 * 16
