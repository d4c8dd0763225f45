"""What verify does with a dataset as a whole."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from reelseek.care.jobs import LocalExecutor
from reelseek.care.verify import CODES, Severity, VerifyReport, verify_dataset
from reelseek.errors import DatasetNotFoundError
from reelseek.sample import sample_dataset
from tests.care.verify.conftest import LAST, SPEC, Tiny, bars, on_grid
from tests.datasets import makers
from tests.datasets.makers import HEIGHT, TOP, WIDTH, WRIST, pictures_video

REAL = (
    "aloha3cam_v21_128", "aloha3cam_v21_128_av1_default", "aloha3cam_v21_128_av1_g20",
    "aloha3cam_v21_128_h264_default", "aloha3cam_v21_128_h264_g2",
    "aloha3cam_v21_128_hevc_default", "aloha3cam_v21_128_vp9_default", "aloha3cam_v30_128",
    "aloha3cam_v30_480", "gr00t_picknplace",
)  # fmt: skip


def codes(report: VerifyReport) -> set[str]:
    return {f.code for f in report.findings if f.severity is not Severity.NOTE}


@pytest.mark.parametrize("level", ["quick", "decode"])
@pytest.mark.parametrize("name", REAL)
def test_real_dataset_is_clean(
    real_datasets: Path, name: str, level: Literal["quick", "decode"]
) -> None:
    report = verify_dataset(real_datasets / name, level=level)
    assert codes(report) == set(), report.findings
    assert report.num_frames > 0


@pytest.mark.parametrize("level", ["quick", "decode"])
def test_sample_has_no_finding(level: Literal["quick", "decode"]) -> None:
    assert verify_dataset(sample_dataset(), level=level).findings == ()


def test_gr00ts_habits_are_no_faults(tmp_path: Path) -> None:
    root = makers.make_gr00t(tmp_path / "gr00t", SPEC)
    makers.change_info(root, lambda about: about.update(total_tasks=3))
    for episode in range(len(SPEC.lengths)):
        video = pictures_video(bars(SPEC.lengths[episode]), on_grid(SPEC.lengths[episode]))
        makers.v2_video(root, TOP, episode).write_bytes(video)
    modality = json.loads((root / "meta/modality.json").read_text())
    del modality["video"]["listed_only"]
    makers.write_json(root / "meta/modality.json", modality)
    report = verify_dataset(root, level="decode")
    assert codes(report) == set(), report.findings
    assert {"camera-unused"} <= {finding.code for finding in report.findings}


def test_camera_that_modality_json_uses_needs_files(tmp_path: Path) -> None:
    root = makers.make_gr00t(tmp_path / "gr00t", SPEC)
    assert "camera-without-files" in codes(verify_dataset(root))


def test_images_in_parquet_are_no_fault(tmp_path: Path) -> None:
    root = makers.make_images(tmp_path / "images", SPEC)
    makers.change_info(root, lambda about: about.update(total_tasks=3))
    report = verify_dataset(root, level="decode")
    assert codes(report) == set(), report.findings


@pytest.mark.parametrize("names", [None, ["c", "h", "w"], ["channels", "height", "width"]])
def test_channels_may_stand_first(tiny: Tiny, names: Any) -> None:
    shape = [3, HEIGHT, WIDTH]
    tiny.change_info(lambda about: about["features"][TOP].update(shape=shape, names=names))
    assert verify_dataset(tiny.root).findings == ()


@pytest.mark.parametrize(
    ("name", "data"),
    [("episodes.jsonl.bak", b"{"), ("._info.json", b"\x00\x05\x16\x07"), (".stats.json", b"{"),
     ("notes.json", b"[1, 2]"), ("old.json", b"")],
)  # fmt: skip
def test_files_in_meta_that_are_not_the_formats_are_no_fault(
    tiny: Tiny, name: str, data: bytes
) -> None:
    (tiny.root / "meta" / name).write_bytes(data)
    assert verify_dataset(tiny.root).findings == ()


def test_statistics_of_any_size_are_no_fault(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny.root / "meta/episodes_stats.jsonl"
    path.write_text('{"episode_index": 0}\n' * 1000)
    monkeypatch.setattr("reelseek.datasets._files.MAX_JSON_BYTES", 10_000)
    assert verify_dataset(tiny.root).findings == ()
    path.write_text('{"episode_index": 0}\n' * 1000 + "{")
    (finding,) = verify_dataset(tiny.root).findings
    assert finding.code == "meta-unreadable" and "line 1001" in finding.what


def test_camera_may_be_a_link_to_another_ones_folder(tiny: Tiny) -> None:
    folder = next(path for path in tiny.root.rglob(WRIST) if path.is_dir())
    shutil.rmtree(folder)
    folder.symlink_to(folder.with_name(TOP), target_is_directory=True)
    assert verify_dataset(tiny.root).findings == ()


def test_other_size_is_mended_to_the_usual_one(tiny: Tiny) -> None:
    small = [np.ascontiguousarray(picture[:, :160]) for picture in bars(12)]
    tiny.write_video(pictures_video(small, on_grid(12)))
    (finding,) = verify_dataset(tiny.root).findings
    assert finding.code == "mixed-size"
    assert f"reencode DATASET OUT --size {WIDTH}x{HEIGHT}`" in finding.remedy


def test_still_robot_may_have_a_still_picture(tiny: Tiny) -> None:
    """As in a simulation without noise: a picture that doesn't change is no fault by itself."""
    tiny.write_video(pictures_video([makers.picture(31)] * 12, on_grid(12)))
    for name in ("observation.state", "action"):
        tiny.change_column(name, lambda values: np.repeat(values[:1], len(values), axis=0))
    assert codes(verify_dataset(tiny.root, level="decode")) == set()


