"""The command itself: exit status, errors, what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import reelseek
from tests.cli.conftest import Run
from tests.patience import PATIENCE


def test_version(reelseek_command: Run) -> None:
    done = reelseek_command("--version")
    assert (done.returncode, done.stdout) == (0, f"reelseek {reelseek.__version__}\n")


def test_help_documents_the_exit_status(reelseek_command: Run) -> None:
    done = reelseek_command("--help", COLUMNS="100")
    assert done.returncode == 0
    assert "Exit status" in done.stdout
    assert "probe" in done.stdout and "bench" in done.stdout


def test_an_unknown_option_is_a_usage_error(reelseek_command: Run) -> None:
    assert reelseek_command("probe", "--no-such-option", "x.mp4").returncode == 2
    assert reelseek_command("no-such-command").returncode == 2


def test_an_unknown_backend_is_a_usage_error(reelseek_command: Run) -> None:
    done = reelseek_command("bench", "seek", ".", "--backends", "pyav,quicktime", COLUMNS="200")
    assert done.returncode == 2
    assert "quicktime" in done.stderr and "torchcodec" in done.stderr


def test_an_error_is_one_line_without_a_traceback(reelseek_command: Run) -> None:
    done = reelseek_command("bench", "seek", "/no/such/dataset")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: /no/such/dataset: ")


def test_debug_shows_the_traceback(reelseek_command: Run) -> None:
    option = reelseek_command("--debug", "bench", "seek", "/no/such/dataset")
    variable = reelseek_command("bench", "seek", "/no/such/dataset", REELSEEK_DEBUG="1")
    for done in (option, variable):
        assert done.returncode == 1
        assert "Traceback" in done.stderr


@pytest.mark.parametrize("arguments", [["doctor", "--python", "/no"], ["--help"]])
def test_output_that_cannot_be_written_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from reelseek.cli._main import main; main()", *arguments],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: the output can't be written: ")


WITHOUT_NUMPY = """
import sys

class Blocked:
    def find_spec(self, name, *others):
        if name.partition(".")[0] in ("numpy", "av", "torch", "pyarrow"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
from reelseek.cli._main import main
main()
"""


@pytest.mark.parametrize(
    "arguments",
    ["doctor --no-prove", "doctor --json --no-prove", "run -- echo", "env --python /no"],
)
def test_loader_commands_need_no_numpy(arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMPY, *arguments.split()],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in (0, 1)
    assert "blocked" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout or done.returncode == 1


def test_import_is_light() -> None:
    code = (
        "import sys, reelseek, reelseek.cli; "
        "print([m for m in ('torch', 'torchcodec', 'matplotlib', 'cv2', 'decord', 'av') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


BREAKS = """
import os
from reelseek.cli import _main

@_main.app.command("breaks")
def breaks():
    reader, writer = os.pipe()
    os.close(reader)
    os.write(writer, b"x")

_main.main()
"""


def test_a_broken_pipe_that_is_not_stdout_is_an_error_with_words() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BREAKS, "breaks"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: a process that this command works with has ended")


def test_a_reader_of_the_pipe_may_leave_early() -> None:
    command = f"{sys.executable} -m reelseek --version | true"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
