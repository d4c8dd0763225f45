"""GR00T's chain against torchvision's functions, step by step and whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reelseek.preprocess import IdmTransform, Jitter, _colour, adjust_colours, crop, draw_jitter
from tests.conftest import needed

torch = needed("torch")

STEPS = ("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue")
SEED = 11


def seeded() -> Any:
    return torch.Generator().manual_seed(SEED)


def one_step(kind: int, factor: float, samples: int) -> Jitter:
    """A jitter that does one of its four steps only."""
    factors = torch.tensor([1.0, 1.0, 1.0, 0.0]).repeat(samples, 1)
    factors[:, kind] = factor
    return Jitter(factors, torch.arange(4).repeat(samples, 1))


def by_torchvision(functional: Any, frames: Any, jitter: Jitter) -> Any:
    """Each sample on its own, as a GR00T dataset does it."""
    done = []
    for sample, factors, order in zip(frames, jitter.factors, jitter.order, strict=True):
        changed = sample
        for kind in order.tolist():
            changed = getattr(functional, STEPS[kind])(changed, float(factors[kind]))
        done.append(changed)
    return torch.stack(done)


def difference(left: Any, right: Any) -> Any:
    return (left.int() - right.int()).abs()


@pytest.mark.parametrize(
    ("kind", "factor"),
    [(0, 0.7), (0, 1.3), (1, 0.6), (1, 1.4), (2, 0.5), (2, 1.5), (3, -0.08), (3, 0.08), (3, 0.5)],
)
def test_each_step_is_within_a_level_of_torchvisions(
    torchvision_functional: Any, frames: Any, kind: int, factor: float
) -> None:
    ours = adjust_colours(frames, one_step(kind, factor, len(frames)))
    theirs = getattr(torchvision_functional, STEPS[kind])(frames, factor)
    off = difference(ours, theirs)
    assert off.max() <= 1
    assert (off > 0).float().mean() < 0.02


def test_a_jitter_of_whole_batches_is_torchvisions_sample_by_sample(
    torchvision_functional: Any, frames: Any, figure: Callable[[str], None]
) -> None:
    batch = frames[..., 30:90, 30:90].repeat(8, 1, 1, 1, 1)
    jitter = draw_jitter(len(batch), generator=seeded())
    assert len({tuple(order) for order in jitter.order.tolist()}) > 8  # many orders in one batch
    off = difference(
        adjust_colours(batch, jitter), by_torchvision(torchvision_functional, batch, jitter)
    )
    figure(
        f"colour jitter against torchvision's on uint8: {(off > 0).float().mean():.2%} of values "
        f"differ, by {int(off.max())} levels of 255 at most"
    )
    assert off.max() <= 4
    assert (off > 0).float().mean() < 0.05


def test_the_way_for_other_devices_gives_the_same_pixels(
    monkeypatch: pytest.MonkeyPatch, frames: Any
) -> None:
    jitter = draw_jitter(len(frames), generator=seeded())
    one_by_one = adjust_colours(frames, jitter)
    monkeypatch.setattr(_colour, "_one_by_one", _colour._at_once)
    assert torch.equal(adjust_colours(frames, jitter), one_by_one)


def test_the_chain_is_near_gr00ts_on_floats(
    torchvision_functional: Any, frames: Any, figure: Callable[[str], None]
) -> None:
    transform = IdmTransform()
    draws = transform.draw(len(frames), seeded())
    floats = crop(frames, transform.crop, places=draws.places).float() / 255
    resized = torchvision_functional.resize(floats.flatten(0, 1), [224, 224], antialias=True)
    resized = resized.unflatten(0, floats.shape[:2])
    theirs = by_torchvision(torchvision_functional, resized, draws.jitter)
    off = difference(transform(frames, draws), (theirs * 255).to(torch.uint8))
    figure(
        f"GR00T's chain on uint8 against floats: {off.float().mean():.2f} levels of 255 in the "
        f"mean, {int(off.max())} at most"
    )
    assert off.float().mean() < 2
    assert off.max() <= 16


def test_evaluation_is_the_centre_without_jitter(torchvision_functional: Any, frames: Any) -> None:
    ours = IdmTransform()(frames)
    centre = torchvision_functional.center_crop(frames.flatten(0, 1), [121, 121])
    theirs = torchvision_functional.resize(centre, [224, 224], antialias=True)
    assert difference(ours.flatten(0, 1), theirs).max() <= 1


def test_all_frames_of_a_sample_are_cropped_and_changed_alike(frames: Any) -> None:
    still = frames[:, :1].expand(-1, 2, -1, -1, -1)
    transform = IdmTransform()
    done = transform(still, transform.draw(len(still), seeded()))
    assert torch.equal(done[:, 0], done[:, 1])


def test_samples_are_changed_differently_and_by_the_seed(frames: Any) -> None:
    same = frames[:1].repeat(3, 1, 1, 1, 1)
    transform = IdmTransform()
    first, again = (transform(same, transform.draw(3, seeded())) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first[0], first[1])


def test_a_random_crop_is_a_part_of_the_frame_and_lies_where_it_is_put(frames: Any) -> None:
    corners = torch.tensor([[0.0, 0.0], [0.9999, 0.9999], [0.0, 0.9999], [0.5, 0.5], [1.0, 1.0]])
    cut = crop(frames, places=corners)
    assert cut.shape == (5, 2, 3, 121, 121)
    assert torch.equal(cut[0], frames[0, ..., :121, :121])
    for bottom_right in (1, 4):
        assert torch.equal(cut[bottom_right], frames[bottom_right, ..., 7:, 7:])
    assert torch.equal(cut[2], frames[2, ..., :121, 7:])
    assert cut.movedim(-3, -1).is_contiguous()


def test_crops_reach_every_place_equally_often() -> None:
    row = torch.arange(128, dtype=torch.uint8).expand(2000, 1, 128, 128)
    lefts = crop(row, places=IdmTransform().draw(2000, seeded()).places)[:, 0, 0, 0]
    counts = torch.bincount(lefts.int())
    assert len(counts) == 8 and counts.min() > 200  # 250 of 2000 are expected at each of 8


def test_strengths_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"hue=0\.7"):
        draw_jitter(1, hue=0.7)
    with pytest.raises(ValueError, match="brightness=-1"):
        draw_jitter(1, brightness=-1)


def test_what_does_not_fit_the_batch_is_refused(frames: Any) -> None:
    with pytest.raises(ValueError, match="a jitter of 4 samples"):
        adjust_colours(frames, draw_jitter(4))
    with pytest.raises(ValueError, match="places of shape"):
        crop(frames, places=torch.rand(4, 2))
    with pytest.raises(ValueError, match=r"crop scale 1\.5"):
        crop(frames, 1.5)
