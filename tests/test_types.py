"""Frames, batches and orientations."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest

from reelseek.index import NO_PTS
from reelseek.index._table import _seconds_of
from reelseek.types import FrameBatch, Orientation

ONE = 1 << 16
PICTURE = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)

# ISO/IEC 14496-12 6.2.2: x' = ax + cy, y' = bx + dy, with y downwards.
EIGHT = {
    "upright": ((1, 0, 0, 1), PICTURE),
    "a quarter clockwise": ((0, 1, -1, 0), np.rot90(PICTURE, -1)),
    "a half": ((-1, 0, 0, -1), np.rot90(PICTURE, 2)),
    "a quarter counterclockwise": ((0, -1, 1, 0), np.rot90(PICTURE, 1)),
    "mirrored": ((-1, 0, 0, 1), PICTURE[:, ::-1]),
    "mirrored, a quarter clockwise": ((0, -1, -1, 0), np.rot90(PICTURE[:, ::-1], -1)),
    "mirrored, a half": ((1, 0, 0, -1), np.rot90(PICTURE[:, ::-1], 2)),
    "mirrored, a quarter counterclockwise": ((0, 1, 1, 0), np.rot90(PICTURE[:, ::-1], 1)),
}


def _matrix(a: int, b: int, c: int, d: int) -> tuple[int, ...]:
    return (a * ONE, b * ONE, 0, c * ONE, d * ONE, 0, 0, 0, 1 << 30)


@pytest.mark.parametrize("turn", EIGHT)
def test_orientation_turns_the_picture_as_its_matrix_says(turn: str) -> None:
    numbers, expected = EIGHT[turn]
    orientation = Orientation.from_display_matrix(_matrix(*numbers))
    np.testing.assert_array_equal(orientation.apply(PICTURE), expected)
    assert orientation.is_identity == (turn == "upright")
    assert orientation.is_mirrored == turn.startswith("mirrored")


@pytest.mark.parametrize("numbers", [(1, 1, -1, 1), (0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 1)])
def test_turn_that_is_no_right_angle_is_refused(numbers: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="right angle"):
        Orientation.from_display_matrix(_matrix(*numbers))


def test_matrix_that_ffmpeg_packs_is_read_as_nine_numbers() -> None:
    packed = struct.pack("=9i", *_matrix(0, 1, -1, 0))
    assert Orientation.from_display_matrix(struct.unpack("=9i", packed)).swaps_axes


def _batch(count: int = 3) -> FrameBatch:
    return FrameBatch(
        pixels=np.arange(count * 24, dtype=np.uint8).reshape(count, 2, 4, 3),
        indices=np.arange(count) * 5,
        pts_seconds=np.arange(count) / 2,
        duration_seconds=np.full(count, 0.5),
    )


def test_batch_gives_its_frames_in_order() -> None:
    frames = list(_batch())
    assert [frame.index for frame in frames] == [0, 5, 10]
    assert [frame.pts_seconds for frame in frames] == [0.0, 0.5, 1.0]
    np.testing.assert_array_equal(frames[1].numpy(), _batch().pixels[1])


def test_batch_repr_shows_shapes_and_no_pixels() -> None:
    assert repr(_batch()) == "FrameBatch(indices=[0, 5, 10], shape=(3, 2, 4, 3))"
    assert repr(_batch()[2]) == "Frame(index=10, shape=(2, 4, 3), pts_seconds=1.000000)"


def test_batch_whose_fields_differ_in_length_is_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        FrameBatch(_batch().pixels, np.arange(2), np.zeros(3), np.zeros(3))


def test_seconds_of_huge_timestamps_are_finite() -> None:
    ticks = np.array([0, 2**62, NO_PTS + 1])
    assert np.isfinite(_seconds_of(ticks, Fraction(1001, 30000))).all()
