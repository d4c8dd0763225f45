"""A sound dataset made bad in just one way: found under its code, and nothing else is reported."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

from reelseek.care.verify import CODES, Severity, verify_dataset
from tests import surgery
from tests.care.verify.conftest import (
    LAST,
    MIDDLE,
    SPEC,
    Tiny,
    bars,
    bars_again,
    on_grid,
    sound_video,
)
from tests.corpus import clip_path
from tests.datasets import makers
from tests.datasets.makers import HEIGHT, TOP, WIDTH, WRIST, pictures_video

Damage = Callable[[Tiny], Any]
Level = Literal["quick", "decode"]
CASES: list[tuple[tuple[str, ...], Level, Damage]] = []
SETS, TICKS = "mixed-parameter-sets", "mixed-time-base"


def case(code: str, level: Level = "quick", notes: tuple[str, ...] = ()) -> Callable[..., Damage]:
    """Register a way to damage a dataset, and what has to be found at which level.

    Args:
        code: What it is.
        level: Where it shows.
        notes: What is noted of the file beside it: H.264's parameter sets hold the ticks, too.
    """

    def register(damage: Damage) -> Damage:
        CASES.append(((code, *notes), level, damage))
        return damage

    return register


# Files


@case("video-missing")
def no_video(tiny: Tiny) -> None:
    tiny.video().unlink()


@case("video-empty")
def empty_video(tiny: Tiny) -> None:
    tiny.write_video(b"")


@case("video-lfs-pointer")
def pointer_to_video(tiny: Tiny) -> None:
    makers.as_lfs_pointer(tiny.video())


@case("video-truncated")
def video_without_its_end(tiny: Tiny) -> None:
    makers.as_cut(tiny.video(), 0.6)


@case("video-truncated", notes=(SETS, TICKS))
def video_with_moov_in_front_without_its_end(tiny: Tiny) -> None:
    shutil.copy(clip_path("cut_moov_in_front.mp4"), tiny.video())


@case("video-corrupt", "decode")
def noise_in_the_media_data(tiny: Tiny) -> None:
    numbers = np.random.default_rng(0)
    pictures = [numbers.integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8) for _ in range(12)]
    data = bytearray(pictures_video(pictures, on_grid(12)))
    middle = len(data) // 2
    data[middle : middle + 300] = numbers.bytes(300)
    tiny.write_video(bytes(data))


@case("video-corrupt", "decode")
def av1_with_a_zeroed_part(tiny: Tiny) -> None:
    for camera, episode in itertools.product((TOP, WRIST), range(LAST + 1)):
        tiny.video(camera, episode).write_bytes(bars_again(tiny, camera, episode, "libsvtav1"))
        feature_says(camera, info={"video.codec": "av1"})(tiny)
    data = bytearray(tiny.video().read_bytes())
    start = data.index(b"mdat") + 4
    end = int.from_bytes(data[start - 8 : start - 4], "big") + start - 8
    data[(start + end) // 2 : end] = bytes(end - (start + end) // 2)
    tiny.write_video(bytes(data))


@case("video-no-video")
def text_for_a_video(tiny: Tiny) -> None:
    tiny.write_video(b"<html>404: not found</html>\n")


@case("video-no-video")
def sound_alone(tiny: Tiny) -> None:
    shutil.copy(clip_path("sound_only.mp4"), tiny.video())


@case("video-unreadable")
def video_turned_by_a_crooked_angle(tiny: Tiny) -> None:
    tiny.write_video(surgery.with_crooked_track(sound_video(12)))


@case("camera-without-files")
def no_video_of_a_camera(tiny: Tiny) -> None:
    for path in tiny.root.rglob(f"*{WRIST}*"):
        if path.is_dir():
            shutil.rmtree(path)


@case("parquet-missing")
def no_parquet(tiny: Tiny) -> None:
    tiny.data().unlink()


@case("parquet-empty")
def empty_parquet(tiny: Tiny) -> None:
    tiny.data().write_bytes(b"")


@case("parquet-lfs-pointer")
def pointer_to_parquet(tiny: Tiny) -> None:
    makers.as_lfs_pointer(tiny.data())


@case("parquet-unreadable")
def parquet_without_its_end(tiny: Tiny) -> None:
    makers.as_cut(tiny.data())


@case("meta-missing")
def no_tasks(tiny: Tiny) -> None:
    tiny.tasks.unlink()


@case("meta-lfs-pointer")
def pointer_to_info(tiny: Tiny) -> None:
    makers.as_lfs_pointer(tiny.root / "meta/info.json")


@case("meta-unreadable")
def episodes_without_their_end(tiny: Tiny) -> None:
    makers.as_cut(tiny.episodes, 0.65)


@case("meta-unreadable")
def broken_stats(tiny: Tiny) -> None:
    (tiny.root / "meta/stats.json").write_text('{"action": {"mean": [0.5')


@case("meta-unreadable")
def template_that_leaves_the_dataset(tiny: Tiny) -> None:
    tiny.change_info(lambda about: about.update(data_path="../{episode_index}{file_index}.parquet"))


@case("file-unused")
def leftover_video(tiny: Tiny) -> None:
    shutil.copy(tiny.video(), tiny.video().with_name("episode_000099.mp4"))


@case("file-unused")
def leftover_parquet(tiny: Tiny) -> None:
    shutil.copy(tiny.data(), tiny.data().with_name("old.parquet"))


@case("video-missing")
def link_to_nothing(tiny: Tiny) -> None:
    tiny.video().unlink()
    tiny.video().symlink_to(tiny.root / "elsewhere.mp4")


@case("parquet-missing")
def link_to_itself(tiny: Tiny) -> None:
    tiny.data().unlink()
    tiny.data().symlink_to(tiny.data())


# Frames against rows


@case("frames-one-missing")
def one_frame_too_few(tiny: Tiny) -> None:
    tiny.write_video(sound_video(11))


@case("frames-missing")
def three_frames_too_few(tiny: Tiny) -> None:
    tiny.write_video(sound_video(9))
    tiny.change_episode(**{f"videos/{TOP}/to_timestamp": 0.9})


@case("frames-extra")
def frames_of_the_take_before(tiny: Tiny) -> None:
    tiny.write_video(sound_video(15))


# Times


@case("fps-ntsc")
def rate_of_ntsc(tiny: Tiny) -> None:
    tiny.write_video(pictures_video(bars(12), on_grid(12, 10_000 / 1001)))


@case("fps-wrong")
def half_the_rate(tiny: Tiny) -> None:
    tiny.write_video(pictures_video(bars(12), on_grid(12, 5)))


@case("times-drift")
def slow_clock(tiny: Tiny) -> None:
    tiny.write_video(pictures_video(bars(12), on_grid(12, 9.96)))


@case("times-dropped-frames")
def frames_dropped(tiny: Tiny) -> None:
    kept = [0, 1, 2, 3, 5, 6, 9, 10, 11]
    pictures = [makers.picture(30 + number) for number in kept]
    tiny.write_video(pictures_video(pictures, [number / 10 for number in kept]))


@case("times-variable")
def uneven_frames(tiny: Tiny) -> None:
    off = np.random.default_rng(1).uniform(-0.02, 0.02, 12) * (np.arange(12) % 11 > 0)
    tiny.write_video(pictures_video(bars(12), (np.array(on_grid(12)) + off).tolist()))


@case("times-not-increasing")
def two_frames_at_one_time(tiny: Tiny) -> None:
    tiny.write_video(with_one_time_twice(sound_video(12)))


@case("times-absent", notes=(SETS, TICKS))
def stream_without_times(tiny: Tiny) -> None:
    tiny.write_video(as_raw_stream(sound_video(12)))


@case("times-coarse", notes=(SETS, TICKS))
def coarse_clock(tiny: Tiny) -> None:
    tiny.write_video(pictures_video(bars(12), on_grid(12), ticks=64))


@case("camera-offset")
def camera_that_starts_late(tiny: Tiny) -> None:
    tiny.write_video(pictures_video(bars(12), on_grid(12, start=0.05)))


@case("rows-off-grid")
def jump_in_the_rows_times(tiny: Tiny) -> None:
    tiny.change_column("timestamp", lambda times: np.where(np.arange(12) > 8, times + 0.05, times))


@case("rows-off-grid")
def rows_at_another_rate(tiny: Tiny) -> None:
    tiny.change_column("timestamp", lambda times: times * 1.001)


@case("rows-start-late")
def rows_that_start_late(tiny: Tiny) -> None:
    tiny.change_column("timestamp", lambda times: times + 0.1)


# Pictures


@case("frames-frozen", "decode")
def camera_that_hung(tiny: Tiny) -> None:
    tiny.write_video(pictures_video([makers.picture(30)] + [makers.picture(31)] * 11, on_grid(12)))


@case("frames-repeated", "decode")
def camera_at_half_the_rate(tiny: Tiny) -> None:
    pictures = [makers.picture(30 + number // 2) for number in range(12)]
    tiny.write_video(pictures_video(pictures, on_grid(12), options={"g": "2"}))


@case("frames-black", "decode")
def camera_that_was_off(tiny: Tiny) -> None:
    black = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    tiny.write_video(pictures_video([makers.picture(30)] + [black] * 11, on_grid(12)))


# Streams of one camera


@case("mixed-size")
def other_size(tiny: Tiny) -> None:
    small = [np.ascontiguousarray(picture[:, :160]) for picture in bars(12)]
    tiny.write_video(pictures_video(small, on_grid(12)))


@case("mixed-codec")
def other_codec(tiny: Tiny) -> None:
    tiny.write_video(pictures_video(bars(12), on_grid(12), codec="libsvtav1"))


@case("mixed-pixel-format")
def other_pixel_format(tiny: Tiny) -> None:
    tiny.write_video(pictures_video(bars(12), on_grid(12), pixel_format="yuv444p"))


@case("mixed-time-base", notes=(SETS,))
def other_clock(tiny: Tiny) -> None:
    tiny.write_video(pictures_video(bars(12), on_grid(12), ticks=20_000))


@case("mixed-parameter-sets")
def other_parameter_sets(tiny: Tiny) -> None:
    tiny.write_video(
        pictures_video(bars(12), on_grid(12), options={"profile": "main", "refs": "4"})
    )


@case("open-gop", notes=(SETS,))
def open_groups_of_pictures(tiny: Tiny) -> None:
    options = {"g": "4", "bf": "2", "x264-params": "open-gop=1"}
    tiny.write_video(pictures_video(bars(12), on_grid(12), options=options))


# info.json against the files


def says(**values: Any) -> Damage:
    """Let info.json say something else."""
    return lambda tiny: tiny.change_info(lambda about: about.update(values))


def camera_says(name: str, value: Any) -> Damage:
    """Let info.json say something else of a camera's video."""
    return lambda tiny: tiny.change_info(
        lambda about: about["features"][TOP]["info"].update({name: value})
    )


