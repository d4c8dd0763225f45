"""Files that are indexed together have the tables that each has alone."""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reelseek.index import _mp4_tables, index_tables
from reelseek.index._build_index import ALONE_BYTES, TOGETHER_FILES, groups_of
from reelseek.index._mp4_tables import read_many_sample_tables, read_sample_tables
from reelseek.index._worker import index_file, index_files
from tests import corpus, structures
from tests.index.tables import same

CLIPS = {
    clip.name: clip
    for clip in (*corpus.CLIPS, *structures.STRUCTURES)
    if clip.name.endswith((".mp4", ".mov", ".mkv")) and clip.name != "empty.mp4"
}
ALIKE = {
    "av1": ("av1_g20.mp4", "av1_g20.mp4", "av1_g2.mp4"),
    "h264": ("b_frames.mp4", "b_frames.mp4", "b_frames.mp4"),
    "hevc": ("hevc.mp4", "hevc.mp4", "hevc.mp4"),
    "hevc without IDR": ("hevc_open_gop.mp4", "hevc_open_gop.mp4"),
    "vp9": ("vp9.mp4", "vp9.mp4"),
}
"""Files that are read in one go, if they are of one configuration."""


@functools.cache
def path_of(clip: str) -> str:
    return str(corpus.made(CLIPS[clip], corpus.corpus_folder()))


def damaged_copy(path: str, target: Path, place: int, value: int) -> str:
    """The file with one byte changed, somewhere."""
    data = bytearray(Path(path).read_bytes())
    data[place % len(data)] = value
    target.write_bytes(data)
    return str(target)


def assert_same_as_alone(paths: list[str]) -> None:
    for path, found in zip(paths, read_many_sample_tables(paths), strict=True):
        if found is not None:
            assert read_sample_tables(path) is not None
            assert same(index_tables(path, found), index_tables(path)), path


@pytest.mark.parametrize("clips", ALIKE.values(), ids=ALIKE)
def test_files_of_one_configuration_are_read_in_one_go(clips: tuple[str, ...]) -> None:
    paths = [path_of(clip) for clip in clips]
    assert None not in read_many_sample_tables(paths)
    assert_same_as_alone(paths)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_files_read_in_one_go_say_what_each_says_alone(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(CLIPS)), min_size=1, max_size=4))
    names += data.draw(st.lists(st.sampled_from(names), max_size=3))  # alike, and so joined
    paths = [path_of(name) for name in names]
    folder = corpus.corpus_folder() / "damaged"
    folder.mkdir(exist_ok=True)
    number = data.draw(st.integers(0, 2 * len(paths)))
    if number < len(paths):
        target = folder / f"{os.getpid()}{Path(paths[number]).suffix}"
        place, value = data.draw(st.integers(0, 1 << 20)), data.draw(st.integers(0, 255))
        paths[number] = damaged_copy(paths[number], target, place, value)
    assert_same_as_alone(paths)


def test_records_of_files_indexed_together_are_those_of_each(tmp_path: Path) -> None:
    names = ["b_frames.mp4", "vp9.mp4", "text.mp4", "hevc.mp4", "b_frames.mp4", "matroska.mkv"]
    files = []
    for number, name in enumerate(names):
        file = tmp_path / f"{number}_{name}"
        if name == "text.mp4":
            file.write_text("not a video")
        else:
            shutil.copy(path_of(name), file)
        files.append(os.fsencode(file.name))
    os.mkfifo(tmp_path / "pipe.mp4")
    files += [b"missing.mp4", b"pipe.mp4"]
    together = index_files(str(tmp_path), files)
    assert together == [index_file(str(tmp_path), file) for file in files]
    assert [isinstance(found, str) for found in together].count(True) == 3


def test_file_of_more_samples_than_bytes_is_left_to_the_demuxer(tmp_path: Path) -> None:
    data = Path(path_of("b_frames.mp4")).read_bytes()
    at = data.index(b"stsz") + 8
    count = int.from_bytes(data[at + 4 : at + 8], "big")
    sizes = (len(data) // count * 2).to_bytes(4, "big")
    (tmp_path / "a.mp4").write_bytes(data[:at] + sizes + data[at + 4 :])
    assert read_sample_tables(str(tmp_path / "a.mp4")) is None


def test_long_file_is_not_read_together_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of("b_frames.mp4")
    assert read_many_sample_tables([path]) != [None]
    monkeypatch.setattr(_mp4_tables, "MOST_TOGETHER", 100)
    assert read_many_sample_tables([path]) == [None]
    assert read_sample_tables(path) is not None


def test_groups_are_small_where_several_processes_share_them(tmp_path: Path) -> None:
    files = [b"%03d.mp4" % number for number in range(100)]
    for file in files:
        (tmp_path / os.fsdecode(file)).write_bytes(b"\0" * 1000)
    folder = str(tmp_path)
    assert [len(group) for group in groups_of(folder, files, 1)] == [32, 32, 32, 4]
    assert {len(group) for group in groups_of(folder, files, 8)} <= {3, 1}
    assert [file for group in groups_of(folder, files, 8) for file in group] == files
    assert groups_of(folder, [], 4) == []


def test_large_files_are_indexed_alone(tmp_path: Path) -> None:
    files = [b"a.mp4", b"b.mp4", b"large.mp4", b"c.mp4", b"gone.mp4"]
    for file in files[:-1]:
        (tmp_path / os.fsdecode(file)).write_bytes(b"\0" * 1000)
    with open(tmp_path / "large.mp4", "r+b") as large:
        large.truncate(ALONE_BYTES)
    groups = groups_of(str(tmp_path), files, 1)
    assert groups == [[b"a.mp4", b"b.mp4"], [b"large.mp4"], [b"c.mp4", b"gone.mp4"]]
    assert len(files) < TOGETHER_FILES
