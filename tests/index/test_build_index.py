"""Building the index: only what changed, one builder at a time, and whatever kills it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.errors import DatasetNotFoundError, IndexFileError, VideoNotFoundError
from reelseek.index import (
    DatasetIndex,
    IndexReport,
    Sidecar,
    VideoTables,
    _video_record,
    build_index,
    index_tables,
)
from reelseek.index._location import cache_folder
from reelseek.index._sidecar_format import RECORD_HEAD
from reelseek.index._video_record import VideoRecord
from reelseek.index._worker import index_files
from reelseek.video import _open as opening
from reelseek.video._open import open_with_tables
from reelseek.workers import _child
from tests.corpus import clip_path
from tests.index.tables import make_folder, same
from tests.patience import PATIENCE

MOST_FILES_OPEN = 8


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REELSEEK_CACHE", str(tmp_path_factory.mktemp("cache")))


def index_of(root: Path) -> Path:
    return root / "meta" / "reelseek" / "index.bin"


def assert_good(root: Path, videos: list[Path]) -> None:
    """The dataset's index holds these videos, each as it is."""
    sidecar = Sidecar(str(index_of(root)), str(root))
    assert len(sidecar) == len(videos)
    for video in videos:
        found = sidecar.lookup(str(video))
        assert found is not None and same(found, index_tables(str(video)))


def built(root: Path, **options: Any) -> IndexReport:
    return build_index(root, jobs=2, **options)


# What is indexed


def test_all_videos_are_indexed_and_progress_is_told(tmp_path: Path) -> None:
    videos = make_folder(tmp_path)
    told: list[tuple[int, int]] = []
    report = built(tmp_path, tell=lambda done, total: told.append((done, total)))
    assert (report.num_indexed, report.num_files, report.failures) == (6, 6, ())
    assert report.num_bytes == index_of(tmp_path).stat().st_size
    assert told == [(done, 6) for done in range(7)]
    assert_good(tmp_path, videos)


def test_second_build_finds_nothing_to_do(tmp_path: Path) -> None:
    make_folder(tmp_path)
    first = built(tmp_path)
    before = index_of(tmp_path).stat()
    again = built(tmp_path)
    after = index_of(tmp_path).stat()
    assert (again.num_indexed, again.num_files, again.num_frames) == (0, 6, first.num_frames)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_only_new_and_changed_videos_are_looked_into(tmp_path: Path) -> None:
    videos = make_folder(tmp_path)
    built(tmp_path)
    new = tmp_path / "videos" / "new.mp4"
    new.write_bytes(clip_path("vp9.mp4").read_bytes())
    videos[0].write_bytes(clip_path("av1_default.mp4").read_bytes())
    report = built(tmp_path)
    assert (report.num_indexed, report.num_dropped, report.num_files) == (2, 0, 7)
    assert_good(tmp_path, [*videos, new])


def test_vanished_video_is_dropped(tmp_path: Path) -> None:
    videos = make_folder(tmp_path)
    size = built(tmp_path).num_bytes
    videos[2].unlink()
    report = built(tmp_path)
    assert (report.num_indexed, report.num_dropped, report.num_files) == (0, 1, 5)
    assert report.num_bytes < size
    assert_good(tmp_path, [*videos[:2], *videos[3:]])


def test_files_that_cannot_be_indexed_are_listed_and_stop_no_other(tmp_path: Path) -> None:
    make_folder(tmp_path, "hevc.mp4", "text.mp4", "cut_no_moov.mp4", "vp9.mp4")
    for _ in range(2):
        report = built(tmp_path)
        assert sorted(Path(failure.path).name for failure in report.failures) == [
            "00000_cut_no_moov.mp4", "00000_text.mp4",
        ]  # fmt: skip
        assert "a text file" in " ".join(failure.message for failure in report.failures)
    assert_good(tmp_path, [tmp_path / "videos" / f"00000_{c}.mp4" for c in ("hevc", "vp9")])