def feature_says(feature: str, **values: Any) -> Damage:
    """Let info.json say something else of a feature."""
    return lambda tiny: tiny.change_info(lambda about: about["features"][feature].update(values))


case("info-total-episodes")(says(total_episodes=4))
case("info-total-frames")(says(total_frames=53))
case("info-total-tasks")(says(total_tasks=3))
case("info-total-videos")(says(total_videos=7))
case("info-splits")(says(splits={"train": "0:3", "test": "3:9"}))
case("info-fps")(camera_says("video.fps", 30))
case("info-codec")(camera_says("video.codec", "av1"))
case("info-pixel-format")(camera_says("video.pix_fmt", "yuv444p"))
case("info-shape")(feature_says(TOP, shape=[480, 640, 3]))
case("info-shape")(feature_says("action", shape=[7]))
case("info-shape")(feature_says(TOP, shape=[WIDTH, HEIGHT, 3]))
case("info-shape")(feature_says(TOP, shape=[3, 480, 640], names=None))
case("info-dtype")(feature_says("action", dtype="int64"))


@case("column-missing")
def column_left_out(tiny: Tiny) -> None:
    makers.change_rows(tiny.data(), lambda table: table.drop_columns(["next.reward"]))


@case("column-unlisted")
def column_not_listed(tiny: Tiny) -> None:
    tiny.change_info(lambda about: about["features"].pop("next.reward"))


