"""Real wheels in throw-away environments: what the doctor says, and that its command mends it."""

from __future__ import annotations

import ctypes.util
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import corpus
from tests.conftest import needs, skip_without
from tests.native.environments import (
    SystemFFmpeg,
    WheelEnvironment,
    debian_ffmpeg_5,
    download_wheel,
    make_environment,
)
from tests.native.test_linker_against_glibc import differences, libraries_under
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parent.parent.parent / "src"
WITHOUT_CUDA = "torchcodec==0.13.0"
"""The newest on PyPI that needs no CUDA library."""
FOR_NEWER_TORCH_WITH_CUDA = "torchcodec==0.17.0"
FOR_OLDER_TORCH = "torchcodec==0.10.0"
"""Built for torch 2.10."""

DECODES = """
import sys, torchcodec
from torchcodec.decoders import VideoDecoder
print(torchcodec.ffmpeg_major_version, *VideoDecoder(sys.argv[1])[0].shape)
"""


@pytest.fixture(scope="module", autouse=True)
def _system_has_no_ffmpeg() -> None:
    if ctypes.util.find_library("avutil") is not None:
        pytest.skip("this system has an FFmpeg of its own, which torchcodec would take")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("torch")
    return tmp_path_factory.mktemp("wheels")


@pytest.fixture(scope="module")
def ffmpeg_5(tmp_path_factory: pytest.TempPathFactory) -> SystemFFmpeg:
    return debian_ffmpeg_5(tmp_path_factory.mktemp("ffmpeg5") / "debian")


@pytest.fixture
def environment(wheels: Path, tmp_path: Path) -> WheelEnvironment:
    return make_environment(tmp_path / "env")


