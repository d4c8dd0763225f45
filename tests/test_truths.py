"""Whether any or all of a row of truth values are true."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reelseek._truths import are_all, is_any


@given(st.lists(st.booleans()), st.integers(1, 3))
def test_they_say_what_numpy_says_of_any_layout(values: list[bool], step: int) -> None:
    for truths in (np.array(values, np.bool_)[::step], np.array(values, np.bool_)[::-step]):
        assert is_any(truths) == truths.any()
        assert are_all(truths) == truths.all()
