"""The sidecar gives the tables that indexing gives, or none."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from reelseek.errors import IndexFileError, ReelseekError, UnsupportedVideoError, VideoError
from reelseek.index import (
    FrameTable,
    Sidecar,
    VideoTables,
    _stored_tables,
    build_index,
    index_tables,
)
from reelseek.index import _sidecar as reading
from reelseek.index import _sidecar_writer as writing
from reelseek.index._columns import NOT_WRITTEN_BY_US, Columns, ColumnWriter
from reelseek.index._plan import plan_frames
from reelseek.index._sidecar_writer import SidecarWriter
from reelseek.index._stamp import stamp_in
from reelseek.index._units import UnitTable
from reelseek.index._video_record import (
    MOST_SEEN,
    VideoRecord,
    read_facts,
    read_head,
    read_tables,
    write_record,
)
from reelseek.index._worker import index_file
from reelseek.video._open import open_with_tables
from tests import corpus
from tests.index.tables import make_folder, same

SOUND = [clip.name for clip in corpus.CLIPS if clip.sound]
MOST_BYTES_PER_FRAME = 24
MOST_OPEN_SECONDS = 0.010

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def written(path: Path, folder: Path, videos: list[Path]) -> Path:
    writer = SidecarWriter(path, path.with_suffix(".partial"))
    for video in videos:
        relative = os.fsencode(video.relative_to(folder))
        record = index_file(str(folder), relative)
        assert isinstance(record, VideoRecord)
        writer.add(record, relative)
    writer.finish()
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a few videos with its index; not to be changed."""
    root = tmp_path_factory.mktemp("indexed")
    written(root / "index.bin", root, make_folder(root))
    return root


def videos_of(folder: Path) -> list[Path]:
    return sorted((folder / "videos").iterdir())


def opened(folder: Path) -> Sidecar:
    return Sidecar(str(folder / "index.bin"), str(folder))


def looked_up(sidecar: Sidecar, video: Path) -> VideoTables:
    tables = sidecar.lookup(str(video))
    assert tables is not None
    return tables


# What goes in comes out


@pytest.mark.parametrize("clip", SOUND)
def test_tables_of_a_record_are_those_of_indexing(clip: str) -> None:
    tables = index_tables(str(corpus.clip_path(clip)))
    record = write_record(b"a.mp4", 1 << 40, 7, tables)
    head = record.head()
    assert (head.path, head.num_bytes, head.mtime_ns) == (b"a.mp4", 1 << 40, 7)
    assert same(read_tables(record.body, head, read_facts(record.facts)), tables)