def reelseek(
    environment: WheelEnvironment, cache: Path, command: str, *arguments: str, search_path: str = ""
) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(SOURCES), "REELSEEK_CACHE": str(cache)}
    if search_path:
        variables["LD_LIBRARY_PATH"] = search_path
    return subprocess.run(
        [sys.executable, "-m", "reelseek", command, "--python", str(environment.python),
         *arguments],
        env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def diagnosed(environment: WheelEnvironment, cache: Path, search_path: str = "") -> dict[str, Any]:
    # Each test decodes for itself what the doctor would prove.
    done = reelseek(environment, cache, "doctor", "--json", "--no-prove", search_path=search_path)
    assert done.returncode in (0, 1), done.stderr
    (found,) = json.loads(done.stdout)["environments"]
    assert isinstance(found, dict)
    return found


def major_in_use(found: dict[str, Any]) -> int | None:
    """The FFmpeg major that torchcodec takes."""
    return next((tried["ffmpeg_major"] for tried in found["attempts"] if tried["loads"]), None)


def decodes(environment: WheelEnvironment, search_path: str = "") -> tuple[int, str]:
    """Whether torchcodec decodes a frame of AV1 there; its FFmpeg major and the frame's shape."""
    variables = {"LD_LIBRARY_PATH": search_path} if search_path else {}
    clip = str(corpus.clip_path("b_frames.mp4"))
    return environment.run("python", "-c", DECODES, clip, variables=variables)


def install_as_printed(environment: WheelEnvironment, found: dict[str, Any], only: str) -> None:
    """Run the doctor's command, after making sure that it replaces torchcodec alone."""
    command = shlex.split(found["remedy"]["command"])
    python = str(environment.python)
    # Everything else in the environment is a link into the one that the tests run in.
    assert command == [python, "-m", "pip", "install", only]
    code, said = environment.run(*command)
    if code != 0 and "No matching distribution" in said:
        skip_without("wheels", f"{only} can't be had")
    assert code == 0, said


def exported(environment: WheelEnvironment, cache: Path, search_path: str = "") -> str:
    """The LD_LIBRARY_PATH that a shell has after `reelseek env`'s lines."""
    lines = reelseek(environment, cache, "env", "--format", "sh", search_path=search_path)
    assert lines.returncode == 0, lines.stderr
    before = {"LD_LIBRARY_PATH": search_path} if search_path else {}
    script = f'set -eu\n{lines.stdout}\nprintf %s "${{LD_LIBRARY_PATH:-}}"'
    code, said = environment.run("sh", "-c", script, variables=before)
    assert code == 0, said
    return said


def test_cuda_wheel_beside_cpu_torch(
    environment: WheelEnvironment, wheels: Path, ffmpeg_5: SystemFFmpeg, tmp_path: Path
) -> None:
    environment.unpack(download_wheel(FOR_NEWER_TORCH_WITH_CUDA, wheels))
    assert decodes(environment, ffmpeg_5.search_path)[0] == 1
    found = diagnosed(environment, tmp_path, ffmpeg_5.search_path)
    assert found["cause"] == "cuda-wheel"
    install_as_printed(environment, found, WITHOUT_CUDA)
    assert diagnosed(environment, tmp_path, ffmpeg_5.search_path)["cause"] == "ok"
    assert decodes(environment, ffmpeg_5.search_path) == (0, "5 3 64 320\n")


def test_wheel_for_another_torch(
    environment: WheelEnvironment, wheels: Path, ffmpeg_5: SystemFFmpeg, tmp_path: Path
) -> None:
    environment.unpack(download_wheel(FOR_OLDER_TORCH, wheels))
    assert "undefined symbol" in decodes(environment, ffmpeg_5.search_path)[1]
    found = diagnosed(environment, tmp_path, ffmpeg_5.search_path)
    assert found["cause"] == "other-torch"
    install_as_printed(environment, found, WITHOUT_CUDA)
    assert diagnosed(environment, tmp_path, ffmpeg_5.search_path)["cause"] == "ok"
    assert decodes(environment, ffmpeg_5.search_path) == (0, "5 3 64 320\n")


def test_ffmpeg_5_of_debian_is_taken(
    environment: WheelEnvironment, wheels: Path, ffmpeg_5: SystemFFmpeg, tmp_path: Path
) -> None:
    environment.unpack(download_wheel(WITHOUT_CUDA, wheels))
    found = diagnosed(environment, tmp_path, ffmpeg_5.search_path)
    assert (found["cause"], major_in_use(found)) == ("ok", 5)
    search_path = exported(environment, tmp_path, ffmpeg_5.search_path)
    assert decodes(environment, search_path) == (0, "5 3 64 320\n")


def test_ffmpeg_only_from_pyav(environment: WheelEnvironment, wheels: Path, tmp_path: Path) -> None:
    environment.unpack(download_wheel(WITHOUT_CUDA, wheels))
    environment.add_pyav()
    assert decodes(environment)[0] == 1
    found = diagnosed(environment, tmp_path / "cache")
    assert found["cause"] == "no-ffmpeg"
    search_path = exported(environment, tmp_path / "cache")
    assert str(tmp_path / "cache") in search_path
    assert decodes(environment, search_path) == (0, "8 3 64 320\n")


def test_of_two_ffmpegs_the_one_that_loads_is_taken(
    environment: WheelEnvironment, wheels: Path, ffmpeg_5: SystemFFmpeg, tmp_path: Path
) -> None:
    environment.unpack(download_wheel(WITHOUT_CUDA, wheels))
    environment.add_pyav()
    found = diagnosed(environment, tmp_path / "cache", ffmpeg_5.search_path)
    assert (found["cause"], major_in_use(found)) == ("ok", 5)
    # The prepared FFmpeg 8 before it: torchcodec tries the highest major first.
    both = f"{exported(environment, tmp_path / 'cache')}:{ffmpeg_5.search_path}"
    found = diagnosed(environment, tmp_path / "cache", both)
    assert (found["cause"], major_in_use(found)) == ("ok", 8)
    assert decodes(environment, both) == (0, "8 3 64 320\n")


def test_linker_agrees_with_glibc_in_these_environments(
    environment: WheelEnvironment, wheels: Path, ffmpeg_5: SystemFFmpeg
) -> None:
    variables = {"LD_LIBRARY_PATH": ffmpeg_5.search_path}
    found = differences(
        environment.python, libraries_under(ffmpeg_5.folders[0]), variables=variables
    )
    for requirement in (WITHOUT_CUDA, FOR_OLDER_TORCH, FOR_NEWER_TORCH_WITH_CUDA):
        environment.unpack(download_wheel(requirement, wheels))
        libraries = libraries_under(environment.site_packages / "torchcodec")
        found += differences(
            environment.python, libraries, variables=variables, first="import torch"
        )
    assert found == []


def test_no_ffmpeg_at_all(environment: WheelEnvironment, wheels: Path, tmp_path: Path) -> None:
    environment.unpack(download_wheel(WITHOUT_CUDA, wheels))
    found = diagnosed(environment, tmp_path / "cache")
    assert found["cause"] == "no-ffmpeg"
    assert "FFmpeg" in found["verdict"]
    printed = reelseek(environment, tmp_path / "cache", "env", "--format", "sh")
    assert (printed.returncode, printed.stdout) == (1, "")
    # Its command installs PyAV, whose wheel carries an FFmpeg; then there is a search path.
    code, said = environment.run(*shlex.split(found["remedy"]["command"]))
    assert code == 0, said
    search_path = exported(environment, tmp_path / "cache")
    assert decodes(environment, search_path) == (0, "8 3 64 320\n")
