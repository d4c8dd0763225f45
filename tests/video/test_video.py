"""The reader of one video, whatever backend decodes."""

from __future__ import annotations

import concurrent.futures
import gc
import multiprocessing
import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import reelseek
from reelseek import Video
from reelseek.errors import (
    ChangedVideoError,
    ClosedVideoError,
    CorruptVideoError,
    FrameIndexError,
    TimeRangeError,
    VideoError,
)
from tests import corpus, oracle
from tests.patience import PATIENCE

BACKENDS = ["pyav", "torchcodec"]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def video(backend: str) -> Iterator[Video]:
    with _open("b_frames.mp4", backend) as opened:
        yield opened


def _open(clip: str, backend: str) -> Video:
    return reelseek.open_video(corpus.clip_path(clip), backend=backend)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _shown(video: Video, frames: list[int]) -> list[int]:
    return [corpus.number_shown(frame) for frame in video.get_frames_at(frames).numpy()]


# Frames by number.


def test_negative_number_counts_from_the_end(video: Video) -> None:
    assert _shown(video, [-1, -120, -17]) == [119, 0, 103]
    assert video[-1].index == 119


@pytest.mark.parametrize("number", [120, -121, 10**30])
def test_number_out_of_range_says_the_range(video: Video, number: int) -> None:
    with pytest.raises(FrameIndexError, match="0 to 119, or -120 to -1") as caught:
        video[number]
    assert caught.value.frame == number


def test_integers_of_numpy_are_numbers(video: Video) -> None:
    numbers: Any = [np.int64(3), np.uint8(110)]
    assert _shown(video, numbers) == [3, 110]
    batch = video.get_frames_at(np.array([5, -1]))
    assert batch.indices.tolist() == [5, 119]


@pytest.mark.parametrize("number", [1.0, float("nan"), "1", None])
def test_what_is_no_integer_is_no_number(video: Video, number: Any) -> None:
    with pytest.raises(FrameIndexError, match="no frame number"):
        video[number]


def test_frames_come_in_the_order_asked_for_with_repeats(video: Video) -> None:
    order = [7, 100, 7, 0, 119, 100]
    batch = video.get_frames_at(order)
    assert batch.indices.tolist() == order
    assert [corpus.number_shown(frame) for frame in batch.numpy()] == order


def test_no_numbers_give_no_frames(video: Video) -> None:
    batch = video.get_frames_at([])
    assert batch.numpy().shape == (0, 64, 320, 3)
    assert len(batch) == 0


def test_range_counts_as_slices_do(video: Video) -> None:
    assert video.get_frames_in_range(115, 500, 2).indices.tolist() == [115, 117, 119]
    assert video.get_frames_in_range(-3, 120).indices.tolist() == [117, 118, 119]
    assert video.get_frames_in_range(5, 2, -1).indices.tolist() == [5, 4, 3]


def test_iteration_gives_every_frame() -> None:
    with _open("one_frame.mp4", "pyav") as video:
        assert [frame.index for frame in video] == [0]


def test_frame_after_dropped_frame_keeps_its_number(backend: str) -> None:
    with _open("dropped.mp4", backend) as video:
        assert _shown(video, [4, 5, 22]) == [corpus.DROPPED[n] for n in (4, 5, 22)]


# Frames by time.


@pytest.mark.parametrize(
    "clip", ["ntsc.mp4", "variable_rate.mp4", "starts_late.mp4", "matroska.mkv"]
)
def test_exact_time_of_a_frame_gives_that_frame(clip: str) -> None:
    with _open(clip, "pyav") as video:
        everything = np.arange(len(video))
        times = video.table.pts_seconds()
        assert np.array_equal(video.indices_played_at(times), everything)
        assert np.array_equal(video.indices_nearest(times), everything)


def test_frame_is_on_display_until_the_next(video: Video) -> None:
    third, fourth = video.table.pts_seconds()[3:5]
    assert video.get_frame_played_at(np.nextafter(fourth, 0)).index == 3
    assert video.get_frame_played_at((third + fourth) / 2).index == 3
    assert video.get_frame_played_at(fourth).index == 4


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -0.001, 4.0, 1e300])
def test_time_without_a_frame_is_refused(video: Video, seconds: float) -> None:
    with pytest.raises(TimeRangeError, match=r"from 0\.000000 s to before 4\.000000 s"):
        video.get_frame_played_at(seconds)


