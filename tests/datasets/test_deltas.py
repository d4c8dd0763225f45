"""Offsets: which rows a sample consists of, and what stands in at an episode's ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.datasets._deltas import matching, padded, resolve_deltas
from reelseek.errors import DatasetFormatError, FeatureNotFoundError

KEYS = ["observation.images.top", "observation.images.wrist", "observation.state", "action"]


def resolved(
    indices: dict[str, Iterable[int]] | None = None,
    timestamps: dict[str, Iterable[float]] | None = None,
    fps: float = 30,
    tolerance: float = 1e-4,
) -> dict[str, list[int]]:
    deltas = resolve_deltas(KEYS, fps, indices, timestamps, tolerance)
    return {key: offsets.tolist() for key, offsets in deltas.items()}


@given(
    length=st.integers(1, 50),
    share=st.floats(0, 1, exclude_max=True),
    offsets=st.lists(st.integers(-80, 80) | st.just(2**53) | st.just(-(2**53)), min_size=1),
)
def test_padding_is_what_a_plain_loop_does(length: int, share: float, offsets: list[int]) -> None:
    row = int(share * length)
    rows, is_pad = padded(row, length, np.array(offsets, np.int64))
    for place, offset in enumerate(offsets):
        wanted = row + offset
        if wanted < 0:
            assert (rows[place], is_pad[place]) == (0, True)
        elif wanted >= length:
            assert (rows[place], is_pad[place]) == (length - 1, True)
        else:
            assert (rows[place], is_pad[place]) == (wanted, False)


@given(offsets=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20))
def test_offsets_are_kept_as_given(offsets: list[int]) -> None:
    for given_as in (offsets, tuple(offsets), np.array(offsets), iter(offsets)):
        assert resolved({"action": given_as}) == {"action": offsets}


@given(
    frames=st.lists(st.integers(-1000, 1000), min_size=1, max_size=20),
    fps=st.sampled_from([10, 15, 20.0, 25, 29.97, 30, 50, 60, 1000 / 33]),
)
def test_times_of_whole_frames_are_those_frames(frames: list[int], fps: float) -> None:
    assert resolved(None, {"action": [n / fps for n in frames]}, fps) == {"action": frames}


@pytest.mark.parametrize("seconds", [0.01, 1 / 30 + 0.0002, -0.05])
def test_time_between_frames_names_the_nearest(seconds: float) -> None:
    with pytest.raises(DatasetFormatError, match=r"falls between frames at 30 fps.*such as"):
        resolved(None, {"action": [0, seconds]})


def test_time_within_the_tolerance_is_taken() -> None:
    assert resolved(None, {"action": [0.0334]}, tolerance=1e-3) == {"action": [1]}


def test_patterns_fit_several_keys() -> None:
    assert resolved({"observation.images.*": [0, 16], "action": range(3)}) == {
        "observation.images.top": [0, 16],
        "observation.images.wrist": [0, 16],
        "action": [0, 1, 2],
    }


def test_a_name_is_no_pattern_of_itself() -> None:
    assert matching("a[1]", ["a[1]", "a1"]) == ["a[1]"]


def test_patterns_may_overlap_where_they_agree() -> None:
    assert resolved({"*": [0, 1], "action": [0, 1]}, {"action": [0, 1 / 30]})["action"] == [0, 1]


def test_two_lists_for_one_key_are_refused() -> None:
    with pytest.raises(DatasetFormatError, match=r"'action' is given two lists.*\[0, 1\].*\[0\]"):
        resolved({"*": [0, 1], "action": [0]})


def test_unknown_key_lists_the_known() -> None:
    with pytest.raises(FeatureNotFoundError, match=r"no feature 'act'.*action, observation"):
        resolved({"act": [0]})


@pytest.mark.parametrize("offsets", [[], [0.5], [1.0], ["a"], [[0]], [2**70], [2**62], [None]])
def test_offsets_that_are_no_whole_numbers_are_refused(offsets: Any) -> None:
    with pytest.raises(DatasetFormatError, match="Give a list of whole numbers"):
        resolved({"action": offsets})


@pytest.mark.parametrize("seconds", [[], [float("nan")], [float("inf")], [1e300]])
def test_times_that_are_no_numbers_are_refused(seconds: Any) -> None:
    with pytest.raises(DatasetFormatError, match="Give a list of times"):
        resolved(None, {"action": seconds})


def test_no_deltas_are_none() -> None:
    assert resolved() == {}
