"""``reelseek bench train``: what is trained on, what is compared, and who waits for what."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.bench import _readers, _train_setups
from reelseek.bench._readers import PLAIN, Plain
from reelseek.bench._train_chart import train_chart
from reelseek.bench._train_setups import SETUPS, Setup, make_processor, open_setup, read_batch
from reelseek.bench._train_steps import SetupTimes, warm_up_steps
from reelseek.bench.train import Process, TrainBench, TrainOptions, _plan, bench_train
from reelseek.errors import DatasetFormatError
from reelseek.sample import sample_dataset
from tests.conftest import needed, needs

pytestmark = pytest.mark.slow

torch = needed("torch")

TOP = "observation.images.top"
OPTIONS = TrainOptions(steps=6, batch_size=2, num_workers=1)
SLOW_SECONDS = 0.15


class AlteredReader:
    """Reads as PyAV's plain call does, and then does something to it."""

    def __init__(self, path: str, seconds: Any, alter: Callable[[Any], Any]) -> None:
        self._reader = PLAIN["pyav (typical)"].open(path, seconds)
        self._alter = alter

    def read(self, frames: Sequence[int]) -> Any:
        return self._alter(self._reader.read(frames))

    def close(self) -> None:
        """Nothing is kept open."""


def slowly(pixels: Any) -> Any:
    time.sleep(SLOW_SECONDS)
    return pixels


def darker(pixels: Any) -> Any:
    return pixels // 2


@pytest.fixture(scope="module")
def dataset() -> reelseek.Dataset:
    return reelseek.open_dataset(sample_dataset(), cameras=[TOP])


@pytest.fixture(scope="module")
def measured(dataset: reelseek.Dataset) -> Iterator[TrainBench]:
    needs("transformers")
    with pytest.MonkeyPatch.context() as patch:
        for name, alter in (("slow", slowly), ("dark", darker)):
            plain = Plain("pyav", "", functools.partial(AlteredReader, alter=alter))
            patch.setitem(_readers.PLAIN, name, plain)
            patch.setitem(_train_setups.SETUPS, name, Setup(name, name, "reelseek", ""))
        yield bench_train(dataset, OPTIONS, setups=("indexed", "slow", "dark"))


def times_of(measured: TrainBench, name: str) -> SetupTimes:
    return next(times for times in measured.setups if times.setup.name == name)


def test_both_frames_lie_in_the_samples_episode(dataset: reelseek.Dataset) -> None:
    for turn in _plan(dataset, TrainOptions(), Process(0, 1)):
        assert len(set(turn)) == len(turn)
        for sample in turn:
            episode, row = dataset.place_of(sample)
            assert row + 16 < episode.length


def test_processes_train_on_samples_of_their_own(dataset: reelseek.Dataset) -> None:
    plans = [_plan(dataset, TrainOptions(), Process(rank, 2)) for rank in (0, 1)]
    for own, others in zip(*plans, strict=True):
        assert len(own) == len(others) and not set(own) & set(others)


def test_more_steps_than_samples_take_more_rounds(dataset: reelseek.Dataset) -> None:
    options = TrainOptions(steps=400, batch_size=8, num_workers=0)
    turns = _plan(dataset, options, Process(0, 1))
    steps = sum(len(turn) // 8 - warm_up_steps(0) for turn in turns)
    assert steps >= 400 and all(len(turn) <= len(dataset) for turn in turns)


def test_a_batch_that_the_dataset_cannot_fill_is_refused(dataset: reelseek.Dataset) -> None:
    with pytest.raises(DatasetFormatError, match="too few for steps of 512"):
        _plan(dataset, TrainOptions(batch_size=512), Process(0, 1))


@pytest.mark.parametrize("name", ["torchcodec", "pyav", "pyav (typical)", "torchcodec (report)"])
def test_every_way_reads_the_same_batch(dataset: reelseek.Dataset, name: str) -> None:
    if SETUPS[name].processor != "reelseek":
        needs("transformers")
    if "torchcodec" in name:
        needs("torchcodec")
    samples = [3, 200, 77]
    expected = read_batch(open_setup(SETUPS["indexed"], dataset, samples, 16), samples)
    source = open_setup(SETUPS[name], dataset, samples, 16)
    batch = read_batch(source, samples)
    assert torch.equal(batch[TOP], expected[TOP])
    assert torch.equal(batch["action"], expected["action"])
    pixels, reference = (
        make_processor(processor, [TOP], 224, "cpu")(batch)
        for processor in (SETUPS[name].processor, "reelseek")
    )
    assert pixels.shape == (3, 2, 3, 224, 224)
    assert (pixels - reference).abs().max() <= 2.01 / 127.5
    source.close()


def test_steps_wait_for_a_slow_reader(measured: TrainBench, figure: Callable[[str], None]) -> None:
    slow, indexed = times_of(measured, "slow"), times_of(measured, "indexed")
    assert slow.shares()[0] > max(0.3, indexed.shares()[0])
    assert np.median(slow.read_ms) >= 2 * SLOW_SECONDS * 1000  # two samples
    waits = [f"{times.setup.name} {times.shares()[0]:.0%}" for times in (indexed, slow)]
    figure(f"bench train: of a step's time spent waiting: {', '.join(waits)} (by design)")


@pytest.mark.parametrize(
    ("num_workers", "busy", "waits"), [(1, 1.5, True), (2, 0.75, False), (0, None, True)]
)
def test_workers_that_need_longer_than_a_step_cannot_keep_up(
    num_workers: int, busy: float | None, waits: bool
) -> None:
    times = SetupTimes(SETUPS["pyav"], num_workers, read_cpu_ms=[90.0], own_ms=[60.0])
    assert (times.busy, times.waits) == (busy, waits)


def test_every_step_has_three_parts_and_shares_add_up(measured: TrainBench) -> None:
    indexed = times_of(measured, "indexed")
    parts = (indexed.wait_ms, indexed.preprocess_ms, indexed.compute_ms)
    assert [len(part) for part in parts] == [OPTIONS.steps] * 3
    assert sum(indexed.shares()) == pytest.approx(1)
    assert indexed.step_ms == pytest.approx(sum(map(sum, parts)) / OPTIONS.steps)
    assert len(indexed.round_rates) == 3


def test_a_way_that_reads_other_frames_is_left_out(measured: TrainBench) -> None:
    dark = times_of(measured, "dark")
    assert dark.why_not and not dark.wait_ms
    assert not measured.is_sound


def test_the_document_and_the_chart_hold_what_was_measured(
    measured: TrainBench, tmp_path: Path
) -> None:
    needs("matplotlib")
    written = json.loads(json.dumps(measured.to_json()))
    assert written["schema"] == "reelseek.bench.train/1"
    assert written["options"]["batch_size"] == 2 and written["environment"]["cpu"]
    assert [setup["waits_for_data"] is None for setup in written["setups"]] == [False, False, True]
    train_chart(measured.setups, written, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
