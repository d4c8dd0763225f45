"""Reading units' bytes: few calls, and what is said of files that aren't what they were."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.errors import ChangedVideoError, CorruptVideoError, VideoNotFoundError
from reelseek.index._stamp import stamp_of
from reelseek.video.backends._unit_reader import GAP_BYTES, UnitReader

SIZE = 3 * GAP_BYTES
CONTENT = bytes(number % 251 for number in range(SIZE))


class CountingReader(UnitReader):
    """Counts its calls."""

    calls = 0

    def _read_bytes(self, offset: int, size: int) -> bytes:
        self.calls += 1
        return super()._read_bytes(offset, size)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("units") / "video"
    path.write_bytes(CONTENT)
    return str(path)


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    path = tmp_path / "video"
    path.write_bytes(CONTENT)
    return path


@given(st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, 1000)), max_size=8))
def test_bytes_are_those_of_the_places_in_any_order(
    file: str, places: list[tuple[int, int]]
) -> None:
    inside = [(start, min(size, SIZE - start)) for start, size in places]
    reader = UnitReader(file, "indexed", stamp_of(file))
    found = list(reader.read(inside))
    reader.close()
    assert found == [CONTENT[start : start + size] for start, size in inside]


@pytest.mark.parametrize(("gap", "calls"), [(0, 1), (GAP_BYTES, 1), (GAP_BYTES + 1, 2), (-1, 2)])
def test_neighbours_are_read_in_one_call(file: str, gap: int, calls: int) -> None:
    reader = CountingReader(file, "indexed", None)
    assert len(list(reader.read([(10, 5), (15 + gap, 5)]))) == 2
    assert reader.calls == calls
    reader.close()


@pytest.mark.parametrize("place", [(SIZE - 3, 4), (SIZE + 1, 1), (0, 1 << 60), (-1, 2), (0, 0)])
def test_places_outside_the_file_say_where_it_ends(file: str, place: tuple[int, int]) -> None:
    reader = UnitReader(file, "indexed", None)
    with pytest.raises(CorruptVideoError, match="the file ends") as caught:
        list(reader.read([place]))
    assert (caught.value.path, caught.value.backend) == (file, "indexed")
    assert caught.value.byte_offset == place[0]
    reader.close()


def test_file_cut_while_it_is_open_says_how_much_is_missing(own_file: Path) -> None:
    reader = UnitReader(str(own_file), "indexed", stamp_of(str(own_file)))
    list(reader.read([(0, 1)]))
    os.truncate(own_file, 100)
    with pytest.raises(CorruptVideoError, match="ends 10 bytes before") as caught:
        list(reader.read([(90, 20)]))
    assert caught.value.byte_offset == 90
    reader.close()


def test_closed_reader_opens_the_file_again(own_file: Path) -> None:
    reader = UnitReader(str(own_file), "indexed", stamp_of(str(own_file)))
    for _ in range(2):
        assert list(reader.read([(7, 2)])) == [CONTENT[7:9]]
        reader.close()


def _other_size(path: Path) -> None:
    path.write_bytes(CONTENT[1:])


def _other_time(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("change", [_other_size, _other_time, _pipe])
def test_another_file_of_the_name_is_not_read(
    own_file: Path, change: Callable[[Path], None]
) -> None:
    reader = UnitReader(str(own_file), "indexed", stamp_of(str(own_file)))
    change(own_file)
    before = _descriptors()
    for _ in range(2):
        with pytest.raises(ChangedVideoError, match=r"was changed.*Open the video") as caught:
            list(reader.read([(0, 1)]))
        assert (caught.value.path, caught.value.backend) == (str(own_file), "indexed")
    assert _descriptors() == before


def test_file_that_can_not_be_looked_at_is_not_read(
    own_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system may lose a file right after it was opened."""
    reader = UnitReader(str(own_file), "indexed", stamp_of(str(own_file)))

    def lost(_descriptor: int) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    before = _descriptors()
    with monkeypatch.context() as patched, pytest.raises(VideoNotFoundError, match="Stale"):
        patched.setattr(os, "fstat", lost)
        list(reader.read([(0, 1)]))
    assert _descriptors() == before
    _other_size(own_file)
    with pytest.raises(ChangedVideoError):
        list(reader.read([(0, 1)]))


def test_file_that_is_gone_is_named(own_file: Path) -> None:
    reader = UnitReader(str(own_file), "indexed", stamp_of(str(own_file)))
    own_file.unlink()
    with pytest.raises(VideoNotFoundError, match="gone since it was indexed"):
        list(reader.read([(0, 1)]))
