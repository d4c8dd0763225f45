"""Random seeks: which are chosen, what is timed, and what is written."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import reelseek
from reelseek.bench._charts import seek_chart
from reelseek.bench._plan import Plan, make_plan
from reelseek.bench._report import document, headline
from reelseek.bench._timing import Timing, median, percentile
from reelseek.bench.seek import bench_seek
from reelseek.errors import FeatureNotFoundError
from reelseek.sample import sample_dataset
from tests.conftest import skip_without

BACKENDS = ("pyav", "decord", "pyav (typical)")
SEEKS = 4


@pytest.fixture(scope="module")
def dataset() -> reelseek.Dataset:
    return reelseek.open_dataset(sample_dataset(), output="numpy")


@pytest.fixture(scope="module")
def measured(dataset: reelseek.Dataset) -> tuple[Plan, dict[str, Timing]]:
    if importlib.util.find_spec("decord") is None:
        skip_without("decord", "decord isn't installed")
    plan, timings = bench_seek(dataset, seeks=SEEKS, backends=BACKENDS)
    return plan, {timing.name: timing for timing in timings}


def plan_of(dataset: reelseek.Dataset, seed: int = 0, seeks: int = 30) -> Plan:
    return make_plan(dataset, seeks=seeks, offsets=(0, 16), cameras=None, seed=seed)


def test_the_same_seed_chooses_the_same_seeks(dataset: reelseek.Dataset) -> None:
    assert plan_of(dataset, 1).seeks == plan_of(dataset, 1).seeks
    assert plan_of(dataset, 1).seeks != plan_of(dataset, 2).seeks


def test_a_seek_reads_its_offsets_from_every_camera(dataset: reelseek.Dataset) -> None:
    for seek in plan_of(dataset).seeks:
        assert tuple(read.camera for read in seek.reads) == dataset.cameras
        assert all(read.frames[1] - read.frames[0] == 16 for read in seek.reads)


def test_first_reads_are_of_different_files(dataset: reelseek.Dataset) -> None:
    paths = [read.path for read in plan_of(dataset).first_reads(5)]
    assert len(set(paths)) == len(paths) == 5


def test_an_unknown_camera_is_refused_with_those_that_exist(dataset: reelseek.Dataset) -> None:
    with pytest.raises(FeatureNotFoundError, match=r"observation\.images\.top"):
        make_plan(dataset, seeks=1, offsets=(0,), cameras=["rear"], seed=0)


def test_every_seek_and_camera_is_timed(measured: tuple[Plan, dict[str, Timing]]) -> None:
    plan, timings = measured
    for name in ("pyav", "pyav (typical)"):
        assert len(timings[name].seek_ms) == SEEKS * len(plan.cameras)
        assert len(timings[name].sample_ms) == SEEKS
        assert timings[name].first_read_ms
        assert min(timings[name].seek_ms) > 0


def test_a_backend_that_refuses_has_its_own_words_and_no_times(
    measured: tuple[Plan, dict[str, Timing]],
) -> None:
    decord = measured[1]["decord"]
    assert not decord.is_timed
    assert decord.check.status == "refuses"
    assert "cannot find video stream" in decord.check.detail


@pytest.mark.usefixtures("faulty_backends")
def test_a_backend_that_differs_is_counted_and_not_timed(dataset: reelseek.Dataset) -> None:
    _plan, timings = bench_seek(dataset, seeks=2, backends=("neighbour", "crashes", "pyav"))
    neighbour, crashes, pyav = timings
    assert (neighbour.check.status, neighbour.is_timed) == ("wrong", False)
    assert neighbour.check.wrong == neighbour.check.reads > 0
    assert (crashes.check.status, crashes.is_timed) == ("crashed", False)
    assert pyav.is_timed


def test_the_document_says_where_and_how_it_was_measured(
    dataset: reelseek.Dataset, measured: tuple[Plan, dict[str, Timing]]
) -> None:
    plan, timings = measured
    written = json.loads(json.dumps(document(dataset, plan, tuple(timings.values()))))
    assert written["schema"] == "reelseek.bench.seek/2"
    assert written["environment"]["cpu"] and written["environment"]["packages"]["av"]
    assert written["videos"]["codecs"] == ["av1"] and written["videos"]["mean_gop"] > 0
    assert written["settings"]["cache_state"].startswith("page cache warm")
    assert len(written["seeks"]) == SEEKS
    pyav = next(backend for backend in written["backends"] if backend["name"] == "pyav")
    assert pyav["seek_median_ms"] == median(pyav["seek_ms"])


def test_the_chart_is_a_png(
    dataset: reelseek.Dataset, measured: tuple[Plan, dict[str, Timing]], tmp_path: Path
) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        skip_without("matplotlib", "matplotlib isn't installed")
    plan, timings = measured
    every = tuple(timings.values())
    path = tmp_path / "chart.png"
    seek_chart(every, headline(plan, dataset.root), document(dataset, plan, every), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_percentiles_of_nothing_are_nothing() -> None:
    assert median([]) is percentile([], 95) is None
    assert (median([1.0, 2.0, 9.0]), percentile([1.0, 2.0], 100)) == (2.0, 2.0)
