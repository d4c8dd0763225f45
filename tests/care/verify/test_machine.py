"""What is the machine's fault is no fact of a file: it is tried again, and isn't kept."""

from __future__ import annotations

import builtins
import errno
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reelseek.care.verify import verify_dataset
from reelseek.care.verify._check_file import check_file
from reelseek.errors import CorruptVideoError
from reelseek.index import index_tables
from tests.care.reencode.conftest import Inline
from tests.care.verify.conftest import Tiny

FAULTS = (errno.ENOENT, errno.ESTALE, errno.EIO, errno.EACCES)


def check(tiny: Tiny, path: Path) -> dict[str, Any]:
    key = str(path.relative_to(tiny.root))
    return check_file(key, root=str(tiny.root), level="decode", fps=10)


def failing(monkeypatch: pytest.MonkeyPatch, path: Path, number: int) -> None:
    """Let a file be there, and opening it fail."""
    real = builtins.open

    def fails(file: Any, *args: Any, **options: Any) -> Any:
        if str(file) == str(path):
            raise OSError(number, "the disk says so", str(file))
        return real(file, *args, **options)

    monkeypatch.setattr(builtins, "open", fails)
    monkeypatch.setattr(io, "open", fails)


@pytest.mark.parametrize("file", [Tiny.video, Tiny.data])
def test_file_that_is_gone_is_no_fact(tiny: Tiny, file: Callable[[Tiny], Path]) -> None:
    file(tiny).unlink()
    with pytest.raises(FileNotFoundError, match="No such file"):
        check(tiny, file(tiny))


@pytest.mark.parametrize("number", FAULTS)
def test_disk_that_fails_is_no_fact(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    failing(monkeypatch, tiny.video(), number)
    with pytest.raises(OSError, match="the disk says so") as caught:
        check(tiny, tiny.video())
    assert caught.value.errno == number


def test_disk_that_fails_under_arrow_is_no_fact(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    def fails(*_args: Any, **_options: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(pq, "ParquetFile", fails)
    failing(monkeypatch, tiny.data(), errno.EIO)
    with pytest.raises(OSError, match="the disk says so"):
        check(tiny, tiny.data())


def test_disk_that_fails_once_under_ffmpeg_is_no_fact(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def fails_once(path: str) -> Any:
        calls.append(path)
        if len(calls) == 1:
            raise CorruptVideoError("the packets can't be read", path=path, detail="I/O error")
        return index_tables(path)

    monkeypatch.setattr("reelseek.care.verify._video_facts.index_tables", fails_once)
    assert check(tiny, tiny.video())["num_frames"] == 12


def test_disk_that_failed_is_asked_again(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        failing(patched, tiny.video(), errno.EIO)
        first = verify_dataset(tiny.root, level="decode", executor=Inline())
    second = verify_dataset(tiny.root, level="decode", executor=Inline())
    assert [finding.code for finding in first.findings] == ["check-failed"]
    assert (second.findings, second.num_kept) == ((), second.num_files - 1)


def test_the_disks_words_are_told(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, tiny.video(), errno.ESTALE)
    (finding,) = verify_dataset(tiny.root).findings
    assert (finding.code, Path(finding.path).name) == ("check-failed", tiny.video().name)
    assert "the disk says so" in finding.what and "mounted" in finding.remedy