@pytest.mark.parametrize("clip", SOUND)
def test_single_values_of_a_record_are_those_of_its_columns(clip: str) -> None:
    tables = index_tables(str(corpus.clip_path(clip)))
    record = write_record(b"a.mp4", 1 << 40, 7, tables)
    stored = read_tables(record.body, record.head(), read_facts(record.facts))
    one_by_one, frames = stored.frames, tables.frames
    every = range(len(frames))
    assert one_by_one.damaged_among(every) == frames.damaged_among(every)
    assert frames.damaged_among(every) == frames.is_damaged.nonzero()[0].tolist()
    for frame in every:
        times = (frames.pts_seconds()[[frame]], frames.duration_seconds()[[frame]])
        assert np.array_equal(one_by_one.times_at([frame]), times, True)
        assert np.array_equal(frames.times_at([frame]), times, True)
    assert same(one_by_one.for_many_reads(), frames)
    if isinstance(tables.units, str):
        return
    assert isinstance(stored.units, UnitTable)
    units, count = tables.units, len(tables.units)
    assert stored.units.spans_of(every) == units.spans_of(every)
    assert [stored.units.places_of([unit])[0] for unit in range(count)] == units.places_of(
        range(count)
    )
    for first, stop in [(0, count), (count // 3, count // 2), (count - 1, count), (0, 0)]:
        found, right = stored.units.slots_between(first, stop), units.slots_between(first, stop)
        assert [list(slots) for slots in found] == [list(slots) for slots in right]
    assert same(stored.units.for_many_reads(), units)


@settings(max_examples=300)
@given(data=st.data())
def test_columns_that_nobody_wrote_give_a_typed_error_or_other_numbers(data: st.DataObject) -> None:
    path = str(corpus.clip_path("av1_g20.mp4"))
    record = write_record(b"a.mp4", *stamp_in(os.stat(path)), index_tables(path))
    start = record.head().columns_at
    body = bytearray(record.body)
    for _ in range(data.draw(st.integers(1, 6))):
        body[data.draw(st.integers(start, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(start + 80, len(body)))]
    stored = read_tables(bytes(body), record.head(), read_facts(record.facts))
    try:
        for name in [field.name for field in dataclasses.fields(FrameTable)]:
            getattr(stored.frames, name)
        assert isinstance(stored.units, UnitTable)
        plan_frames(stored.units, [3, 19])
        with open_with_tables(path, stored, backend="indexed") as video:
            video.get_frames_at([3, 19])
        for name in [field.name for field in dataclasses.fields(UnitTable)]:
            getattr(stored.units, name)
    except ReelseekError as exc:
        assert "index" in str(exc) or isinstance(exc, VideoError)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@settings(max_examples=80)
@given(data=st.data())
def test_facts_that_nobody_wrote_give_a_typed_error(data: st.DataObject) -> None:
    path = str(corpus.clip_path("av1_g20.mp4"))
    record = write_record(b"a.mp4", *stamp_in(os.stat(path)), index_tables(path))
    about = json.loads(record.facts)
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from([about, about, about["units"]]))
        key = data.draw(st.sampled_from([*sorted(place), "configuration"]))
        if key != "units":
            place[key] = data.draw(JSON)
    if data.draw(st.booleans()):
        about = data.draw(JSON | st.just({**about, "units": data.draw(JSON)}))
    try:
        facts = read_facts(json.dumps(about).encode())
    except NOT_WRITTEN_BY_US:
        return
    stored = read_tables(record.body, record.head(), facts)
    with contextlib.suppress(ReelseekError), open_with_tables(path, stored) as video:
        video.get_frames_at([3, 19])


@pytest.mark.parametrize(
    "changed",
    [
        {"time_base": [1, 0]}, {"time_base": [0, 1]}, {"size": [1 << 30, 1 << 30]},
        {"size": [0, 64]}, {"size": ["320", 64]}, {"size": [320]}, {"pixel_format": [1]},
        {"codec": "\ud800"}, {"color_matrix": 1.0}, {"orientation": [0, 2, 0]}, {"notes": 5},
        {"units": "abc"}, {"units": {"codec": "nonsense"}}, {"units": {"codec": "ass"}},
        {"units": {"codec": "av1", "pruning": "ALL"}}, {"configuration": "0"},
    ],
)  # fmt: skip
def test_facts_that_can_not_be_are_refused(changed: dict[str, Any]) -> None:
    tables = index_tables(str(corpus.clip_path("av1_g20.mp4")))
    about = json.loads(write_record(b"a.mp4", 1 << 40, 7, tables).facts)
    with pytest.raises(NOT_WRITTEN_BY_US):
        read_facts(json.dumps({**about, **changed}).encode())


def test_facts_of_a_record_with_a_right_sum_and_wrong_content_are_made_anew(tmp_path: Path) -> None:
    (video,) = make_folder(tmp_path, "hevc.mp4")
    record = index_file(str(tmp_path), os.fsencode(video.relative_to(tmp_path)))
    assert isinstance(record, VideoRecord)
    path = tmp_path / "index.bin"
    writer = SidecarWriter(path, path.with_suffix(".partial"))
    writer.add(record._replace(facts=b"[]"), record.head().path)
    writer.finish()
    sidecar = opened(tmp_path)
    assert sidecar.lookup(str(video)) is None
    assert list(sidecar.records()) == []
    assert build_index(tmp_path, index_path=path).num_indexed == 1
    assert same(looked_up(opened(tmp_path), video), index_tables(str(video)))


def test_facts_seen_are_bounded() -> None:
    tables = index_tables(str(corpus.clip_path("hevc.mp4")))
    record = write_record(b"a.mp4", 1 << 40, 7, tables)
    facts = read_facts(record.facts)
    for listed in range(3 * MOST_SEEN):
        fields = facts.frame_fields(record.head()._replace(num_frames_from_header=listed))
        assert fields["stream"].num_frames_from_header == listed
    assert len(facts.seen) <= MOST_SEEN


def test_spans_that_go_backwards_are_refused() -> None:
    tables = index_tables(str(corpus.clip_path("av1_g20.mp4")))
    assert isinstance(tables.units, UnitTable)
    backwards = dataclasses.replace(tables.units, entry_of_frame=tables.units.of_frame + 1)
    with pytest.raises(IndexFileError, match="entry"):
        plan_frames(backwards, [3])


def test_few_places_of_a_long_file_are_looked_up_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = index_tables(str(corpus.clip_path("av1_g20.mp4")))
    record = write_record(b"a.mp4", 1 << 40, 7, tables)
    stored = read_tables(record.body, record.head(), read_facts(record.facts))
    assert isinstance(stored.units, UnitTable)
    assert isinstance(tables.units, UnitTable)
    count = len(stored.units)
    monkeypatch.setattr(_stored_tables, "FEW_UNITS", 0)
    monkeypatch.setattr(_stored_tables, "UNITS_FOR_ONE", 10)
    few, many = range(count // 10), range(count // 10 + 1)
    assert stored.units.places_of(few) == tables.units.places_of(few)
    assert "offset" not in vars(stored.units)
    assert stored.units.places_of(many) == tables.units.places_of(many)
    assert "offset" in vars(stored.units)


def test_tables_of_a_record_can_be_copied_pickled_and_changed() -> None:
    tables = index_tables(str(corpus.clip_path("b_frames.mp4")))
    record = write_record(b"a.mp4", 1 << 40, 7, tables)
    stored = read_tables(record.body, record.head(), read_facts(record.facts))
    pairs: list[tuple[Any, Any]] = [(stored.frames, tables.frames), (stored.units, tables.units)]
    for table, right in pairs:
        assert same(pickle.loads(pickle.dumps(table)), right)
        assert same(copy.copy(table), right)
        assert same(copy.deepcopy(table), right)
        changed = dataclasses.replace(table, configuration=b"x")
        assert (changed.configuration, len(changed)) == (b"x", len(right))


def test_lookup_is_equal_to_indexing(folder: Path) -> None:
    sidecar = opened(folder)
    for video in videos_of(folder):
        assert same(looked_up(sidecar, video), index_tables(str(video)))


def test_file_that_units_cannot_read_keeps_the_reason(folder: Path) -> None:
    tables = looked_up(opened(folder), folder / "videos" / "00000_joined.mp4")
    assert tables.units == "some frames can only be decoded from the start of the file"


def test_real_datasets_come_back_equal_in_few_bytes(
    real_datasets: Path, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    for root in sorted(path for path in real_datasets.iterdir() if path.is_dir()):
        target = tmp_path / f"{root.name}.bin"
        report = build_index(root, index_path=target)
        assert report.failures == ()
        sidecar = Sidecar(str(target), str(root))
        for video in list(root.rglob("*.mp4"))[:4]:
            assert same(looked_up(sidecar, video), index_tables(str(video)))
        assert report.bytes_per_frame <= MOST_BYTES_PER_FRAME, root.name
        figure(f"index of {root.name}: {report.bytes_per_frame:.1f} bytes a frame")


numbers = st.one_of(
    st.integers(-300, 300), st.integers(-(2**31), 2**31), st.integers(-(2**63), 2**63 - 1)
)


@given(data=st.data(), length=st.integers(0, 40))
def test_any_column_comes_back(data: st.DataObject, length: int) -> None:
    column = st_numpy.arrays(np.int64, length, elements=numbers)
    values, predicted = data.draw(column), data.draw(column)
    truths = data.draw(st_numpy.arrays(np.bool_, length))
    octets = data.draw(st_numpy.arrays(np.uint8, length))
    writer = ColumnWriter()
    writer.integers(values)
    writer.booleans(truths)
    writer.integers(values, predicted)
    writer.octets(octets)
    writer.integers(values, values)
    columns = Columns(b"head" + writer.getvalue(), 4, [length] * 5)
    assert np.array_equal(columns.integers(4, values), values)
    assert np.array_equal(columns.octets(3), octets)
    assert np.array_equal(columns.integers(2, predicted), values)
    assert np.array_equal(columns.booleans(1), truths)
    assert np.array_equal(columns.integers(0), values)
    every = range(length)
    assert columns.items(0, every) == values.tolist()
    assert columns.items(1, every) == truths.tolist()
    assert columns.items(2, every) == (values - predicted).tolist()
    assert columns.items(4, every[::-1]) == [0] * length
    for outside in (-1, length):
        with pytest.raises(IndexFileError):
            columns.items(0, [outside])


def test_paths_with_one_hash_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (reading, writing):
        monkeypatch.setattr(module, "hash_of", lambda _relative: 5)
    made = make_folder(tmp_path)
    written(tmp_path / "index.bin", tmp_path, made)
    sidecar = opened(tmp_path)
    assert all(same(looked_up(sidecar, video), index_tables(str(video))) for video in made)
    assert sidecar.lookup(str(tmp_path / "meta" / "info.json")) is None
    monkeypatch.setattr(reading, "MOST_ALIKE", 2)  # names can be made so that all are alike
    found = [sidecar.lookup(str(video)) for video in made]
    assert len([tables for tables in found if tables is not None]) == 2


# Changed videos


def test_changed_video_has_no_tables(tmp_path: Path) -> None:
    first, second, third = make_folder(tmp_path, "b_frames.mp4", "hevc.mp4", "vp9.mp4")
    written(tmp_path / "index.bin", tmp_path, [first, second, third])
    sidecar = opened(tmp_path)
    os.utime(first, ns=(0, first.stat().st_mtime_ns + 1))
    times = second.stat()
    second.write_bytes(second.read_bytes() + b"\0")
    os.utime(second, ns=(times.st_atime_ns, times.st_mtime_ns))
    third.unlink()
    assert [sidecar.lookup(str(video)) for video in (first, second, third)] == [None] * 3


def test_other_paths_have_no_tables(folder: Path) -> None:
    sidecar = opened(folder)
    assert sidecar.lookup(str(folder / "meta" / "info.json")) is None
    assert sidecar.lookup(str(folder) + "x/videos/00000_hevc.mp4") is None
    assert sidecar.lookup("/") is None


# Damage


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bytes_never_give_a_wrong_table(
    folder: Path, right_tables: dict[Path, VideoTables], data: st.DataObject, tmp_path: Path
) -> None:
    content = bytearray((folder / "index.bin").read_bytes())
    places = st.one_of(
        st.integers(0, len(content) - 1),
        st.integers(0, 80),
        st.integers(len(content) - 16 * len(right_tables), len(content) - 1),
    )
    for place, mask in data.draw(st.lists(st.tuples(places, st.integers(1, 255)), max_size=8)):
        content[place] ^= mask
    path = tmp_path / "flipped.bin"
    path.write_bytes(content)
    try:
        sidecar = Sidecar(str(path), str(folder))
    except IndexFileError:
        return
    for video, tables in right_tables.items():
        found = sidecar.lookup(str(video))
        assert found is None or same(found, tables)


@pytest.fixture(scope="module")
def right_tables(folder: Path) -> dict[Path, VideoTables]:
    return {video: index_tables(str(video)) for video in videos_of(folder)}


def test_each_byte_of_a_record_is_under_its_sum(folder: Path, tmp_path: Path) -> None:
    content = (folder / "index.bin").read_bytes()
    video = folder / "videos" / "00000_hevc.mp4"
    place = content.index(b"00000_hevc.mp4") + 200
    path = tmp_path / "flipped.bin"
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    sidecar = Sidecar(str(path), str(folder))
    assert sidecar.lookup(str(video)) is None
    assert sidecar.lookup(str(folder / "videos" / "00000_b_frames.mp4")) is not None


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_cut_index_is_refused(folder: Path, tmp_path: Path, share: float) -> None:
    content = (folder / "index.bin").read_bytes()
    path = tmp_path / "cut.bin"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(IndexFileError, match="reelseek index"):
        Sidecar(str(path), str(folder))


def test_index_of_another_version_is_refused(folder: Path, tmp_path: Path) -> None:
    content = bytearray((folder / "index.bin").read_bytes())
    content[8] = 99
    path = tmp_path / "newer.bin"
    path.write_bytes(content)
    with pytest.raises(IndexFileError, match="version 99"):
        Sidecar(str(path), str(folder))


def test_index_that_is_cut_while_it_is_open_gives_nothing_and_harms_nothing(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "index.bin"
    path.write_bytes((folder / "index.bin").read_bytes())
    sidecar = Sidecar(str(path), str(folder))
    tables = looked_up(sidecar, videos_of(folder)[0])
    os.truncate(path, 64)
    assert sidecar.lookup(str(videos_of(folder)[0])) is None
    assert list(sidecar.records()) == []
    assert sidecar.has_whole_directory()  # it was read when the index was opened
    assert len(tables.frames.pts.tolist()) == len(tables.frames)  # a copy


def test_counts_beyond_the_file_are_refused_before_memory_is_asked_for() -> None:
    tables = index_tables(str(corpus.clip_path("one_frame.mp4")))
    record = write_record(b"a", 1 << 50, 0, tables)
    body = bytearray(record.body)
    body[16:20] = b"\xff" * 4
    with pytest.raises(ValueError, match="beyond"):
        read_head(bytes(body))


def test_video_with_more_frames_than_bytes_is_one_failure(tmp_path: Path) -> None:
    (video,) = make_folder(tmp_path, "hevc.mp4")
    with pytest.raises(UnsupportedVideoError, match="120 frames or packets in 119 bytes"):
        write_record(b"hevc.mp4", 119, 0, index_tables(str(video)))


# Processes


def lookup_in_child(sidecar: Sidecar, video: str, send: Callable[[int], None]) -> None:
    tables = sidecar.lookup(video)
    send(-1 if tables is None else len(tables.frames))


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_child_process_looks_up(folder: Path, start_method: str) -> None:
    sidecar = opened(folder)
    video = videos_of(folder)[0]
    expected = len(looked_up(sidecar, video).frames)
    context: Any = multiprocessing.get_context(start_method)
    answers = context.SimpleQueue()
    child = context.Process(target=lookup_in_child, args=(sidecar, str(video), answers.put))
    child.start()
    assert answers.get() == expected
    child.join()


def test_pickled_sidecar_looks_up(folder: Path) -> None:
    again = pickle.loads(pickle.dumps(opened(folder)))
    assert same(looked_up(again, videos_of(folder)[0]), index_tables(str(videos_of(folder)[0])))


# Size


def test_hundred_thousand_videos_open_as_fast_as_ten(
    tmp_path: Path, figure: Callable[[str], None]
) -> None:
    seconds = {count: open_seconds(tmp_path, count) for count in (10, 100_000)}
    for count, taken in seconds.items():
        figure(f"index of {count:,} videos: opened, one looked up: {taken * 1e3:.3f} ms")
    assert seconds[100_000] < MOST_OPEN_SECONDS


def open_seconds(root: Path, count: int) -> float:
    """The median time to open an index of so many videos and to look one up."""
    video = root / "videos/chunk-000/observation.images.top/episode_000003.mp4"
    if not video.exists():
        video.parent.mkdir(parents=True)
        video.write_bytes(corpus.clip_path("one_frame.mp4").read_bytes())
    tables, status = index_tables(str(video)), video.stat()
    path = root / f"{count}.bin"
    writer = SidecarWriter(path, root / "partial")
    name = b"videos/chunk-000/observation.images.top/episode_%06d.mp4"
    record = write_record(name % 0, status.st_size, status.st_mtime_ns, tables)
    for number in range(count):
        body = record.body.replace(name % 0, name % number)
        writer.add(VideoRecord(record.facts, body), name % number)
    writer.finish()
    times = []
    for _ in range(7):
        started = time.perf_counter()
        found = Sidecar(str(path), str(root)).lookup(str(video))
        times.append(time.perf_counter() - started)
        assert same(found, tables)
    return float(np.median(times))