# GR00T's modality.json


def modality_says(**values: Any) -> Damage:
    """Give the dataset a modality file, in which all but these values are right."""
    right: dict[str, Any] = {
        "state": {"arm": {"start": 0, "end": 4}},
        "action": {"reward": {"start": 0, "end": 1, "original_key": "next.reward"}},
        "video": {"ego": {"original_key": TOP}, "wrist": {}, TOP: {}},
        "annotation": {"task": {"original_key": "task_index"}},
    }
    return lambda tiny: makers.write_json(tiny.root / "meta/modality.json", {**right, **values})


case("modality-slice")(modality_says(state={"arm": {"start": 3, "end": 5}}))
case("modality-slice")(
    modality_says(action={"all": {"start": 0, "end": 2, "original_key": "next.reward"}})
)
case("modality-column")(
    modality_says(state={"arm": {"start": 0, "end": 1, "original_key": "states"}})
)
case("modality-column")(modality_says(annotation={"human.validity": {}}))
case("modality-camera")(modality_says(video={"ego": {"original_key": "observation.images.tip"}}))
case("modality-task")(modality_says(annotation={"note": {"original_key": "frame_index"}}))


# Episodes, rows and tasks


@case("episode-duplicate")
def episode_listed_twice(tiny: Tiny) -> None:
    if tiny.is_v3:
        shutil.copy(tiny.episodes, tiny.episodes.with_name("file-002.parquet"))
    else:
        lines = makers.read_lines(tiny.episodes)
        makers.write_lines(tiny.episodes, [*lines, lines[-1]])


