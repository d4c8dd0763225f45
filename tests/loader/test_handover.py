"""Batches come out of a worker as it had them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.conftest import needed

torch = needed("torch")

from reelseek.loader._handover import MOST_BYTES_BY_VALUE, handed_over  # noqa: E402

ARRAYS = hnp.arrays(
    st.sampled_from(["u1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8"]),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)


def sent(batch: Any) -> Any:
    """The batch, as it is on the other side of a pipe."""
    return pickle.loads(pickle.dumps(handed_over(batch))).batch()


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), ARRAYS, max_size=4), st.booleans())
def test_tensors_keep_their_values_types_and_shapes(
    arrays: dict[str, Any], is_turned: bool
) -> None:
    batch = {key: torch.from_numpy(np.array(value)) for key, value in arrays.items()}
    if is_turned:
        batch = {key: value.movedim(0, -1) if value.ndim else value for key, value in batch.items()}
    for key, value in sent(batch).items():
        assert value.dtype == batch[key].dtype
        assert value.shape == batch[key].shape
        np.testing.assert_array_equal(value.numpy(), batch[key].numpy())


def test_structure_is_kept() -> None:
    batch = {"a": [torch.ones(2), "text"], "b": (torch.zeros(1), 3), "c": {"d": torch.eye(2)}}
    found = sent(batch)
    assert found["a"][1] == "text"
    assert isinstance(found["b"], tuple)
    assert torch.equal(found["c"]["d"], torch.eye(2))


def test_small_tensors_of_a_batch_keep_nothing_else_alive() -> None:
    found = sent({"index": torch.arange(4), "frames": torch.zeros(MOST_BYTES_BY_VALUE + 1)})
    assert found["index"].untyped_storage().nbytes() == 4 * 8


def test_tensors_can_be_written_to() -> None:
    found = sent({"a": torch.zeros(3)})["a"]
    found += 1
    assert found.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(MOST_BYTES_BY_VALUE + 1, dtype=torch.uint8),
        torch.zeros(3, dtype=torch.bfloat16),
        torch.ones(2, 2).to_sparse(),
    ],
    ids=["large", "bfloat16", "sparse"],
)
def test_what_has_no_plain_value_goes_as_torch_sends_it(tensor: Any) -> None:
    content = handed_over([tensor]).content
    assert content[0] is tensor
