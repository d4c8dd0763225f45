"""Why the FFmpeg inside PyAV's wheel can't be had, told by one typed error each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reelseek.errors import BackendUnavailableError
from reelseek.native import _wheel_ffmpeg
from reelseek.native._wheel_ffmpeg import LOAD_ORDER, prepare_wheel_ffmpeg


@pytest.fixture
def av_libs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel's folder of libraries by name, and an empty cache."""
    monkeypatch.setenv("REELSEEK_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / os.fsdecode(b"caf\xe9") / "av.libs"
    folder.mkdir(parents=True)
    for name in LOAD_ORDER:
        (folder / f"lib{name}-0123abcd.so.62.28.102").touch()
    return folder


def patchelf_that(monkeypatch: pytest.MonkeyPatch, folder: Path, does: str) -> None:
    program = folder / "patchelf"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(_wheel_ffmpeg, "find_patchelf", lambda packages: str(program))


def test_copies_have_their_usual_names_and_the_order_of_loading(
    av_libs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patchelf_that(monkeypatch, tmp_path, "exit 0")
    paths = prepare_wheel_ffmpeg(av_libs, "18.0")
    assert [path.name for path in paths] == [f"lib{name}.so.62" for name in LOAD_ORDER]
    assert all(path.is_file() for path in paths)


def _cut(copy: Path) -> None:
    os.truncate(copy, 3)


def _become_a_folder(copy: Path) -> None:
    copy.unlink()
    copy.mkdir()


def _become_a_fifo(copy: Path) -> None:
    copy.unlink()
    os.mkfifo(copy)


@pytest.mark.parametrize("damage", [_cut, Path.unlink, _become_a_folder, _become_a_fifo])
@pytest.mark.parametrize("name", ["libavcodec.so.62", "sizes.json"])
def test_copies_that_are_not_whole_are_made_anew(
    av_libs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    damage: Callable[[Path], None],
) -> None:
    patchelf_that(monkeypatch, tmp_path, "for last; do :; done; echo whole > $last")
    made = prepare_wheel_ffmpeg(av_libs, "18.0")
    damage(made[0].parent / name)
    assert prepare_wheel_ffmpeg(av_libs, "18.0") == made
    assert [path.read_text() for path in made] == ["whole\n"] * 7
    assert sorted(path.name for path in made[0].parent.parent.iterdir() if path.is_dir()) == [
        made[0].parent.name
    ]


def test_whole_copies_are_left_as_they_are(
    av_libs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patchelf_that(monkeypatch, tmp_path, "exit 0")
    made = prepare_wheel_ffmpeg(av_libs, "18.0")
    patchelf_that(monkeypatch, tmp_path, "exit 1")
    assert prepare_wheel_ffmpeg(av_libs, "18.0") == made


def test_file_in_the_place_of_the_copies_gives_way(
    av_libs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patchelf_that(monkeypatch, tmp_path, "exit 0")
    made = prepare_wheel_ffmpeg(av_libs, "18.0")
    shutil.rmtree(made[0].parent)
    made[0].parent.touch()
    assert prepare_wheel_ffmpeg(av_libs, "18.0") == made
    assert all(path.is_file() for path in made)


@pytest.mark.parametrize(
    ("does", "detail"),
    [("echo no; echo bad >&2; exit 1", "bad"), ("exec cat /dev/zero", "said more than 4 MiB"),
     ("exec sleep 100", "timed out")],
)  # fmt: skip
def test_patchelf_that_fails_is_named(
    av_libs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, detail: str
) -> None:
    monkeypatch.setattr(_wheel_ffmpeg, "PREPARE_TIMEOUT_SECONDS", 1)
    patchelf_that(monkeypatch, tmp_path, does)
    with pytest.raises(BackendUnavailableError, match="could not be prepared") as caught:
        prepare_wheel_ffmpeg(av_libs, "18.0")
    assert detail in caught.value.detail


def test_user_without_a_home_folder_is_told_to_name_a_cache(
    av_libs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "REELSEEK_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user not in passwd
    with pytest.raises(BackendUnavailableError, match=r"no home folder.*Set REELSEEK_CACHE"):
        prepare_wheel_ffmpeg(av_libs, "18.0")
