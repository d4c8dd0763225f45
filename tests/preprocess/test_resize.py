"""Resizing and normalising: layouts, memory, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from reelseek.preprocess import normalize, resize, siglip
from tests.conftest import needed

torch = needed("torch")


def test_leading_dimensions_stay(frames: Any) -> None:
    assert resize(frames).shape == (5, 2, 3, 224, 224)
    assert resize(frames[0, 0]).shape == (3, 224, 224)
    assert resize(frames[None], (64, 96)).shape == (1, 5, 2, 3, 64, 96)


def test_decoded_frames_are_read_where_they_lie_and_stay_channels_last(frames: Any) -> None:
    assert frames.movedim(-3, -1).is_contiguous()
    assert resize(frames).movedim(-3, -1).is_contiguous()
    assert siglip(frames).movedim(-3, -1).is_contiguous()


def test_the_order_in_memory_makes_no_difference(frames: Any) -> None:
    assert torch.equal(resize(frames), resize(frames.contiguous()))
    assert torch.equal(resize(frames), resize(frames.movedim(-3, -1), layout="HWC"))


def test_a_frame_of_the_right_size_is_not_copied(frames: Any) -> None:
    assert resize(frames, 128).data_ptr() == frames.data_ptr()


def test_the_input_is_not_changed(frames: Any) -> None:
    before = frames.clone()
    siglip(frames, 128)
    assert torch.equal(frames, before)


def test_normalize_makes_the_type_asked_for(frames: Any) -> None:
    halves = normalize(frames, dtype=torch.bfloat16)
    assert halves.dtype == torch.bfloat16
    assert torch.equal(halves, normalize(frames).to(torch.bfloat16))


def test_an_empty_batch_stays_empty(frames: Any) -> None:
    assert siglip(frames[:0]).shape == (0, 2, 3, 224, 224)


def test_floats_are_refused(frames: Any) -> None:
    with pytest.raises(TypeError, match="uint8"):
        resize(frames.float())
    with pytest.raises(TypeError, match="uint8"):
        normalize(frames.float())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"size": 0}, "size=0"),
        ({"layout": "WHC"}, "choose 'CHW' or 'HWC'"),
        ({"interpolation": "nearest"}, "choose 'bicubic' or 'bilinear'"),
    ],
)
def test_what_is_no_setting_is_refused(frames: Any, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        resize(frames, **arguments)


def test_a_list_of_another_length_is_refused(frames: Any) -> None:
    with pytest.raises(ValueError, match="mean has 2 numbers"):
        normalize(frames, mean=[0.5, 0.5])
    with pytest.raises(ValueError, match="give"):
        resize(frames[0, 0, 0])