def test_file_that_kills_its_process_is_one_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path, "hevc.mp4", "vp9.mp4", copies=4)
    deadly = tmp_path / "deadly.py"
    deadly.write_text(
        "import os\n"
        "from reelseek.index import _worker\n"
        "index_files = _worker.index_files\n"
        "def deadly(folder, relatives):\n"
        "    if any(b'00002_hevc' in relative for relative in relatives):\n"
        "        os.kill(os.getpid(), 11)\n"
        "    return index_files(folder, relatives)\n"
        "_worker.index_files = deadly\n"
        "from reelseek.workers import _child\n"
        "_child.main()\n"
    )
    monkeypatch.setattr(_child, "__file__", str(deadly))
    report = built(tmp_path)
    (failure,) = report.failures
    assert failure.path.endswith("00002_hevc.mp4") and "died of signal 11" in failure.message
    assert report.num_indexed == 7


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    videos = make_folder(tmp_path / "data", "hevc.mp4", "vp9.mp4")
    (tmp_path / "data" / "videos" / "loop").symlink_to(tmp_path / "data")
    (tmp_path / "data" / ".hidden").mkdir()
    (tmp_path / "data" / ".hidden" / "a.mp4").write_bytes(b"")
    built(tmp_path / "data")
    assert_good(tmp_path / "data", videos)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_cut_index_is_built_anew(tmp_path: Path, share: float) -> None:
    videos = make_folder(tmp_path)
    size = built(tmp_path).num_bytes
    os.truncate(index_of(tmp_path), int(size * share))
    assert built(tmp_path).num_indexed == 6
    assert_good(tmp_path, videos)


@pytest.mark.parametrize("place", [-1, -40, 300])
def test_flipped_byte_is_mended(tmp_path: Path, place: int) -> None:
    videos = make_folder(tmp_path)
    built(tmp_path)
    content = bytearray(index_of(tmp_path).read_bytes())
    content[place] ^= 0x10
    index_of(tmp_path).write_bytes(content)
    assert built(tmp_path).num_indexed >= 1
    assert_good(tmp_path, videos)


def test_folder_that_is_no_dataset_and_missing_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"meta/info\.json"):
        build_index(tmp_path)
    with pytest.raises(VideoNotFoundError, match="neither"):
        build_index(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


# Where it is


def test_index_of_a_read_only_dataset_is_in_the_cache(tmp_path: Path) -> None:
    make_folder(tmp_path)
    meta = tmp_path / "meta"
    meta.chmod(0o555)
    report = built(tmp_path)
    meta.chmod(0o755)
    assert report.path.startswith(os.environ["REELSEEK_CACHE"])
    assert [path.name for path in meta.iterdir()] == ["info.json"]
    sidecar = DatasetIndex(str(tmp_path)).sidecar
    assert sidecar is not None and sidecar.path == report.path


def test_single_video_has_its_index_beside_it_and_nothing_else(tmp_path: Path) -> None:
    video = tmp_path / "a.mp4"
    video.write_bytes(clip_path("b_frames.mp4").read_bytes())
    assert build_index(video).num_indexed == 1
    assert build_index(video).num_indexed == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mp4", "a.mp4.reelseek"]


def test_video_is_opened_by_its_own_index_while_that_is_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = tmp_path / "a.mp4"
    video.write_bytes(clip_path("b_frames.mp4").read_bytes())
    build_index(video)
    looked_into = []

    def look_into(path: str) -> VideoTables:
        looked_into.append(path)
        return index_tables(path)

    monkeypatch.setattr(opening, "index_tables", look_into)
    for _ in range(2):
        with reelseek.open_video(video) as opened:
            assert opened.info.backend == "indexed"
            assert len(opened.get_frames_at([3, 100])) == 2
    assert looked_into == []
    os.utime(video)
    reelseek.open_video(video).close()
    assert looked_into == [str(video)]


# Many builders, and killed ones

SLOW_BUILD = """
import sys
from reelseek.index import _build_index
_build_index.CHECKPOINT_FILES = 1
report = _build_index.build_index(
    sys.argv[1], jobs=2, tell=lambda done, total: print(done, flush=True))
print("indexed", report.num_indexed)
"""


def start_build(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SLOW_BUILD, str(root)], stdout=subprocess.PIPE, text=True
    )


def kill_build(root: Path, done: int) -> None:
    """Kill -9 a build when so many files are done."""
    with start_build(root) as build:
        assert build.stdout is not None
        for line in build.stdout:
            if int(line) >= done:
                break
        build.send_signal(signal.SIGKILL)


