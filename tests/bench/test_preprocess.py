"""``reelseek bench preprocess``: what is compared, what is timed, and how fast it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import reelseek
from reelseek.bench import preprocess
from reelseek.bench._preprocess_ways import FAST, OURS, OURS_UINT8, SLOW, SLOW_PIL, Way
from reelseek.bench.preprocess import PreprocessBench, bench_preprocess
from reelseek.sample import sample_dataset
from tests.conftest import needed, skip_without

torch = needed("torch")

NAMES = {SLOW_PIL, SLOW, FAST, OURS, OURS_UINT8}
ROUNDS = 7


@pytest.fixture(scope="module")
def measured() -> PreprocessBench:
    found = bench_preprocess(reelseek.open_dataset(sample_dataset()), frames=12, rounds=ROUNDS)
    if found.absent:
        name = "transformers" if SLOW in {one.name for one in found.absent} else "torchvision"
        skip_without(name, found.absent[0].why)
    return found


def test_every_way_is_timed_in_every_round(measured: PreprocessBench) -> None:
    assert {one.way.name for one in measured.measured} == NAMES
    assert all(len(one.batch_ms) == ROUNDS for one in measured.measured)


def test_every_way_is_within_two_levels_of_the_slow_processor(measured: PreprocessBench) -> None:
    off = {one.way.name: one.levels for one in measured.measured}
    assert off[SLOW] == off[SLOW_PIL] == 0
    assert all(levels is not None and levels <= 2.01 for levels in off.values())


def test_it_is_several_times_as_fast(
    measured: PreprocessBench, figure: Callable[[str], None]
) -> None:
    ratios = {ratio.label: ratio for ratio in measured.ratios()}
    for ratio in ratios.values():
        figure(f"preprocessing, how many times as long: {ratio}")
    # The processor's time: another process on the machine doesn't count.
    assert ratios[f"{SLOW_PIL} / {OURS}"].cpu >= 4
    assert ratios[f"{SLOW} / {OURS}"].cpu >= 4
    assert ratios[f"{SLOW} / {OURS_UINT8}"].cpu >= 10
    assert ratios[f"{FAST} / {OURS}"].cpu >= 1.5


def test_a_way_that_differs_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.zeros(2, 3, 8, 8)
    ways = [
        Way(SLOW, "", lambda: right),
        Way(OURS, "", lambda: right + 3 / 127.5),
        Way(OURS_UINT8, "", lambda: torch.full((2, 3, 8, 8), 127, dtype=torch.uint8), False),
    ]
    monkeypatch.setattr(preprocess, "ways_for", lambda _frames, _size: (ways, []))
    found = bench_preprocess(reelseek.open_dataset(sample_dataset()), frames=2, rounds=1)
    assert [one.is_right for one in found.measured] == [True, False, True]
    assert [len(one.batch_ms) for one in found.measured] == [1, 0, 1]
    assert [ratio.label for ratio in found.ratios()] == [f"{SLOW} / {OURS_UINT8}"]


def test_torchs_threads_are_as_before(measured: PreprocessBench) -> None:
    del measured
    before = torch.get_num_threads()
    with preprocess.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
