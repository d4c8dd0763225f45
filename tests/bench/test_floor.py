"""The floor: the same frames as the engine's, from packets made before; and what is compared."""

from __future__ import annotations

import numpy as np
import pytest

import reelseek
from reelseek.bench._child import ReadReport
from reelseek.bench._floor import FloorReader
from reelseek.bench._plan import make_plan
from reelseek.bench._ratios import paired, ratios, versus_floor
from reelseek.bench._readers import open_reader, reader_names
from reelseek.bench._timing import Timing
from reelseek.bench.seek import bench_seek
from reelseek.errors import UnsupportedVideoError
from reelseek.sample import sample_dataset
from tests.corpus import clip_path

CLIPS = ("av1_default.mp4", "av1_g2.mp4", "av1_libaom.mp4", "b_frames.mp4", "hevc.mp4",
         "vp9.mp4", "rotated.mp4")  # fmt: skip


@pytest.mark.parametrize("name", CLIPS)
def test_the_floor_decodes_the_same_frames(name: str) -> None:
    path = str(clip_path(name))
    floor = FloorReader(path)
    with reelseek.open_video(path, backend="pyav") as video:
        for frames in ((37, 53), (5, 5, 99), (116, 0), (37, 53)):
            assert np.array_equal(floor.read(frames), video.get_frames_at(frames).numpy())


def test_packets_of_prepared_frames_are_read_from_memory() -> None:
    floor = FloorReader(str(clip_path("av1_g20.mp4")))
    floor.prepare((10, 26))
    floor._path = "/no/such/file"
    assert floor.read((10, 26)).any()


def test_the_engine_reads_on_after_the_floor_used_its_codec_context() -> None:
    path = str(clip_path("av1_default.mp4"))
    with reelseek.open_video(path, backend="indexed") as video:
        expected = video.get_frames_at([40, 41]).numpy()
        FloorReader(path).read((90, 91))
        assert np.array_equal(video.get_frames_at([40, 41]).numpy(), expected)


def test_a_file_that_has_no_units_has_no_floor() -> None:
    with pytest.raises(UnsupportedVideoError):
        open_reader("floor", str(clip_path("mpeg4.mp4")), np.zeros(0))


def test_the_floor_is_a_reader_by_name() -> None:
    assert reader_names()[-1] == "floor"


def test_cold_reads_touch_each_file_once() -> None:
    dataset = reelseek.open_dataset(sample_dataset(), output="numpy")
    plan = make_plan(dataset, seeks=30, offsets=(0, 16), cameras=None, seed=0)
    paths = [read.path for read in plan.cold_reads()]
    assert sorted(paths) == sorted(plan.files)


def test_the_floor_is_timed_with_files_open_only() -> None:
    dataset = reelseek.open_dataset(sample_dataset(), output="numpy")
    plan, timings = bench_seek(dataset, seeks=2, backends=("indexed", "floor", "pyav"))
    indexed, floor, pyav = timings
    assert all(timing.check.status == "right" for timing in timings)
    assert len(floor.seek_ms) == len(indexed.seek_ms) == 2 * len(plan.cameras)
    assert floor.cold_ms == floor.first_read_ms == []
    assert len(indexed.cold_ms) == len(pyav.cold_ms) == len(plan.files)
    assert len(indexed.beside_cold_ms) == len(plan.files)
    assert [ratio.label for ratio in ratios(timings)] == [
        "indexed / floor",
        "indexed cold / indexed, file open",
    ]


def timing(name: str, *seek_ms: float) -> Timing:
    times = list(seek_ms)
    return Timing(
        ReadReport(name, "right"),
        seek_ms=times, seek_cpu_ms=times, cold_ms=times, cold_cpu_ms=times,
        beside_cold_ms=times, beside_cold_cpu_ms=times,
    )  # fmt: skip


def test_ratios_pair_the_same_reads() -> None:
    times = [2.0, 30.0, 4.0]
    ratio = paired("a / b", (times, times), ([1.0, 10.0, 4.0], [2.0, 10.0, 4.0]))
    assert ratio is not None
    assert (ratio.low, ratio.middle, ratio.high, ratio.pairs) == (1.5, 2.0, 2.5, 3)
    assert ratio.cpu == 1.0
    assert paired("a / b", ([], []), ([], [])) is None


def test_the_best_known_torchcodec_is_compared() -> None:
    every = (timing("indexed", 1.0), timing("torchcodec", 3.0), timing("torchcodec (exact)", 2.0))
    spread = "2.00 (quartiles 2.00 to 2.00); processor time 2.00"
    assert [str(ratio) for ratio in ratios(every)] == [
        f"torchcodec (exact) / indexed, file open: {spread}",
        f"torchcodec (exact) / indexed, cold: {spread}",
        "indexed cold / indexed, file open: 1.00 (quartiles 1.00 to 1.00); processor time 1.00",
    ]
    assert versus_floor(every[0], every) is None
