"""SigLIP's preprocessing against Hugging Face's two processors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reelseek.preprocess import siglip
from reelseek.preprocess._normalize import normalize
from reelseek.preprocess._resize import resize_as_floats
from tests.conftest import needed

torch = needed("torch")

LEVEL = 1 / 127.5
"""One of 255 levels, after the normalisation."""
ROUNDING = 1e-6
SIZE = {"height": 224, "width": 224}


def processed(processor: Any, pictures: Any) -> Any:
    done = processor(list(pictures), return_tensors="pt", input_data_format="channels_first")
    return done["pixel_values"]


def levels(ours: Any, theirs: Any) -> float:
    return float((ours - theirs).abs().max()) / LEVEL


@pytest.fixture(params=["frames", "noise"])
def pictures(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param).flatten(0, -4)


def test_it_equals_the_fast_processor(
    siglip_module: Any, pictures: Any, figure: Callable[[str], None]
) -> None:
    theirs = processed(siglip_module.SiglipImageProcessorFast(size=SIZE), pictures)
    ours = siglip(pictures)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype == torch.float32
    worst = float((ours - theirs).abs().max())
    figure(f"SigLIP preprocessing against SiglipImageProcessorFast: {worst:.1e} at most")
    assert worst <= ROUNDING


def test_it_is_within_2_levels_of_the_slow_processor(
    siglip_module: Any, pictures: Any, figure: Callable[[str], None]
) -> None:
    theirs = processed(siglip_module.SiglipImageProcessor(size=SIZE), pictures)
    worst = levels(siglip(pictures), theirs)
    figure(f"SigLIP preprocessing against SiglipImageProcessor: {worst:.2f} levels of 255 at most")
    assert worst <= 2 + ROUNDING / LEVEL


def test_the_way_without_a_uint8_kernel_is_within_2_levels_of_both(
    siglip_module: Any, pictures: Any
) -> None:
    ours = normalize(resize_as_floats(pictures, (224, 224), "bicubic"))
    for name in ("SiglipImageProcessor", "SiglipImageProcessorFast"):
        theirs = processed(getattr(siglip_module, name)(size=SIZE), pictures)
        assert levels(ours, theirs) <= 2 + ROUNDING / LEVEL


@pytest.mark.parametrize(("height", "width"), [(480, 640), (100, 224), (224, 224), (37, 53)])
def test_other_sizes_are_as_near(siglip_module: Any, height: int, width: int) -> None:
    generator = torch.Generator().manual_seed(height)
    pictures = torch.randint(0, 256, (2, 3, height, width), dtype=torch.uint8, generator=generator)
    slow = processed(siglip_module.SiglipImageProcessor(size=SIZE), pictures)
    fast = processed(siglip_module.SiglipImageProcessorFast(size=SIZE), pictures)
    assert levels(siglip(pictures), slow) <= 2 + ROUNDING / LEVEL
    assert (siglip(pictures) - fast).abs().max() <= ROUNDING


def test_another_mean_and_std_are_the_processors(siglip_module: Any, frames: Any) -> None:
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    fast = siglip_module.SiglipImageProcessorFast(size=SIZE, image_mean=mean, image_std=std)
    ours = siglip(frames.flatten(0, 1), mean=mean, std=std)
    assert (ours - processed(fast, frames.flatten(0, 1))).abs().max() <= 2 * ROUNDING
