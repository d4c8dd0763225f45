"""``bench loader``: samples are compared before anything is timed, and what is told of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reelseek.bench._loader_chart import loader_chart
from reelseek.bench._loader_ways import OURS, OURS_BY_GOP, WAYS, Job, open_ours
from reelseek.bench.loader import LoaderBench, LoaderTiming, bench_loader, random_order
from reelseek.sample import sample_dataset
from tests.conftest import needed, needs
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

needed("torch")

PYAV = "GR00T's call, PyAV"


def job(root: Path, **options: Any) -> Job:
    given = {"offsets": (0, 16), "action_steps": 16, "batch_size": 4, "num_workers": 1, **options}
    return Job(str(root), str(root), **given)


@pytest.fixture(scope="module")
def measured() -> LoaderBench:
    """A short measurement on the sample dataset."""
    what = job(sample_dataset())
    return bench_loader(
        open_ours(what), what, ways=[OURS, PYAV, "GR00T's call, decord"],
        rounds=1, seconds=0.2, smoke_samples=2,
    )  # fmt: skip


def test_right_ways_are_compared_and_timed(measured: LoaderBench) -> None:
    for timing in measured.timings[:2]:
        assert timing.why_not == ""
        assert timing.max_difference is not None
        assert len(timing.samples_per_second) == 1
        assert timing.worker_megabytes[0] > 10
    assert measured.timings[0].max_difference == 0
    assert measured.ratios(OURS).keys() == {PYAV}


def test_way_that_cannot_read_the_data_says_why(measured: LoaderBench) -> None:
    needs("decord")
    assert "video stream" in measured.timings[2].why_not
    assert measured.timings[2].samples_per_second == []


def test_single_samples_are_timed_cold_and_warm(measured: LoaderBench) -> None:
    ours = next(t for t in measured.smoke if t.name == "reelseek, indexed")
    assert len(ours.cold_ms) == len(ours.warm_ms) == 1


def test_document_has_all_of_it_and_is_plain(measured: LoaderBench) -> None:
    document = json.loads(json.dumps(measured.to_json()))
    assert document["schema"] == "reelseek.bench.loader/1"
    assert [way["name"] for way in document["loaders"]][:2] == [OURS, PYAV]
    assert set(document["randomness"]) == {OURS, OURS_BY_GOP}


def test_chart_is_a_picture(measured: LoaderBench, tmp_path: Path) -> None:
    needs("matplotlib")
    loader_chart(measured, measured.to_json(), tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_way_that_dies_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "reelseek.bench.loader.CHILD", [sys.executable, "-c", "raise SystemExit(3)"]
    )
    what = job(sample_dataset())
    found = bench_loader(open_ours(what), what, ways=[OURS], rounds=1, smoke_samples=0)
    assert found.timings[0].why_not == "its process ended with exit status 3"


def test_ratio_is_of_the_same_rounds() -> None:
    ours, other = LoaderTiming(OURS), LoaderTiming(PYAV)
    ours.samples_per_second, other.samples_per_second = [40, 10, 90], [10, 5, 30]
    ours.cpu_ms_per_sample, other.cpu_ms_per_sample = [2.0, 1.0, 4.0], [4.0, 5.0, 8.0]
    found = LoaderBench(job(Path("x")), 3, 1.0, (ours, other), (), {})
    assert found.ratios(OURS) == {PYAV: 3.0}
    assert found.cpu_ratios(OURS) == {PYAV: 2.0}


def test_random_order_holds_every_sample_in_each_epoch() -> None:
    order = np.array(random_order(3000, 0))
    epochs = order.reshape(-1, 3000)
    assert len(epochs) >= 2
    assert (np.sort(epochs, axis=1) == np.arange(3000)).all()


def test_unknown_ways_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reelseek", "bench", "loader", str(sample_dataset()), "--ways", "x"],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "no way 'x'" in " ".join(done.stderr.split())
    assert all(name for name in WAYS)