def test_last_frame_is_on_display_up_to_the_end(video: Video) -> None:
    assert video.get_frame_played_at(np.nextafter(4.0, 0)).index == 119


def test_nearest_takes_the_earlier_of_two_that_are_equally_near(video: Video) -> None:
    times = video.table.pts_seconds()
    half = (times[10] + times[11]) / 2
    assert video.indices_nearest([half - 1e-6, half + 1e-6, -5, 99]).tolist() == [10, 11, 0, 119]
    with _open("matroska.mkv", "pyav") as rounded:
        assert rounded.indices_nearest([0.0165]).tolist() == [0]


@pytest.mark.parametrize("seconds", [float("nan"), float("-inf")])
def test_nearest_to_no_time_is_refused(video: Video, seconds: float) -> None:
    with pytest.raises(TimeRangeError):
        video.indices_nearest([0.0, seconds])


def test_single_frame_is_nearest_to_every_time() -> None:
    with _open("one_frame.mp4", "pyav") as video:
        assert video.indices_nearest([-5.0, 0.0, 7.0]).tolist() == [0, 0, 0]


def test_file_without_timestamps_has_numbers_and_no_times() -> None:
    with _open("no_timestamps.h264", "pyav") as video:
        assert np.isnan(video[9].pts_seconds)
        with pytest.raises(TimeRangeError, match="no times of their own"):
            video.get_frame_played_at(0.0)


def test_batch_carries_times_and_durations(video: Video) -> None:
    batch = video.get_frames_at([30, 0])
    assert batch.pts_seconds.tolist() == [1.0, 0.0]
    assert batch.duration_seconds.tolist() == pytest.approx([1 / 30] * 2)


# Memory.


