"""Episodes' parts of the videos that they share (v3.0), made bad in meta or in the file."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

from reelseek.care.verify import Finding, Severity, verify_dataset
from tests.care.verify.conftest import Tiny, bars, on_grid, sound_video
from tests.datasets import makers
from tests.datasets.makers import TOP

SHARED = 22
"""Frames of the first file, of episodes 0 and 1."""


def change_part(tiny: Tiny, episode: int, **values: float) -> None:
    """Change where meta says that an episode's part of the camera's video is."""
    path = makers.v3_episodes(tiny.root, 0)
    lines = pq.read_table(path, partitioning=None).to_pylist()
    lines[episode] |= {f"videos/{TOP}/{name}": value for name, value in values.items()}
    pq.write_table(pq.read_table(path).from_pylist(lines), path)


def findings(tiny: Tiny) -> list[Finding]:
    report = verify_dataset(tiny.root)
    return [finding for finding in report.findings if finding.severity is not Severity.NOTE]


def only(tiny: Tiny) -> Finding:
    (finding,) = findings(tiny)
    return finding


def test_window_past_the_end(tiny_v3: Tiny) -> None:
    tiny_v3.video(episode=1).write_bytes(sound_video(SHARED - 4, 0))
    found = only(tiny_v3)
    assert (found.code, found.episode, found.camera) == ("window-past-end", 1, TOP)
    assert "10 rows, and 6 frames are left" in found.what


def test_window_that_starts_after_the_end(tiny_v3: Tiny) -> None:
    tiny_v3.video(episode=1).write_bytes(sound_video(12, 0))
    assert (only(tiny_v3).code, only(tiny_v3).episode) == ("window-past-end", 1)


def test_one_frame_missing_at_the_end(tiny_v3: Tiny) -> None:
    tiny_v3.video(episode=1).write_bytes(sound_video(SHARED - 1, 0))
    assert (only(tiny_v3).code, only(tiny_v3).episode) == ("frames-one-missing", 1)


def test_one_frame_missing_in_the_first_episode(tiny_v3: Tiny) -> None:
    tiny_v3.video(episode=1).write_bytes(sound_video(SHARED - 1, 0))
    change_part(tiny_v3, 0, to_timestamp=1.1)
    change_part(tiny_v3, 1, from_timestamp=1.1, to_timestamp=2.1)
    assert (only(tiny_v3).code, only(tiny_v3).episode) == ("frames-one-missing", 0)


def test_frames_left_in_the_first_episodes_window(tiny_v3: Tiny) -> None:
    tiny_v3.video(episode=1).write_bytes(sound_video(SHARED + 3, 0))
    change_part(tiny_v3, 0, to_timestamp=1.5)
    change_part(tiny_v3, 1, from_timestamp=1.5, to_timestamp=2.5)
    found = only(tiny_v3)
    assert (found.code, found.episode, found.frames) == ("frames-extra", 0, (12, 14))


def test_frames_of_no_window(tiny_v3: Tiny) -> None:
    tiny_v3.video(episode=1).write_bytes(sound_video(SHARED + 2, 0))
    found = only(tiny_v3)
    assert (found.code, found.episode, found.frames) == ("frames-extra", None, (22, 23))


def test_overlapping_windows(tiny_v3: Tiny) -> None:
    change_part(tiny_v3, 0, to_timestamp=1.4)
    found = only(tiny_v3)
    assert (found.code, found.episode, found.frames) == ("window-overlap", 0, (12, 13))


def test_window_between_frames(tiny_v3: Tiny) -> None:
    change_part(tiny_v3, 1, from_timestamp=1.23)
    found = only(tiny_v3)
    assert (found.code, found.episode) == ("window-off-frame", 1)
    assert "30.00 ms from a frame" in found.what


@pytest.mark.parametrize("off", [0.04, 0.2])
def test_all_windows_are_off_alike(tiny_v3: Tiny, off: float) -> None:
    change_part(tiny_v3, 0, from_timestamp=off, to_timestamp=1.2 + off)
    change_part(tiny_v3, 1, from_timestamp=1.2 + off, to_timestamp=2.2 + off)
    found = only(tiny_v3)
    assert (found.code, found.camera) == ("camera-offset", TOP)


def test_window_of_endless_length(tiny_v3: Tiny) -> None:
    change_part(tiny_v3, 0, from_timestamp=-1e308, to_timestamp=1e308)
    assert {finding.code for finding in findings(tiny_v3)} == {"window-off-frame"}


def test_file_that_starts_late(tiny_v3: Tiny) -> None:
    late = makers.pictures_video(bars(SHARED, 0), on_grid(SHARED, start=0.05))
    tiny_v3.video(episode=1).write_bytes(late)
    assert only(tiny_v3).code == "camera-offset"


def test_sums_of_durations_are_no_fault(tiny_v3: Tiny) -> None:
    """LeRobot adds up durations, so that a start may be some microseconds beside its frame."""
    change_part(tiny_v3, 0, to_timestamp=1.200003)
    change_part(tiny_v3, 1, from_timestamp=1.200003, to_timestamp=2.200001)
    assert findings(tiny_v3) == []


def test_meta_without_ends_is_no_fault(tiny_v3: Tiny) -> None:
    for number in (0, 1):
        path = makers.v3_episodes(tiny_v3.root, number)
        names = [name for name in pq.read_schema(path).names if "to_timestamp" in name]

        def without(table: Any, names: list[str] = names) -> Any:
            return table.drop_columns(names)

        makers.change_rows(path, without)
    assert findings(tiny_v3) == []