def number_left_out(tiny: Tiny) -> None:
    tiny.change_column("episode_index", lambda numbers: numbers + 2)
    paths = [] if tiny.is_v3 else [tiny.data(), tiny.video(TOP), tiny.video(WRIST)]
    for path in paths:
        path.rename(path.with_name(path.name.replace(f"{LAST}.", "6.")))
    tiny.change_episode(episode_index=6)


@case("rows-length")
def length_in_meta_is_wrong(tiny: Tiny) -> None:
    tiny.change_episode(length=13, dataset_to_index=SPEC.starts[tiny.episode] + 13)


@case("rows-length")
def last_row_lost(tiny: Tiny) -> None:
    tiny.drop_row(-1)


@case("episode-index")
def rows_of_another_episode(tiny: Tiny) -> None:
    tiny.change_column("episode_index", lambda numbers: numbers * 0 + 9)


@case("frame-index")
def frames_counted_from_one(tiny: Tiny) -> None:
    tiny.change_column("frame_index", lambda numbers: numbers + 1)


@case("row-index")
def rows_counted_anew(tiny: Tiny) -> None:
    tiny.change_column("index", lambda numbers: numbers - numbers[0])


@case("task-unknown")
def task_that_is_not_there(tiny: Tiny) -> None:
    tiny.change_column("task_index", lambda numbers: numbers * 0 + 7)


@case("task-duplicate")
def task_listed_twice(tiny: Tiny) -> None:
    tiny.write_tasks([0, 1, 2], [*makers.TASKS, makers.TASKS[1]])
    tiny.change_info(lambda about: about.update(total_tasks=3))


@case("task-gap")
def task_number_left_out(tiny: Tiny) -> None:
    tiny.write_tasks([0, 1, 5], [*makers.TASKS, "wave"])
    tiny.change_info(lambda about: about.update(total_tasks=3))


@case("episode-tasks")
def task_of_another_episode(tiny: Tiny) -> None:
    tiny.change_column("task_index", lambda numbers: 1 - numbers)


@case("value-not-finite")
def nan_in_the_actions(tiny: Tiny) -> None:
    tiny.change_column("action", lambda values: np.where(np.arange(24).reshape(12, 2) == 7, np.nan,
                                                         values))  # fmt: skip


@case("value-not-finite")
def nan_in_an_index_of_floats(tiny: Tiny) -> None:
    def emptied(table: Any) -> Any:
        values = np.array(table["index"].to_pylist(), np.float64)
        values[tiny.rows.start] = np.nan
        return makers.with_column(table, "index", pa.array(values))

    makers.change_rows(tiny.data(), emptied)
    tiny.change_info(lambda about: about["features"]["index"].update(dtype="float64"))
    rest = [tiny.data(number) for number in range(LAST + 1)]
    for path in {*rest} - {tiny.data()}:
        makers.change_rows(path, with_index_of_floats)


