"""A dataset written again: what changes, what stays, and what is refused."""

from __future__ import annotations

import io
import json
import os
import shutil
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pyarrow.parquet as pq
import pytest

import reelseek
from reelseek.care.reencode import Encoding, _sample, reencode_dataset
from reelseek.care.reencode._dataset import _Run
from reelseek.care.reencode._meta import write_json
from reelseek.care.reencode._partial import Partial, check_room
from reelseek.care.verify import verify_dataset
from reelseek.errors import (
    DatasetError,
    DatasetNotFoundError,
    OutputError,
    QualityError,
    ReelseekError,
    UnsafePathError,
)
from tests.care.reencode.conftest import AV1, INDEX, KINDS, Inline, contents
from tests.corpus import clip_path
from tests.datasets import makers
from tests.datasets.makers import SPEC, TOP, WRIST

H264 = Encoding("h264", 12, preset="veryfast")


def frames_of(root: Path) -> list[Any]:
    """What each sample's pictures show, camera by camera."""
    with closing(reelseek.open_dataset(root, output="numpy")) as dataset:
        return [
            [makers.numbers(dataset[row][camera]) for camera in dataset.cameras]
            for row in range(len(dataset))
        ]


def starts_late(count: int) -> bytes:
    """An MP4 of bars whose first frame is at 1.5 s."""
    old, new = io.BytesIO(makers.bars_video(0, count)), io.BytesIO()
    with av.open(old) as source, av.open(new, "w", format="mp4") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.pts is not None and packet.dts is not None:
                shift = int(1.5 / packet.time_base)
                packet.pts, packet.dts, packet.stream = (
                    packet.pts + shift, packet.dts + shift, stream
                )  # fmt: skip
                target.mux(packet)
    return new.getvalue()