def test_numpy_and_torch_share_the_memory(video: Video) -> None:
    batch = video.get_frames_at([3, 60])
    pixels, tensor = batch.numpy(), batch.torch()
    assert pixels.shape == (2, 64, 320, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    assert tuple(tensor.shape) == (2, 3, 64, 320)
    assert tuple(batch[0].torch().shape) == (3, 64, 320)
    pixels[1, 5, 7, 2] = 99
    assert int(tensor[1, 2, 5, 7]) == 99


def test_frames_are_written_to_out(video: Video) -> None:
    out = np.zeros((2, 64, 320, 3), np.uint8)
    batch = video.get_frames_at([3, 60], out=out)
    assert batch.numpy() is out
    assert [corpus.number_shown(frame) for frame in out] == [3, 60]


def test_frames_are_written_to_an_out_that_is_a_view(video: Video) -> None:
    memory = np.zeros((64, 2, 640, 3), np.uint8)
    out = memory.transpose(1, 0, 2, 3)[:, ::-1, ::2]
    video.get_frames_at([3, 60], out=out)
    assert [corpus.number_shown(frame) for frame in out] == [3, 60]


@pytest.mark.parametrize("backend", ["pyav", "torchcodec", "opencv"], indirect=True)
@pytest.mark.parametrize(
    "out",
    [np.zeros((2, 64, 320, 3), np.float32), np.zeros((2, 320, 64, 3), np.uint8),
     np.zeros((3, 64, 320, 3), np.uint8), np.zeros((2, 64, 320, 1), np.uint8)],
)  # fmt: skip
def test_out_of_another_shape_or_type_is_refused(video: Video, out: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="go into"):
        video.get_frames_at([3, 60], out=out)
    assert _shown(video, [3]) == [3]


def test_frames_are_written_to_a_tensor(backend: str) -> None:
    import torch

    for name in (backend, "indexed"):
        with _open("b_frames.mp4", name) as video:
            out = torch.zeros((2, 64, 320, 3), dtype=torch.uint8)
            batch = video.get_frames_at([3, 60], out=out)
            assert batch.pixels is out
            assert [corpus.number_shown(frame) for frame in out.numpy()] == [3, 60]
            rows = [torch.zeros((64, 320, 3), dtype=torch.uint8), np.zeros((64, 320, 3), np.uint8)]
            assert video.read_into([4, 61], rows) == [4, 61]
            assert [corpus.number_shown(np.asarray(row)) for row in rows] == [4, 61]


def test_several_arrays_are_for_read_into(video: Video) -> None:
    rows: Any = [np.zeros((64, 320, 3), np.uint8)]
    with pytest.raises(TypeError, match="read_into takes several"):
        video.get_frames_at([3], out=rows)


@pytest.mark.parametrize("backend", ["indexed", "pyav", "torchcodec", "opencv"], indirect=True)
def test_file_that_another_takes_the_place_of_is_not_read(backend: str, tmp_path: Path) -> None:
    """Reading the one by the table of the other gave wrong frames."""
    path, other = tmp_path / "a.mp4", tmp_path / "b.mp4"
    path.write_bytes(corpus.clip_path("b_frames.mp4").read_bytes())
    other.write_bytes(corpus.clip_path("one_gop.mp4").read_bytes())
    with reelseek.open_video(path, backend=backend) as video:
        assert _shown(video, [3]) == [3]
        other.replace(path)
        assert _shown(video, [60]) == [60]  # it is still open
        again = video.reader_of_its_own()
        with pytest.raises(ChangedVideoError, match=r"a\.mp4, backend .* was changed"):
            again.get_frame_at(3)
    with reelseek.open_video(path, backend=backend) as video:
        assert _shown(video, [3]) == [3]


def test_earlier_batch_keeps_its_pixels(video: Video) -> None:
    first = video.get_frames_at([3, 60])
    video.get_frames_at([4, 61])
    assert [corpus.number_shown(frame) for frame in first.numpy()] == [3, 60]


# Life and death.


def test_closing_twice_is_allowed(video: Video) -> None:
    video.close()
    video.close()


def test_closed_video_says_so(video: Video) -> None:
    video.close()
    with pytest.raises(ClosedVideoError) as caught:
        video[0]
    assert caught.value.path == video.path
    assert len(video) == 120


def test_pickled_video_reads_the_same_with_the_same_backend(video: Video) -> None:
    again = pickle.loads(pickle.dumps(video))
    assert again.info.backend == video.info.backend
    assert _shown(again, [77]) == [77]


def test_open_and_close_leaves_no_descriptor(backend: str) -> None:
    path = corpus.clip_path("one_frame.mp4")
    reelseek.open_video(path, backend=backend).close()
    before = _descriptors()
    for _ in range(300):
        with reelseek.open_video(path, backend=backend) as video:
            video[0]
    gc.collect()
    assert _descriptors() <= before


def test_forgotten_video_gives_back_its_descriptor(backend: str) -> None:
    path = corpus.clip_path("one_frame.mp4")
    before = _descriptors()
    for _ in range(20):
        reelseek.open_video(path, backend=backend)[0]
    gc.collect()
    assert _descriptors() <= before


# Processes and threads.


def _answers_rightly(video: Video, frames: list[int]) -> bool:
    return all(_shown(video, [frame]) == [frame] for frame in frames)


def _child(video: Video, frames: list[int]) -> None:
    os._exit(0 if _answers_rightly(video, frames) else 1)


def test_video_opened_before_a_fork_reads_right_in_both_at_once(video: Video) -> None:
    assert _answers_rightly(video, [5])
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(target=_child, args=(video, list(range(start, 120, 3))))
        for start in range(3)
    ]
    for child in children:
        child.start()
    assert _answers_rightly(video, list(range(119, 0, -3)))
    for child in children:
        child.join(PATIENCE)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert _answers_rightly(video, [5, 64])


def test_video_opened_in_a_child_of_a_fork_reads_right(video: Video) -> None:
    def opens_its_own() -> None:
        with reelseek.open_video(video.path, backend=video.info.backend) as own:
            os._exit(0 if _answers_rightly(own, [9, 99]) else 1)

    child = multiprocessing.get_context("fork").Process(target=opens_its_own)
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == 0


def test_child_that_ends_normally_does_no_harm(video: Video) -> None:
    assert _answers_rightly(video, [5])
    child = multiprocessing.get_context("fork").Process(target=video.close)
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == 0
    assert _answers_rightly(video, [6, 7, 90])