def with_index_of_floats(table: Any) -> Any:
    return makers.with_column(table, "index", table["index"].cast(pa.float64()).combine_chunks())


@case("value-missing")
def empty_cells(tiny: Tiny) -> None:
    def emptied(values: Any) -> Any:
        return np.array([None, *values[1:].tolist()], object)

    tiny.change_column("next.reward", emptied)


@case("value-missing")
def empty_episode_index(tiny: Tiny) -> None:
    tiny.change_column("episode_index", lambda numbers: np.array([None, *numbers[1:]], object))


@case("value-constant")
def constant_number(tiny: Tiny) -> None:
    for episode in range(LAST + 1):
        path = tiny.data(episode)
        makers.change_rows(
            path,
            lambda table: makers.with_column(
                table, "next.reward", np.zeros(table.num_rows, np.float32).tolist()
            ).cast(table.schema),
        )


def name_of(value: Any) -> str:
    """A test's name."""
    text = value[0] if isinstance(value, tuple) else getattr(value, "__name__", str(value))
    return str(text).strip("<>")


@pytest.mark.parametrize(
    ("tiny", "episode"), [("v2.1", MIDDLE), ("v3.0", MIDDLE), ("v3.0", LAST)], indirect=["tiny"]
)
@pytest.mark.parametrize(("codes", "level", "damage"), CASES, ids=name_of)
def test_damage_is_found_and_nothing_else(
    tiny: Tiny, codes: tuple[str, ...], level: Level, damage: Damage, episode: int
) -> None:
    damage(dataclasses.replace(tiny, episode=episode))
    report = verify_dataset(tiny.root, level=level)
    assert {finding.code for finding in report.findings} == {*codes}, report.findings
    assert report.is_sound is all(CODES[code].severity is not Severity.ERROR for code in codes)


def test_number_of_an_episode_left_out(tiny: Tiny) -> None:
    number_left_out(tiny)
    assert [finding.code for finding in verify_dataset(tiny.root).findings] == ["episode-gap"]


def test_sound_modality_file_has_no_finding(tiny: Tiny) -> None:
    modality_says()(tiny)
    assert verify_dataset(tiny.root).findings == ()


@pytest.mark.parametrize("level", ["quick", "decode"])
def test_sound_dataset_has_no_finding(tiny: Tiny, level: Literal["quick", "decode"]) -> None:
    report = verify_dataset(tiny.root, level=level)
    assert report.findings == ()
    assert (report.num_episodes, report.num_frames) == (5, 2 * sum(SPEC.lengths))


def test_each_finding_has_a_case() -> None:
    elsewhere = {"check-failed", "camera-unused", "window-past-end", "window-overlap",
                 "window-off-frame", "episode-gap"}  # fmt: skip
    assert (
        set().union(*(set(codes) for codes, _level, _damage in CASES)) == CODES.keys() - elsewhere
    )


def with_one_time_twice(data: bytes) -> bytes:
    """The packets of a video without B-frames, the sixth at the seventh's time."""
    import io

    import av

    out = io.BytesIO()
    with (
        av.open(io.BytesIO(data)) as source,
        av.open(out, "w", format="mp4", options={"video_track_timescale": "10000"}) as sink,
    ):
        stream = sink.add_stream_from_template(source.streams.video[0])
        for number, packet in enumerate(source.demux(video=0)):
            if packet.size:
                packet.stream = stream
                if number == 5 and packet.pts is not None:
                    packet.pts += 1000
                sink.mux(packet)
    return out.getvalue()


def as_raw_stream(data: bytes) -> bytes:
    """A video's packets as a raw H.264 stream."""
    import io

    import av
    from av.bitstream import BitStreamFilterContext

    with av.open(io.BytesIO(data)) as source:
        stream = source.streams.video[0]
        change = BitStreamFilterContext("h264_mp4toannexb", stream)
        packets = [out for packet in source.demux(stream) for out in change.filter(packet)]
        return b"".join(bytes(packet) for packet in packets)
