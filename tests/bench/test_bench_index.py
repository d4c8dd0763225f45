"""``reelseek bench index``: what is timed, what is written, and that the dataset is left alone."""

from __future__ import annotations

import pytest

import reelseek
from reelseek.bench.index import TIMED_GROUPS, IndexBench, bench_index
from reelseek.bench.index import _memory_of as memory_of
from reelseek.index import index_tables
from reelseek.sample import sample_dataset
from tests.corpus import clip_path


@pytest.fixture(scope="module")
def measured() -> IndexBench:
    return bench_index(reelseek.open_dataset(sample_dataset(), output="numpy"))


def test_every_file_is_indexed_by_each_in_turn(measured: IndexBench) -> None:
    assert len(set(measured.paths)) == len(measured.paths) == 6
    own, peer = measured.timings
    assert len(own.file_ms) >= TIMED_GROUPS and min(own.file_ms) > 0
    assert len(peer.file_ms) == len(own.file_ms) or peer.why_not


def test_fewer_files_are_chosen_by_the_seed() -> None:
    dataset = reelseek.open_dataset(sample_dataset(), output="numpy")
    chosen = [bench_index(dataset, files=2, seed=seed).paths for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] and len(chosen[0]) == 2


def test_the_index_file_keeps_a_frame_in_24_bytes(measured: IndexBench) -> None:
    assert 0 < measured.sidecar_bytes / measured.num_frames <= 24
    assert measured.open_ms and len(measured.lookup_ms) == len(measured.paths)


def test_memory_counts_each_array_once() -> None:
    tables = index_tables(str(clip_path("b_frames.mp4")))
    units = tables.units
    assert not isinstance(units, str) and units is not None
    assert units.offset.nbytes + tables.frames.pts.nbytes < memory_of(tables)
    # In H.264 a frame's unit is its packet: both tables hold one array.
    assert units.of_frame is tables.frames.decode_position
