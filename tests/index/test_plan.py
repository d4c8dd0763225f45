"""Which units a plan names where references aren't followed: H.264, HEVC, VP9."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.index import index_tables
from reelseek.index._plan import plan_frames
from reelseek.index._unit_build import flags_of_packets
from reelseek.index._units import Pruning, UnitFlag, UnitTable
from reelseek.index._video_record import read_facts, read_tables, write_record
from tests import corpus, structures

CLIPS = {clip.name: clip for clip in (*corpus.CLIPS, *structures.STRUCTURES)}
FED_BY_PACKET = (
    "b_frames.mp4", "b_pyramid_8.mp4", "open_gop.mp4", "hevc_open_gop.mp4", "hevc_trimmed.mp4",
    "x264_long_leading.mp4", "x265_long_leading.mp4", "x265_decodable_leading.mp4",
    "x265_three_layers.mp4", "sets_in_b_frame.mp4", "vp9.mp4",
)  # fmt: skip
BY_ENTRY = (Pruning.DROPPABLE, Pruning.NONE)
"""All from the entry on, or without what nothing reads."""
WITH_LEADING_PICTURES = {"hevc_open_gop.mp4", "x265_long_leading.mp4"}


def tables_of(clip: str) -> list[UnitTable]:
    """The clip's units as they are found, and as a record gives them back."""
    tables = index_tables(str(corpus.made(CLIPS[clip], corpus.corpus_folder())))
    if isinstance(tables.units, str):
        return []
    record = write_record(b"a", 1 << 40, 0, tables)
    stored = read_tables(record.body, record.head(), read_facts(record.facts)).units
    assert isinstance(stored, UnitTable)
    return [tables.units, stored]


def from_entry(table: UnitTable, entry: int, targets: set[int]) -> list[int]:
    """The definition: everything from the entry on that belongs to it or to a later one."""
    drops = table.pruning is Pruning.DROPPABLE
    found = []
    for unit in range(entry, max(targets) + 1):
        is_droppable = drops and bool(table.flags[unit] & int(UnitFlag.DROPPABLE))
        if unit in targets or (table.entry_of_unit[unit] >= entry and not is_droppable):
            found.append(unit)
    return found


@pytest.mark.parametrize("clip", FED_BY_PACKET)
def test_plan_has_what_the_entry_leads_to_and_no_leading_pictures(clip: str) -> None:
    found = tables_of(clip)
    assert found or clip not in WITH_LEADING_PICTURES
    for table in found:
        frames = range(len(table.of_frame))
        pairs = [*itertools.pairwise(frames), *zip(frames, frames[7:], strict=False)]
        for pair in [*((frame,) for frame in frames), *pairs]:
            for run in plan_frames(table, pair):
                entry = int(table.entry_of_frame[run.frames[0]])
                assert run.units == from_entry(table, entry, set(run.targets))


@given(data=st.data(), count=st.integers(1, 14), pruning=st.sampled_from(BY_ENTRY))
def test_plan_of_any_table_is_the_definitions(
    data: st.DataObject, count: int, pruning: Pruning
) -> None:
    """Hidden units, leading pictures of any entry, droppable ones, in any order of display."""
    every = st.integers(0, count - 1)
    shown = data.draw(st.lists(every, min_size=1, unique=True))
    starts = sorted({0, *data.draw(st.lists(every, max_size=3))})
    entries = [data.draw(st.sampled_from([s for s in starts if s <= unit])) for unit in shown]
    told = data.draw(st.lists(every, max_size=2, unique=True))
    drops = set(data.draw(st.lists(every, max_size=4))) - set(told)
    droppable = sorted(drops) if pruning is Pruning.DROPPABLE else []
    flags, entry_of_unit = flags_of_packets(
        count, np.array(shown), np.array(entries), np.array(droppable, int), np.array(told, int)
    )
    nothing = np.zeros(count, np.uint8)
    table = UnitTable(
        offset=np.arange(count), size=np.ones(count, np.int64), reads=nothing, writes=nothing,
        flags=flags, of_frame=np.array(shown), entry_of_frame=np.array(entries),
        entry_of_unit=entry_of_unit, pruning=pruning, pruning_reason="", codec="hevc",
        configuration=b"",
    )  # fmt: skip
    frames = data.draw(st.lists(st.integers(0, len(shown) - 1), min_size=1, max_size=4))
    for run in plan_frames(table, frames):
        entry = entries[run.frames[0]]
        assert run.units == from_entry(table, entry, set(run.targets))


@pytest.mark.parametrize("clip", sorted(WITH_LEADING_PICTURES))
def test_leading_pictures_are_marked(clip: str) -> None:
    for table in tables_of(clip):
        assert any(flag & UnitFlag.LEADING for flag in table.flags.tolist())
