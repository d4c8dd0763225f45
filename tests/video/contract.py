"""What every backend owes: each frame of each clip equal to the oracle, or refused with a reason.

One class; ``test_backends.py`` subclasses it per backend. The pairs that were compared are counted
and shown at the end of the test run.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import reelseek
from reelseek.errors import UnsupportedVideoError, VideoError
from tests import corpus, oracle
from tests.conftest import skip_without
from tests.figures import compared, refused

VIDEOS = (*oracle.whole_clips(), *oracle.damaged_clips())


class BackendContract:
    """The tests; a subclass names the backend and the clips that it refuses."""

    name: ClassVar[str]
    package: ClassVar[str]
    refuses: ClassVar[Mapping[str, str]]
    """The clips that it refuses, and words of the reason."""
    decodes_ahead: ClassVar[bool] = False
    """True where damage further on may fail the read of a good frame."""
    step: ClassVar[int] = 1
    """Of how many frames one is read where all would take minutes."""
    ten_bit_levels: ClassVar[int] = 0
    """By how many levels pixels of more than 8 bits may differ."""

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        if importlib.util.find_spec(self.package) is None:
            skip_without(self.name, f"{self.package} isn't installed")

    @pytest.mark.parametrize("clip", sorted(VIDEOS))
    def test_clip_is_refused_exactly_where_it_is_listed(self, clip: str) -> None:
        try:
            self._open(clip).close()
        except UnsupportedVideoError as error:
            refused[self.name] += 1
            assert self.refuses.get(clip, "a reason in the table") in f"{error.what}"
            assert error.remedy
            assert error.backend == self.name
        else:
            assert clip not in self.refuses

    @pytest.mark.parametrize("clip", oracle.whole_clips())
    def test_frames_are_those_that_ffmpeg_displays(self, clip: str) -> None:
        with self._opened(clip) as video:
            assert len(video) == len(oracle.clip(clip).frames)
            if oracle.clip(clip).has_unique_pts:
                assert tuple(video.table.pts.tolist()) == oracle.clip(clip).pts
            for frame in self._in_random_order(len(video))[:: self.step]:
                self._check(clip, frame, video[frame].numpy())
                compared[self.name] += 1

    @pytest.mark.parametrize("clip", oracle.whole_clips())
    def test_frames_read_backwards_are_the_same(self, clip: str) -> None:
        with self._opened(clip) as video:
            for frame in reversed(range(0, len(video), 3 * self.step)):
                self._check(clip, frame, video[frame].numpy())

    @pytest.mark.parametrize("clip", oracle.whole_clips())
    def test_frames_read_in_order_with_gaps_are_the_same(self, clip: str) -> None:
        with self._opened(clip) as video:
            for frame in range(0, len(video), 3 * self.step):
                self._check(clip, frame, video[frame].numpy())

    @pytest.mark.parametrize("clip", oracle.whole_clips())
    def test_pairs_of_frames_are_the_same(self, clip: str) -> None:
        with self._opened(clip) as video:
            last = len(video) - 1
            for base in self._in_random_order(len(video))[:: 4 * self.step]:
                pair = [base, min(base + 16, last)]
                self._check_all(clip, pair, video.get_frames_at(pair).numpy())

    @pytest.mark.parametrize("clip", oracle.whole_clips())
    def test_one_batch_with_repeats_is_the_same(self, clip: str) -> None:
        with self._opened(clip) as video:
            frames = [*self._in_random_order(len(video)), len(video) - 1, 0, 0]
            self._check_all(clip, frames, video.get_frames_at(frames).numpy())

    @pytest.mark.parametrize("clip", oracle.damaged_clips())
    def test_frame_of_a_damaged_clip_is_right_or_refused(self, clip: str) -> None:
        displayed = oracle.clip(clip)
        with self._opened(clip) as video:
            readable = -1
            for frame in [*self._in_random_order(len(video)), *range(0, len(video), 3)]:
                try:
                    picture = video[frame].numpy()
                except VideoError as error:
                    assert error.remedy
                    assert error.frame == frame
                else:
                    expected = displayed.at(frame, int(video.table.pts[frame]))
                    assert expected is not None
                    np.testing.assert_array_equal(picture, expected)
                    readable = frame
                    compared[self.name] += 1
            assert readable >= 0 or self.decodes_ahead

    @pytest.mark.parametrize("clip", oracle.damaged_clips())
    def test_good_frame_reads_right_after_a_failed_read(self, clip: str) -> None:
        if self.decodes_ahead:
            pytest.skip("which of its reads fail depends on how far ahead its threads are")
        with self._opened(clip) as video:
            good, bad = self._good_and_bad(video)
            before = video[good].numpy().copy()
            for frame in bad:
                with pytest.raises(VideoError):
                    video[frame]
                np.testing.assert_array_equal(video[good].numpy(), before)

    def _open(self, clip: str) -> reelseek.Video:
        return reelseek.open_video(corpus.clip_path(clip), backend=self.name)

    def _opened(self, clip: str) -> reelseek.Video:
        if clip in self.refuses:
            pytest.skip("refused, as the table says")
        return self._open(clip)

    @staticmethod
    def _good_and_bad(video: reelseek.Video) -> tuple[int, list[int]]:
        good, bad = [], []
        for frame in range(0, len(video), 5):
            try:
                video[frame]
            except VideoError:
                bad.append(frame)
            else:
                good.append(frame)
        return good[0], bad[::4]

    def _check_all(self, clip: str, frames: Sequence[int], pictures: NDArray[np.uint8]) -> None:
        for frame, picture in zip(frames, pictures, strict=True):
            self._check(clip, frame, picture)

    def _check(self, clip: str, frame: int, picture: NDArray[np.uint8]) -> None:
        recipe = corpus.BY_NAME[clip]
        expected = oracle.clip(clip).frames[frame]
        if clip.startswith("ten_bit") and self.ten_bit_levels:
            apart = np.abs(picture.astype(np.int16) - expected)
            assert apart.max() <= self.ten_bit_levels
        else:
            assert np.array_equal(picture, expected), f"{clip}: frame {frame} differs"
        if recipe.bars and clip not in TURNED:
            assert corpus.number_shown(picture) == recipe.shows(frame)

    @staticmethod
    def _in_random_order(count: int) -> list[int]:
        order: list[int] = np.random.default_rng(count).permutation(count).tolist()
        return order


TURNED = frozenset({"rotated.mp4", "upside_down.mp4", "flipped.mp4", "turned_movie.mp4"})