def test_camera_of_the_arm_that_rests_is_not_frozen(tiny: Tiny) -> None:
    tiny.write_video(pictures_video([makers.picture(31)] * 12, on_grid(12)), WRIST)

    def only_one_arm(values: Any) -> Any:
        return np.concatenate([values[:, :2], np.repeat(values[:1, 2:], 12, axis=0)], axis=1)

    tiny.change_column("observation.state", only_one_arm)
    assert codes(verify_dataset(tiny.root, level="decode")) == set()


def test_the_rest_is_checked_where_meta_is_unreadable(tiny: Tiny) -> None:
    tiny.tasks.write_bytes(b"{")
    makers.as_cut(tiny.video())
    tiny.change_column("action", lambda values: values * np.nan)
    report = verify_dataset(tiny.root)
    assert codes(report) == {"meta-unreadable", "video-truncated", "value-not-finite"}
    assert report.num_episodes == 0


def test_the_rest_is_checked_without_info_json(tiny: Tiny) -> None:
    (tiny.root / "meta/info.json").unlink()
    makers.as_cut(tiny.video())
    assert codes(verify_dataset(tiny.root)) == {"meta-missing", "video-truncated"}


def test_the_errors_own_text_is_kept(tiny: Tiny) -> None:
    (tiny.root / "meta/info.json").write_text('{"fps": "thirty"}')
    (finding,) = verify_dataset(tiny.root).findings
    assert "codebase_version is None" in finding.what


def test_folder_that_is_no_dataset_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"meta/info\.json"):
        verify_dataset(tmp_path)


def test_unknown_level_is_an_error(tiny: Tiny) -> None:
    with pytest.raises(ValueError, match="quick, decode"):
        verify_dataset(tiny.root, level="deep")  # type: ignore[arg-type]


def test_report_is_json_with_a_schema(tiny: Tiny) -> None:
    tiny.video().unlink()
    document = json.loads(json.dumps(verify_dataset(tiny.root).document()))
    assert document["schema"] == "reelseek.verify/1"
    assert document["counts"] == {"error": 1, "warning": 0, "note": 0}
    assert document["is_sound"] is False
    (finding,) = document["findings"]
    assert finding["code"] == "video-missing" and finding["episode"] == LAST
    assert finding["remedy"] == CODES["video-missing"].remedy


def test_findings_stand_with_the_worst_first(tiny: Tiny) -> None:
    tiny.video().unlink()
    tiny.change_info(lambda about: about.update(total_videos=1, total_tasks=9))
    severities = [finding.severity for finding in verify_dataset(tiny.root).findings]
    assert severities == [Severity.ERROR, Severity.WARNING, Severity.NOTE]


def test_processes_find_what_this_process_finds(tiny: Tiny) -> None:
    shutil.copy(tiny.video(), tiny.video().with_name("left.mp4"))
    makers.as_cut(tiny.video())
    here = verify_dataset(tiny.root, level="decode")
    there = verify_dataset(tiny.root, level="decode", executor=LocalExecutor(2))
    assert (there.findings, there.num_frames) == (here.findings, here.num_frames)


def test_next_run_looks_into_changed_files_only(tiny: Tiny) -> None:
    def run(*, is_fresh: bool = False) -> VerifyReport:
        executor = LocalExecutor(1)
        return verify_dataset(tiny.root, level="decode", executor=executor, is_fresh=is_fresh)

    makers.as_cut(tiny.video())
    first, second = run(), run()
    assert (first.num_kept, second.num_kept) == (0, second.num_files)
    assert second.findings == first.findings
    tiny.write_video(pictures_video(bars(12), on_grid(12)))
    mended = run()
    assert (mended.findings, mended.num_kept) == ((), mended.num_files - 1)
    assert run(is_fresh=True).num_kept == 0


def test_quick_leaves_nothing_behind(tiny: Tiny) -> None:
    verify_dataset(tiny.root, executor=LocalExecutor(1))
    assert not (tiny.root / "meta/reelseek").exists()


def test_every_kind_has_a_meaning_and_a_remedy() -> None:
    for name, code in CODES.items():
        assert name == code.name and code.meaning.endswith(".")
        assert code.remedy and not code.remedy.endswith(".")