def test_twenty_builders_at_once_leave_one_good_index(tmp_path: Path) -> None:
    videos = make_folder(tmp_path, "hevc.mp4", "vp9.mp4", copies=10)
    builds = [start_build(tmp_path) for _ in range(20)]
    outputs = [build.communicate(timeout=PATIENCE)[0] for build in builds]
    indexed = sorted(int(output.split()[-1]) for output in outputs)
    assert indexed == [0] * 19 + [20]
    assert_good(tmp_path, videos)
    left = {path.name for path in index_of(tmp_path).parent.iterdir()}
    assert left <= {"index.bin", "index.bin.lock"}


@pytest.mark.parametrize("done", [0, 1, 9, 19])
def test_killed_build_leaves_none_and_the_next_goes_on(tmp_path: Path, done: int) -> None:
    videos = make_folder(tmp_path, "hevc.mp4", "vp9.mp4", copies=10)
    kill_build(tmp_path, done)
    assert not index_of(tmp_path).exists()
    report = built(tmp_path)
    assert report.num_files == 20
    assert report.num_indexed <= 20 - max(0, done - 1)
    assert_good(tmp_path, videos)


@pytest.mark.parametrize("done", [2, 10])
def test_killed_rebuild_leaves_the_former_index(tmp_path: Path, done: int) -> None:
    videos = make_folder(tmp_path, "hevc.mp4", "vp9.mp4")
    built(tmp_path)
    more = make_folder(tmp_path / "more", "hevc.mp4", "vp9.mp4", copies=6)
    kill_build(tmp_path, done)
    assert_good(tmp_path, videos)
    built(tmp_path)
    assert_good(tmp_path, [*videos, *more])


def test_partial_file_that_ends_in_the_middle_of_a_record_is_taken_up(tmp_path: Path) -> None:
    videos = make_folder(tmp_path, "hevc.mp4", "vp9.mp4", copies=5)
    kill_build(tmp_path, 8)
    partial = index_of(tmp_path).with_name("index.bin.partial")
    os.truncate(partial, partial.stat().st_size - 5)
    videos[0].write_bytes(clip_path("b_frames.mp4").read_bytes())
    report = built(tmp_path)
    assert 1 <= report.num_indexed < 10
    assert_good(tmp_path, videos)


@pytest.mark.parametrize("kind", [0, 1, 2, 18])
def test_partial_file_that_ends_in_other_bytes_is_taken_up(tmp_path: Path, kind: int) -> None:
    """A machine that fails leaves blocks of zeros, or of another file."""
    videos = make_folder(tmp_path, "hevc.mp4", "vp9.mp4", copies=5)
    kill_build(tmp_path, 8)
    partial = index_of(tmp_path).with_name("index.bin.partial")
    payload = bytes(7)  # no record of a video, whatever its sum says
    end = RECORD_HEAD.pack(len(payload), zlib.crc32(bytes([kind]) + payload), kind) + payload
    partial.write_bytes(partial.read_bytes() + end + bytes(64))
    built(tmp_path)
    assert_good(tmp_path, videos)


def test_video_with_more_frames_than_an_index_holds_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path, "one_frame.mp4", "hevc.mp4")
    monkeypatch.setattr(_video_record, "MOST_UNITS", 10)
    few, many = index_files(
        str(tmp_path), [b"videos/00000_one_frame.mp4", b"videos/00000_hevc.mp4"]
    )
    assert isinstance(few, VideoRecord)
    assert isinstance(many, str)
    assert "more than an index holds" in many


# Many files


@pytest.mark.slow
def test_descriptors_are_flat_over_3000_files(tmp_path: Path) -> None:
    videos = make_folder(tmp_path, "one_frame.mp4", "av1_g20.mp4", "hevc.mp4", copies=1000)
    assert built(tmp_path).num_files == 3000
    index = DatasetIndex(str(tmp_path))
    before = open_files()
    most = 0
    for number in np.random.default_rng(1).permutation(len(videos)):
        path = str(videos[number])
        tables = index.lookup(path)
        assert tables is not None
        with open_with_tables(path, tables) as video:
            assert len(video.get_frames_at([0])) == 1
            most = max(most, open_files())
    assert most <= before + MOST_FILES_OPEN
    assert open_files() <= before + 1  # the index itself


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_user_without_a_home_reads_and_is_told_where_no_index_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "REELSEEK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as without a line in passwd
    (video,) = make_folder(tmp_path, "b_frames.mp4")
    with reelseek.open_video(video) as opened:
        assert opened[3].index == 3
    with pytest.raises(IndexFileError, match="REELSEEK_CACHE"):
        cache_folder()
