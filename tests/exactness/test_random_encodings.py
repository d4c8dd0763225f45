"""Encoders with settings drawn at random: the index and the indexed engine against FFmpeg.

For each encoding: reads equal FFmpeg's sequential decode; the table from the sample tables equals
the one from a demux pass; the units lie where the table says; and the plan has no unit to spare.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reelseek
from reelseek.errors import UnsupportedVideoError, VideoError
from reelseek.index._build import index_tables, table_of
from reelseek.index._demux import demux
from reelseek.index._mp4_tables import read_sample_tables
from reelseek.index._plan import plan_frames
from reelseek.index._units import Pruning, UnitFlag, UnitTable
from reelseek.video.backends._contexts import CodecState
from tests import corpus, oracle
from tests.index.tables import same
from tests.structures import AOM, RAV1E, SVT, VP9, X264, X265

IN_CI = bool(os.environ.get("CI"))
SOURCE = "testsrc2=s=96x64:r=30:d=1.3,noise=alls=10:allf=t"
GOP = st.sampled_from([1, 2, 7, 16, 39])
FLAG = st.integers(0, 1)


def _options(
    encoder: str, template: str, *values: st.SearchStrategy[Any]
) -> st.SearchStrategy[str]:
    """Options of an encoder with values in the places of the braces."""
    return st.builds((encoder + template).format, *values)


ENCODERS = st.one_of(
    _options(  # on several threads, SVT-AV1 waits for itself for ever in one of some encodes
        SVT, " -g {} -svtav1-params lp=1:pred-struct={}:hierarchical-levels={}:film-grain={}",
        GOP, st.integers(1, 2), st.integers(2, 5), st.sampled_from([0, 8]),
    ),
    _options(
        AOM, " -g {} -lag-in-frames {} -aom-params error-resilient={}:enable-order-hint={}",
        GOP, st.sampled_from([0, 10, 25]), FLAG, FLAG,
    ),
    _options(
        RAV1E, " -g {} -rav1e-params low_latency={}:error_resilient={}",
        GOP, st.sampled_from(["true", "false"]), st.sampled_from(["true", "false"]),
    ),
    _options(
        X264, " -g {} -x264-params bframes={}:b-pyramid={}:open-gop={}:ref={}:weightp={}:"
        "intra-refresh={}:repeat-headers={}",
        GOP, st.integers(0, 8), st.sampled_from(["none", "strict", "normal"]), FLAG,
        st.integers(1, 6), st.integers(0, 2), FLAG, FLAG,
    ),
    _options(
        X265, ":keyint={}:bframes={}:b-pyramid={}:open-gop={}:ref={}:radl={}:"
        "temporal-layers={}",
        GOP, st.integers(2, 8), FLAG, FLAG, st.integers(1, 4), st.integers(0, 2),
        st.integers(1, 4),
    ),
    _options(
        VP9, " -g {} -lag-in-frames {} -auto-alt-ref {} -error-resilient {}",
        GOP, st.sampled_from([0, 16]), FLAG, st.sampled_from(["0", "default"]),
    ),
)  # fmt: skip


def _check_encoding(encoder: str, suffix: str, trim: float, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"encoded.{suffix}"
        corpus.ffmpeg("-f", "lavfi", "-i", SOURCE, *encoder.split(), path)
        if trim:
            whole, path = path, path.with_name(f"trimmed.{suffix}")
            corpus.ffmpeg("-ss", str(trim), "-i", whole, "-c", "copy", path)
            try:
                reelseek.open_video(path).close()
            except VideoError:
                return  # cut where nothing can be decoded
        rng = np.random.default_rng(seed)
        displayed = oracle.decode(str(path))
        _check_reads(path, displayed, rng)
        _check_tables(path)
        units = index_tables(str(path)).units
        if isinstance(units, UnitTable):
            _check_units(units, path)
            _check_plan(units, path, rng)


def _check_reads(path: Path, displayed: oracle.Decoded, rng: np.random.Generator) -> None:
    try:
        video = reelseek.open_video(path, backend="indexed")
    except UnsupportedVideoError:
        return
    with video:
        count = len(video)
        assert count == len(displayed.frames)
        order: list[int] = rng.permutation(count).tolist()
        sizes = rng.integers(1, 6, count).tolist()
        for start, size in zip(range(0, count, 3), sizes, strict=False):
            frames = order[start : start + size]
            pictures = video.get_frames_at(frames).numpy()
            for frame, picture in zip(frames, pictures, strict=True):
                assert np.array_equal(picture, displayed.frames[frame])
        for frame in range(count):
            assert np.array_equal(video[frame].numpy(), displayed.frames[frame])


def _check_tables(path: Path) -> None:
    """The sample tables say what a demux pass says, where they suffice."""
    found = read_sample_tables(str(path))
    if found is not None:
        one, other = table_of(str(path), *found), table_of(str(path), *demux(str(path)))
        assert same(one, other), [
            name
            for name in one.__dataclass_fields__
            if not same(getattr(one, name), getattr(other, name))
        ]


def _check_units(table: UnitTable, path: Path) -> None:
    assert np.all(table.size > 0)
    assert np.all(table.offset >= 0)
    assert np.all(table.offset + table.size <= path.stat().st_size)
    assert np.all(np.diff(np.sort(table.of_frame)) > 0)
    assert np.all(table.flags[table.of_frame] & np.uint8(UnitFlag.SHOWN))
    assert np.all(table.entry_of_frame <= table.of_frame)
    assert np.all(table.flags[table.entry_of_frame] & np.uint8(UnitFlag.ENTRY))
    if table.pruning is Pruning.SLOTS:
        assert np.all(table.reads[table.entry_of_frame] == 0)
        assert np.all(table.writes[table.entry_of_frame] == 0xFF)


def _check_plan(table: UnitTable, path: Path, rng: np.random.Generator) -> None:
    """Without any one unit of the plan, the frame can't be decoded, or is another one.

    One that nothing in the frame shows may be left over: a reference that a header names and no
    block uses. So the plan as a whole must be needed, not each unit of each plan.
    """
    if table.pruning is not Pruning.SLOTS:
        return
    data = path.read_bytes()
    tried = spared = 0
    for frame in rng.choice(len(table.of_frame), 3).tolist():
        (run,) = plan_frames(table, [frame])
        whole = _decoded(table, data, run.units)
        assert whole is not None
        for left_out in run.units[:-1][-6:]:
            rest = [unit for unit in run.units if unit != left_out]
            tried += 1
            spared += _decoded(table, data, rest) == whole
    assert tried == 0 or spared < tried


def _decoded(table: UnitTable, data: bytes, units: list[int]) -> bytes | None:
    """The picture that the last of these units gives; None where it can't be decoded."""
    import av

    state = CodecState(table.codec, table.configuration)
    pictures: list[Any] = []
    try:
        for unit in units:
            offset, size = table.offset.item(unit), table.size.item(unit)
            pictures = list(state.feed(unit, data[offset : offset + size]))
    except av.error.FFmpegError:
        return None
    return pictures[0].to_ndarray().tobytes() if pictures else None


DRAWN = {
    "encoder": ENCODERS,
    "suffix": st.sampled_from(["mp4", "mp4", "mkv"]),
    "trim": st.sampled_from([0.0, 0.0, 0.4]),
    "seed": st.integers(0, 999),
}
SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=5, deadline=None, derandomize=IN_CI, suppress_health_check=SLOW_DRAWS)
@given(**DRAWN)
def test_encodings_at_random_are_indexed_and_read_exactly(
    encoder: str, suffix: str, trim: float, seed: int
) -> None:
    _check_encoding(encoder, suffix, trim, seed)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=IN_CI, suppress_health_check=SLOW_DRAWS)
@given(**DRAWN)
def test_many_encodings_at_random_are_indexed_and_read_exactly(
    encoder: str, suffix: str, trim: float, seed: int
) -> None:
    _check_encoding(encoder, suffix, trim, seed)