def videos_of(root: Path) -> list[Path]:
    return sorted(root.rglob("*.mp4"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_sample_has_its_frames(
    kind: str, sources: dict[str, Path], encoded: dict[str, Path]
) -> None:
    assert frames_of(encoded[kind]) == frames_of(sources[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_all_other_files_are_the_same(
    kind: str, sources: dict[str, Path], encoded: dict[str, Path]
) -> None:
    before, after = contents(sources[kind]), contents(encoded[kind])
    assert set(after) == {*before, "meta/reelseek/reencode.json"}
    changed = {name for name, digest in before.items() if after[name] != digest}
    videos = {str(path.relative_to(sources[kind])) for path in videos_of(sources[kind])}
    assert changed == {"meta/info.json", *videos}


@pytest.mark.parametrize("kind", KINDS)
def test_info_says_how_the_videos_are_encoded(kind: str, encoded: dict[str, Path]) -> None:
    features = json.loads((encoded[kind] / "meta/info.json").read_text())["features"]
    block = features[TOP].get("info") or features[TOP]["video_info"]
    assert (block["video.codec"], block["video.pix_fmt"], block["video.fps"]) == (
        "av1", "yuv420p", 10
    )  # fmt: skip
    assert ("info" in features[TOP]) == (kind != "gr00t")


@pytest.mark.parametrize("kind", KINDS)
def test_index_is_there_and_fresh(kind: str, encoded: dict[str, Path]) -> None:
    assert (encoded[kind] / INDEX).is_file()
    assert not list((encoded[kind] / "meta/reelseek").glob("*.lock"))
    with closing(reelseek.open_dataset(encoded[kind], output="numpy")) as dataset:
        for video in videos_of(encoded[kind]):
            assert dataset.index.lookup(str(video)) is not None


def test_videos_have_lerobots_clock_and_gop(encoded: dict[str, Path]) -> None:
    for path in videos_of(encoded["v2.1"]):
        with reelseek.open_video(path) as video:
            assert video.info.time_base.denominator == 10 * 1024
            assert np.array_equal(video.table.pts, 1024 * np.arange(len(video)))
            assert np.array_equal(video.info.key_frames, np.arange(0, len(video), 2))
            assert video.info.notes == ()
        assert path.read_bytes().index(b"moov") < path.read_bytes().index(b"mdat")


def test_episodes_in_a_shared_file_begin_with_key_frames(encoded: dict[str, Path]) -> None:
    for camera in (TOP, WRIST):
        with reelseek.open_video(makers.v3_video(encoded["v3.0"], camera, 0)) as video:
            assert len(video) == SPEC.lengths[0] + SPEC.lengths[1]
            assert SPEC.lengths[0] in video.info.key_frames  # 7, an odd number


def test_times_of_episodes_are_made_exact(tmp_path: Path, inline: Inline) -> None:
    root = makers.make_v30(tmp_path / "in")
    path, column = makers.v3_episodes(root), f"videos/{TOP}/from_timestamp"

    def shift(table: Any) -> Any:
        return makers.with_column(table, column, table[column].to_numpy() + 3e-5)

    makers.change_rows(path, shift)
    reencode_dataset(root, tmp_path / "out", AV1, executor=inline)
    new = pq.read_table(makers.v3_episodes(tmp_path / "out"), partitioning=None)
    assert new[column].to_pylist() == [0.0, 0.7, 0.0]
    old = pq.read_table(path, partitioning=None)
    assert new.drop_columns([column]).equals(old.drop_columns([column]))


def test_video_whose_episodes_were_mended_in_meta_is_done_again(
    tmp_path: Path, inline: Inline
) -> None:
    root = makers.make_v30(tmp_path / "in")
    path, column = makers.v3_episodes(root), f"videos/{TOP}/from_timestamp"

    def with_starts(*starts: float) -> None:
        makers.change_rows(path, lambda table: makers.with_column(table, column, starts))

    with_starts(0.0, 0.6, 0.0)
    broken = makers.v3_video(root, WRIST, 0)
    whole = broken.read_bytes()
    makers.as_lfs_pointer(broken)
    reencode_dataset(root, tmp_path / "out", H264, executor=inline)
    with_starts(0.0, 0.7, 0.0)
    broken.write_bytes(whole)
    inline.keys.clear()
    reencode_dataset(root, tmp_path / "out", H264, executor=inline)
    mended = makers.v3_video(root, TOP, 0)
    assert set(inline.keys) == {str(video.relative_to(root)) for video in (broken, mended)}
    new = pq.read_table(makers.v3_episodes(tmp_path / "out"), partitioning=None)
    assert new[column].to_pylist() == [0.0, 0.7, 0.0]


def test_same_input_gives_the_same_bytes(
    sources: dict[str, Path], encoded: dict[str, Path], tmp_path: Path, inline: Inline
) -> None:
    reencode_dataset(sources["v3.0"], tmp_path / "again", AV1, executor=inline)
    assert contents(tmp_path / "again") == contents(encoded["v3.0"])


def test_new_size_is_in_info_and_pictures(tmp_path: Path, inline: Inline) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    encoding = Encoding("h264", 2, preset="veryfast", size=(160, 32))
    report = reencode_dataset(root, tmp_path / "out", encoding, executor=inline)
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}
    feature = json.loads((tmp_path / "out/meta/info.json").read_text())["features"][TOP]
    assert feature["shape"] == [32, 160, 3]
    assert feature["video_info"]["video.width"] == 160
    with closing(reelseek.open_dataset(tmp_path / "out", output="numpy")) as dataset:
        assert dataset[3][dataset.cameras[0]].shape[-3:] == (3, 32, 160)
    assert all(file.psnr_db and file.psnr_db > 40 for file in report.files)


def test_copy_keeps_coded_frames_and_mends_the_container(tmp_path: Path, inline: Inline) -> None:
    root = makers.make_v21(tmp_path / "in")
    late = makers.v2_video(root, TOP, 0)
    late.write_bytes(starts_late(7))
    report = reencode_dataset(root, tmp_path / "out", None, executor=inline)
    assert [file.note for file in report.files if file.note] == [
        "its first frame was at 1.500000 s: now at 0"
    ]
    with reelseek.open_video(tmp_path / "out" / late.relative_to(root)) as new:
        with reelseek.open_video(late) as old:
            assert np.array_equal(new.get_frames_in_range(0, 7).pixels,
                                  old.get_frames_in_range(0, 7).pixels)  # fmt: skip
        assert new.pts_seconds.tolist() == pytest.approx(np.arange(7) / 10)
    before, after = contents(root), contents(tmp_path / "out")
    assert {name for name in before if before[name] != after[name]} == {
        str(path.relative_to(root)) for path in videos_of(root)
    }


@pytest.mark.parametrize("kind", ["v2.1", "v3.0"])
@pytest.mark.parametrize("encoding", [H264, None], ids=["encoded", "copied"])
def test_restamped_dataset_has_its_rows_times(
    kind: str, encoding: Encoding | None, tmp_path: Path, inline: Inline
) -> None:
    root = KINDS[kind](tmp_path / "in")
    makers.change_info(root, lambda info: info.update(fps=12))
    report = reencode_dataset(root, tmp_path / "out", encoding, restamp=True, executor=inline)
    assert report.restamp and not report.failures
    for path in videos_of(tmp_path / "out"):
        with reelseek.open_video(path) as video:
            assert video.pts_seconds == pytest.approx(np.arange(len(video)) / 12)
    assert json.loads((tmp_path / "out/meta/reelseek/reencode.json").read_text())["restamp"]


@pytest.mark.parametrize("out", ["in", "in/out", "."])
def test_dataset_is_never_written_in_place(out: str, tmp_path: Path) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    with pytest.raises(OutputError, match="beside the dataset"):
        reencode_dataset(root, tmp_path / out, AV1)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_folder_that_exists_is_refused(sources: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match="exists already"):
        reencode_dataset(sources["gr00t"], tmp_path / "out", AV1)


def test_full_disk_is_refused_before_the_work(
    sources: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1000))
    with pytest.raises(OutputError, match=r"the disk has 1,000 bytes left, and .* takes about"):
        reencode_dataset(sources["gr00t"], tmp_path / "out", AV1)
    assert not videos_of(tmp_path)


def test_estimate_may_be_twice_too_high(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1000))
    check_room(tmp_path, 2000)
    with pytest.raises(OutputError, match=r"takes about 2,001 more"):
        check_room(tmp_path, 2001)


def test_few_frames_are_no_measure_of_a_long_gops_key_frames() -> None:
    seen = _sample._Seen(num_keys=1, key_bytes=1000, num_others=47, other_bytes=4700)
    assert seen.estimate(480, num_keys=4) == 4 * 1000 + 476 * 100 + 480 * _sample.BYTES_OF_TABLES


def test_video_below_the_floor_is_an_error_that_says_what_to_do(
    sources: dict[str, Path], tmp_path: Path, inline: Inline
) -> None:
    out = tmp_path / "out"
    with pytest.raises(QualityError, match=r"its PSNR is .* dB .* floor is 101 dB") as caught:
        reencode_dataset(sources["gr00t"], out, H264, min_psnr_db=101, executor=inline)
    assert "--crf 17" in caught.value.remedy and "episode_00000" in str(caught.value.path)
    assert not out.exists()
    reencode_dataset(sources["gr00t"], out, H264, executor=inline)
    assert len(inline.keys) == len(set(inline.keys))  # none was encoded twice


def test_damaged_video_is_listed_and_the_rest_kept(tmp_path: Path, inline: Inline) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    video = makers.v2_video(root, TOP, 2)
    whole = video.read_bytes()
    makers.as_lfs_pointer(video)
    report = reencode_dataset(root, tmp_path / "out", H264, executor=inline)
    (failure,) = report.failures
    assert failure.key == str(video.relative_to(root)) and "git lfs pull" in failure.message
    assert not (tmp_path / "out").exists()
    video.write_bytes(whole)
    inline.keys.clear()
    assert not reencode_dataset(root, tmp_path / "out", H264, executor=inline).failures
    assert inline.keys == [failure.key]


def test_missing_video_is_an_error_before_the_work(tmp_path: Path) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    makers.v2_video(root, TOP, 2).unlink()
    with pytest.raises(DatasetNotFoundError, match="a video of episode 2 is missing"):
        reencode_dataset(root, tmp_path / "out", H264)


def test_links_out_of_the_dataset_are_followed_only_when_asked(
    tmp_path: Path, inline: Inline
) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    (tmp_path / "blob").write_text("elsewhere")
    (root / "meta/notes.txt").symlink_to(tmp_path / "blob")
    (root / "loop").symlink_to(root)
    with pytest.raises(UnsafePathError, match="leads out of the dataset"):
        reencode_dataset(root, tmp_path / "out", H264)
    out = tmp_path / "out"
    reencode_dataset(root, out, H264, executor=inline, follow_links=True)
    assert (out / "meta/notes.txt").read_text() == "elsewhere"
    assert not (out / "meta/notes.txt").is_symlink()
    assert not (out / "loop").exists()


def test_index_and_tools_folders_are_not_copied(tmp_path: Path, inline: Inline) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    for name in (".git/config", ".cache/huggingface/x", "meta/reelseek/old.bin"):
        makers.write_json(root / name, {})
    makers.write_json(root / ".gitattributes", {})
    reencode_dataset(root, tmp_path / "out", H264, executor=inline)
    places = (tmp_path / "out", tmp_path / "out/meta/reelseek")
    names = {path.name for place in places for path in place.iterdir()}
    assert names == {
        "data",
        "meta",
        "videos",
        ".gitattributes",
        "index.bin",
        "reencode.json",
    }


def test_unfinished_copy_of_other_settings_is_not_gone_on_with(
    tmp_path: Path, inline: Inline
) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    makers.as_lfs_pointer(makers.v2_video(root, TOP, 2))
    reencode_dataset(root, tmp_path / "out", H264, executor=inline)
    with pytest.raises(OutputError, match="--codec h264 --gop 12") as caught:
        reencode_dataset(root, tmp_path / "out", AV1, executor=inline)
    assert f"rm -r {tmp_path}/out.partial" in caught.value.remedy


def test_what_a_former_run_left_does_not_get_into_the_dataset(
    tmp_path: Path, inline: Inline
) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    for name in ("dataset/meta/stray.json", "work/0123.mp4", "dataset/data/x/.tmp"):
        makers.write_json(tmp_path / "out.partial" / name, {})
    (tmp_path / "out.partial/lock").touch()
    reencode_dataset(root, tmp_path / "out", H264, executor=inline)
    assert {path.name for path in (tmp_path / "out").rglob("*")}.isdisjoint(
        {"stray.json", "0123.mp4", ".tmp"}
    )


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "work/thesis.tex", "dataset/meta/info.json", "README.txt", "settings.json"],
)
def test_folder_of_somebody_else_is_left_alone(name: str, tmp_path: Path) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    makers.write_json(tmp_path / "out.partial" / name, {})
    with pytest.raises(OutputError, match="no unfinished copy of a dataset"):
        reencode_dataset(root, tmp_path / "out", H264)
    assert [path.name for path in (tmp_path / "out.partial").rglob("*") if path.is_file()] == [
        name.rpartition("/")[2]
    ]


