"""What a report says of a dataset, before it is drawn."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from reelseek.care.report import make_report
from reelseek.errors import DatasetNotFoundError
from tests.care.report.conftest import SPEC, Page
from tests.conftest import needs
from tests.datasets import makers


def test_overview_counts(sound: Page) -> None:
    it = sound.report.overview.value
    assert it is not None
    assert (it.format, it.num_episodes, it.num_frames, it.fps) == ("LeRobot v2.1", 3, 33, 10)
    assert [camera.kind for camera in it.cameras] == ["video", "video"]
    found = [path for path in sound.root.rglob("*") if path.is_file()]
    assert it.num_files == len(found)
    assert it.num_bytes == sum(path.stat().st_size for path in found)


def test_tasks_are_counted_by_episodes_and_frames(sound: Page) -> None:
    it = sound.report.overview.value
    assert it is not None
    counts = [(task.text, task.num_episodes, task.num_frames) for task in it.tasks]
    assert counts == [(makers.TASKS[0], 2, 24), (makers.TASKS[1], 1, 9), ("valid", 0, 0)]


def test_a_sound_dataset_has_no_finding_and_no_fault(sound: Page) -> None:
    assert sound.report.faults == {}
    assert sound.report.is_sound
    assert sound.report.findings.value is not None
    assert sound.report.findings.value.count("error") == 0


def test_pictures_are_the_episodes_frames(sound: Page) -> None:
    sheets = sound.report.pictures.value
    assert sheets is not None
    assert [sheet.key for sheet in sheets] == [makers.TOP, makers.WRIST]
    frames = [[p.frame for p in episode.pictures] for episode in sheets[0].episodes]
    assert frames == [[0, 2, 4, 7, 9, 11], [0, 2, 3, 5, 6, 8], [0, 2, 4, 7, 9, 11]]


def test_groups_of_pictures(sound: Page) -> None:
    coding = sound.report.coding.value
    assert coding is not None
    camera = coding[0]
    assert (camera.codec, camera.width, camera.height) == ("h264", makers.WIDTH, makers.HEIGHT)
    assert camera.group_lengths[:3].tolist() == [5, 5, 2]
    assert camera.group_lengths.sum() == sum(camera.kinds.values()) == camera.num_frames == 33
    assert camera.kinds["key frame"] == len(camera.group_lengths)


def test_reads_decode_from_their_key_frames_on(sound: Page) -> None:
    seeks = sound.report.seeks.value
    assert seeks is not None
    camera = seeks.cameras[0]
    assert len(camera.needed) == len(camera.if_reencoded) == 240
    assert np.all(camera.needed <= camera.on_the_way)
    assert set(camera.if_reencoded.tolist()) <= {1, 2, 3, 4}
    assert len(camera.milliseconds) > 0
    assert np.all(camera.milliseconds > 0)


def test_lengths(sound: Page) -> None:
    lengths = sound.report.lengths.value
    assert lengths is not None
    assert tuple(lengths.frames) == SPEC.lengths
    assert lengths.shortest[0] == (1, 9)
    assert lengths.median == 12


def test_ranges_of_values_and_constant_ones(sound: Page) -> None:
    values = sound.report.values.value
    assert values is not None
    state, action, *_others = values.keys
    assert (state.key, action.key) == ("observation.state", "action")
    first = state.dimensions[0]
    assert (first.minimum, first.quantiles[1], first.maximum) == (0, 16, 32)
    assert first.counts.sum() == state.num_rows == 33


def test_v3_pictures_and_values(tmp_path: Path) -> None:
    needs("PIL")
    root = makers.make_v30(tmp_path / "v30")
    report = make_report(root, level="none")
    assert report.faults == {}
    assert report.pictures.value is not None
    assert [len(e.pictures) for e in report.pictures.value[0].episodes] == [6, 5, 6, 4]
    assert report.values.value is not None
    assert report.values.value.keys[0].num_rows == sum(makers.SPEC.lengths)
    assert report.findings.value is None


def test_images_in_parquet_are_shown(tmp_path: Path) -> None:
    needs("PIL")
    report = make_report(makers.make_images(tmp_path / "images", SPEC), level="none")
    assert report.faults == {}
    assert report.pictures.value is not None
    assert [len(sheet.episodes[0].pictures) for sheet in report.pictures.value] == [6, 6]
    assert report.coding.value is not None
    assert [camera.key for camera in report.coding.value] == [makers.WRIST]


def test_without_cameras_there_is_the_rest(tmp_path: Path) -> None:
    root = makers.make_v21(tmp_path / "blind", makers.Spec(lengths=(12,), cameras=()))
    report = make_report(root, level="none")
    assert report.faults == {}
    assert report.pictures.value == ()
    assert report.coding.value == ()
    assert report.values.value is not None


def test_broken_videos_are_told_where_they_would_be_shown(hostile: Page) -> None:
    report = hostile.report
    assert not report.is_sound
    assert report.faults == {}
    assert report.pictures.value is not None
    broken = report.pictures.value[1]
    assert all(episode.fault and not episode.pictures for episode in broken.episodes)
    assert report.coding.value is not None
    assert [len(camera.faults) for camera in report.coding.value] == [0, 3]
    assert report.values.value is not None
    assert len(report.values.value.faults) == 1


def test_faults_name_files_as_seen_from_the_dataset(hostile: Page) -> None:
    assert hostile.report.coding.value is not None
    for fault in hostile.report.coding.value[1].faults:
        assert fault.startswith(f"videos{os.sep}")


def test_findings_are_grouped_by_code_the_worst_first(hostile: Page) -> None:
    found = hostile.report.findings.value
    assert found is not None
    codes = [group.code for group in found.groups]
    assert len(set(codes)) == len(codes)
    assert {"video-missing", "video-lfs-pointer"} <= set(codes)
    order = ["error", "warning", "note"]
    assert [g.severity for g in found.groups] == sorted(
        (g.severity for g in found.groups), key=order.index
    )


@pytest.mark.parametrize("lost", ["meta/info.json", "meta/episodes.jsonl", "videos", "meta"])
def test_a_dataset_without_a_part_gives_a_report(tmp_path: Path, sound: Page, lost: str) -> None:
    root = shutil.copytree(sound.root, tmp_path / "lossy")
    path = root / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    report = make_report(root)
    assert not report.is_sound
    if lost == "videos":
        assert report.values.value is not None
        assert report.coding.value == ()
    else:
        assert {"overview", "coding", "values"} <= report.faults.keys()


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match="no such folder"):
        make_report(tmp_path / "nothing")


def test_of_many_episodes_a_sample_is_looked_at(tmp_path: Path) -> None:
    needs("PIL")
    count = 40
    spec = makers.Spec(lengths=(3,) * count, cameras=(makers.TOP,))
    report = make_report(makers.make_v21(tmp_path / "many", spec), level="none")
    assert report.coding.value is not None
    assert str(report.coding.value[0].sample) == f"a sample of 8 of {count} videos"
    assert report.pictures.value is not None
    assert [e.episode for e in report.pictures.value[0].episodes] == [0, 13, 26, 39]


def test_an_episode_said_to_be_endless(tmp_path: Path) -> None:
    root = makers.make_v21(tmp_path / "endless", makers.Spec(lengths=(6,), cameras=(makers.TOP,)))
    makers.write_lines(
        root / "meta/episodes.jsonl", [{"episode_index": 0, "tasks": [], "length": 10**14}]
    )
    report = make_report(root, level="none")
    assert report.pictures.value is not None
    assert "too few" in report.pictures.value[0].episodes[0].fault
    assert "rows" in report.values.fault