def test_fork_while_another_thread_reads_does_not_hang_the_child(video: Video) -> None:
    stop = threading.Event()

    def keeps_reading() -> None:
        while not stop.is_set():
            video[60]

    reader = threading.Thread(target=keeps_reading)
    reader.start()
    try:
        child = multiprocessing.get_context("fork").Process(target=_child, args=(video, [3, 70]))
        child.start()
        child.join(PATIENCE)
        assert child.exitcode == 0
    finally:
        stop.set()
        reader.join()


def test_eight_threads_get_the_right_frames(video: Video) -> None:
    def reads(seed: int) -> bool:
        order = np.random.default_rng(seed).permutation(120)[:30].tolist()
        return _answers_rightly(video, order)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(reads, range(8)))


# Damage.


def test_failed_read_leaves_the_video_usable(backend: str) -> None:
    with _open("noise_in_media.mp4", backend) as video:
        for _ in range(3):
            with pytest.raises(CorruptVideoError):
                video.get_frames_at([0, 45, 100])
            assert _shown(video, [0, 100]) == [0, 100]


@pytest.mark.parametrize("number", [-1, 119, 120])
def test_cut_file_names_both_counts(backend: str, number: int) -> None:
    with _open("cut_moov_in_front.mp4", backend) as video:
        count = len(video)
        with pytest.raises(CorruptVideoError, match=f"{count} frames can be read of the 120"):
            video[number]
        assert _shown(video, [count - 1]) == [count - 1]


def test_frame_behind_damage_is_refused_and_the_next_key_frame_is_not() -> None:
    with _open("noise_in_av1.mp4", "pyav") as video:
        damaged = np.flatnonzero(video.table.is_damaged)
        with pytest.raises(CorruptVideoError, match="damaged"):
            video[int(damaged[-1])]
        assert _shown(video, [int(damaged[-1]) + 1]) == [int(damaged[-1]) + 1]


@pytest.mark.parametrize("share", np.linspace(0.02, 0.99, 14))
@pytest.mark.parametrize("clip", ["faststart.mp4", "av1_faststart.mp4", "matroska.mkv", "vp9.webm"])
def test_file_cut_anywhere_gives_its_first_frames_or_an_error(
    clip: str, share: float, tmp_path: Path
) -> None:
    whole = oracle.clip(clip).frames
    path = tmp_path / clip
    path.write_bytes(corpus.head(share)(corpus.clip_path(clip).read_bytes()))
    try:
        video = reelseek.open_video(path)
    except VideoError as error:
        assert error.remedy
        return
    with video:
        for frame in (0, len(video) // 2, len(video) - 1):
            assert np.array_equal(video[frame].numpy(), whole[frame])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("clip", "backend"),
    [("faststart.mp4", "pyav"), ("hevc.mp4", "pyav"), ("av1_faststart.mp4", "pyav"),
     ("vp9.webm", "pyav"), ("hevc.mp4", "torchcodec"), ("av1_faststart.mp4", "torchcodec")],
)  # fmt: skip
def test_flipped_bits_give_what_ffmpeg_displays_or_an_error(
    clip: str, backend: str, seed: int, tmp_path: Path
) -> None:
    generator = np.random.default_rng(seed)
    data = np.fromfile(corpus.clip_path(clip), np.uint8)
    places = generator.integers(0, len(data), (1, 3, 20)[seed % 3])
    data[places] ^= np.left_shift(np.uint8(1), generator.integers(0, 8, len(places), np.uint8))
    path = tmp_path / clip
    data.tofile(path)
    try:
        video = reelseek.open_video(path, backend=backend)
    except VideoError:
        return
    displayed, whole = oracle.decode(str(path)), oracle.clip(clip).frames
    with video:
        for frame in generator.permutation(len(video))[:20].tolist():
            try:
                picture = video[frame].numpy()
            except VideoError:
                continue
            expected = displayed.at(frame, int(video.table.pts[frame]))
            right = expected is not None and np.array_equal(picture, expected)
            assert right or np.array_equal(picture, whole[frame])