def test_what_another_run_is_writing_is_left_alone(tmp_path: Path, inline: Inline) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    makers.as_lfs_pointer(makers.v2_video(root, TOP, 2))
    reencode_dataset(root, tmp_path / "out", H264, executor=inline)
    unfinished = tmp_path / "out.partial/work/0123.mp4"
    unfinished.touch()
    with pytest.raises(OutputError, match="begun otherwise"):
        reencode_dataset(root, tmp_path / "out", AV1)
    assert unfinished.exists()


def test_report_of_another_command_is_not_returned(
    sources: dict[str, Path], tmp_path: Path, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Partial, "_delete", lambda _self: None)  # as if it were killed there
        reencode_dataset(sources["gr00t"], out, H264, executor=inline)
    with pytest.raises(OutputError, match="exists already"):
        reencode_dataset(sources["gr00t"], out, None, executor=inline)
    assert reencode_dataset(sources["gr00t"], out, H264).encoding == H264
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_file_that_replaced_a_proven_one_is_not_published(
    sources: dict[str, Path], tmp_path: Path, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late_writer(run: _Run) -> None:
        video = videos_of(run.partial.dataset)[0]
        video.write_bytes(video.read_bytes()[:-1] + b"x")  # of the same size

    monkeypatch.setattr(_Run, "_write_meta", late_writer)
    with pytest.raises(ReelseekError, match="isn't there any more as it was"):
        reencode_dataset(sources["gr00t"], tmp_path / "out", None, executor=inline)
    assert not (tmp_path / "out").exists()


def test_place_where_nothing_can_be_written_is_named(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"out\.partial: it can't be .* \(Not a directory\)"):
        reencode_dataset(sources["gr00t"], tmp_path / "file/out", H264)


def test_source_that_no_reader_takes_is_encoded_all_the_same(
    tmp_path: Path, inline: Inline
) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    for video in videos_of(root):
        video.write_bytes(clip_path("two_sizes.webm").read_bytes())
    encoding = Encoding("h264", 2, preset="veryfast", size=(64, 64))
    report = reencode_dataset(root, tmp_path / "out", encoding, executor=inline)
    assert not report.failures and (tmp_path / "out").is_dir()
    assert (report.seek_ms_before, report.seek_ms_after) == (None, None)


def test_json_files_take_names_that_are_no_utf8(tmp_path: Path) -> None:
    document = {"root": os.fsdecode(b"in\xff"), "task": "\u62ff\u8d77"}
    write_json(tmp_path / "a.json", document, tmp_path)
    assert json.loads((tmp_path / "a.json").read_bytes()) == document


def test_remedy_for_the_best_crf_is_another_preset(
    sources: dict[str, Path], tmp_path: Path, inline: Inline
) -> None:
    best = Encoding("h264", 12, 0, "ultrafast")
    with pytest.raises(QualityError) as caught:
        reencode_dataset(sources["gr00t"], tmp_path / "out", best, min_psnr_db=101, executor=inline)
    assert "--crf" not in caught.value.remedy and "--min-psnr" in caught.value.remedy


@pytest.mark.parametrize("name", ["is_depth_map", "video.is_depth_map"])
def test_depth_maps_are_encoded_only_when_asked(name: str, tmp_path: Path, inline: Inline) -> None:
    root = makers.make_v21(tmp_path / "in")
    makers.change_info(root, lambda info: info["features"][TOP]["info"].update({name: True}))
    with pytest.raises(DatasetError, match=f"{TOP} are depth maps"):
        reencode_dataset(root, tmp_path / "out", H264)
    reencode_dataset(root, tmp_path / "copied", None, executor=inline)
    assert not reencode_dataset(
        root, tmp_path / "out", H264, depth_maps=True, executor=inline
    ).failures


def test_odd_size_is_named_with_what_to_do(tmp_path: Path, inline: Inline) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    makers.v2_video(root, TOP, 0).write_bytes(clip_path("odd_size_420.mp4").read_bytes())
    report = reencode_dataset(root, tmp_path / "out", Encoding("h264", size=None), executor=inline)
    assert "takes even sizes only. Choose a size by --size" in report.failures[0].message


def test_no_video_that_is_no_mp4_is_written(tmp_path: Path) -> None:
    root = makers.make_gr00t(tmp_path / "in")
    makers.change_info(root, lambda info: info.update(
        video_path=info["video_path"].replace(".mp4", ".mkv")))  # fmt: skip
    for path in videos_of(root):
        path.rename(path.with_suffix(".mkv"))
    with pytest.raises(OutputError, match=r"names them \.mkv"):
        reencode_dataset(root, tmp_path / "out", AV1)


@pytest.mark.parametrize("kind", KINDS)
def test_verify_finds_nothing_new(
    kind: str, sources: dict[str, Path], encoded: dict[str, Path]
) -> None:
    before, after = (
        {(one.code, one.camera) for one in verify_dataset(root, level="decode").findings}
        for root in (sources[kind], encoded[kind])
    )
    assert after <= before
