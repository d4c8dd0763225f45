"""Videos by path: opened once, opened anew where they were changed, with the dataset's index."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reelseek.errors import VideoNotFoundError
from reelseek.index import build_index
from reelseek.integrations._videos import VideoFiles, dataset_folder
from reelseek.video import _open as opening
from tests.corpus import clip_path
from tests.datasets.makers import TOP, bars_video, make_v21, make_v30, v2_video, v3_video


def test_video_is_opened_once(tmp_path: Path) -> None:
    files = VideoFiles()
    path = clip_path("b_frames.mp4")
    assert files.get(path) is files.get(str(path))
    with pytest.raises(VideoNotFoundError):
        files.get(tmp_path / "none.mp4")


def test_changed_video_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "growing.mp4"  # as LeRobot appends an episode to a file
    path.write_bytes(bars_video(0, 5))
    files = VideoFiles()
    assert len(files.get(path)) == 5
    path.write_bytes(bars_video(0, 9))
    assert len(files.get(path)) == 9


def refuse(path: str) -> Any:
    raise AssertionError(f"{path} was looked into")


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_index_of_the_dataset_is_used(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_v2 = version == "v2.1"
    root = (make_v21 if is_v2 else make_v30)(tmp_path / "data")
    path = (v2_video if is_v2 else v3_video)(root, TOP, 0)
    assert dataset_folder(str(path.parent)) == str(root)
    expected = VideoFiles().get(path).get_frames_at([3]).numpy()
    assert build_index(root).failures == ()
    monkeypatch.setattr(opening, "index_video", refuse)
    monkeypatch.setattr(opening, "index_tables", refuse)
    files = pickle.loads(pickle.dumps(VideoFiles()))
    assert np.array_equal(files.get(path).get_frames_at([3]).numpy(), expected)


def test_video_outside_of_a_dataset_has_no_folder(tmp_path: Path) -> None:
    assert dataset_folder(str(tmp_path)) is None
