"""Orders: which samples are chosen, and how random they come."""

from __future__ import annotations

import numpy as np
import pytest

from reelseek.datasets import Dataset
from reelseek.errors import FeatureNotFoundError
from reelseek.loader import (
    GopShuffle,
    Sequential,
    Shuffle,
    measure_randomness,
    select_samples,
)
from reelseek.loader._orders import Share
from tests.conftest import needed
from tests.datasets.makers import SPEC, TASKS

needed("torch")  # the fixtures open datasets for it


def numbers(*episodes: int) -> list[int]:
    """The samples of these episodes."""
    return [n for e in episodes for n in range(SPEC.starts[e], SPEC.starts[e + 1])]


def test_episodes_are_chosen_by_number(tiny: Dataset) -> None:
    assert select_samples(tiny, episodes=[2, 0]).tolist() == numbers(0, 2)


@pytest.mark.parametrize("wanted", [TASKS[1], f"{TASKS[1][:5]}*"])
def test_episodes_are_chosen_by_task(tiny: Dataset, wanted: str) -> None:
    assert select_samples(tiny, tasks=[wanted]).tolist() == numbers(1, 3)


def test_episodes_are_chosen_by_length(tiny: Dataset) -> None:
    assert select_samples(tiny, min_length=5, max_length=7).tolist() == numbers(0, 1)


def test_ends_of_episodes_are_left_out(tiny: Dataset) -> None:
    chosen = select_samples(tiny, episodes=[0, 1, 3], skip_first=1, skip_last=3)
    assert chosen.tolist() == [1, 2, 3, 8]


def test_unknown_episodes_and_tasks_are_refused(tiny: Dataset) -> None:
    with pytest.raises(FeatureNotFoundError, match="no episode 9"):
        select_samples(tiny, episodes=[9])
    with pytest.raises(FeatureNotFoundError, match="'swim'"):
        select_samples(tiny, tasks=["swim"])


def test_permutation_is_the_same_for_ever() -> None:
    share = Share(7, 3, 0, 1, 4, drop_last=False, uneven="pad")
    assert share.permutation(10).tolist() == [2, 4, 7, 3, 5, 1, 8, 9, 0, 6]


def test_plain_order_does_not_travel(tiny: Dataset) -> None:
    found = measure_randomness(tiny, Sequential(), 5)
    assert found.travel == 0
    assert found.near_in_batch == pytest.approx(1, abs=0.2)


def test_random_order_travels_a_third(tiny: Dataset) -> None:
    found = [measure_randomness(tiny, Shuffle(), 5, seed=seed) for seed in range(20)]
    assert np.mean([one.travel for one in found]) == pytest.approx(1 / 3, abs=0.05)
    assert np.mean([one.correlation for one in found]) == pytest.approx(0, abs=0.15)


def test_larger_buffer_is_more_random(tiny: Dataset) -> None:
    def travel(size: int) -> float:
        order = GopShuffle(buffer_samples=size, open_episodes=1, chunk=1)
        found = [measure_randomness(tiny, order, 2, seed=seed) for seed in range(10)]
        return float(np.mean([one.neighbour_distance for one in found]))

    assert travel(2) < travel(12)
