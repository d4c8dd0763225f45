"""Ranges of numbers of any size, and of none."""

from __future__ import annotations

import numpy as np
import pytest

from reelseek.care.report._values import BINS, _dimension, _labels


@pytest.mark.parametrize(
    "values",
    [[0.0, 1.0, 2.0], [-1.7e308, 1.7e308], [0.0, 5e-324], [1e-300, 2e-300], [7.0], [np.nan, 1, 3]],
)
def test_every_finite_number_is_counted_once(values: list[float]) -> None:
    found = _dimension("x", np.array(values))
    assert found is not None
    finite = np.array(values)[np.isfinite(values)]
    assert (found.minimum, found.maximum) == (finite.min(), finite.max())
    assert len(found.counts) == BINS
    assert found.counts.sum() == len(finite)
    assert found.num_not_finite == len(values) - len(finite)


def test_constant_and_nothing() -> None:
    constant = _dimension("x", np.array([3.0, 3.0]))
    assert constant is not None
    assert constant.is_constant
    assert _dimension("x", np.array([np.nan, np.inf])) is None


@pytest.mark.parametrize("names", [["a", "b"], {"motors": ["a", "b"]}])
def test_names_of_elements(names: object) -> None:
    assert _labels(names, 2) == ["a", "b"]


@pytest.mark.parametrize("names", [None, ["a"], {"x": 1}, {"a": 0, "b": 1}, "ab", [["a", "b"]]])
def test_elements_without_names_are_numbered(names: object) -> None:
    assert _labels(names, 2) == ["0", "1"]
