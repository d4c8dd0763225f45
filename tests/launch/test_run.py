"""``reelseek run``: the command under the search path, its exit status passed through."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run
from tests.native.chains import Environment

SAYS_PATH = "import os; print(os.environ.get('LD_LIBRARY_PATH'))"


def test_python_of_the_command_is_the_one_that_is_mended(
    environment: Environment, reelseek_command: Run
) -> None:
    code = "import torchcodec; print(torchcodec.ffmpeg_major_version)"
    done = reelseek_command("run", "--", environment.python, "-c", code)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("reelseek run: LD_LIBRARY_PATH=")


def test_old_value_stays_behind(environment: Environment, reelseek_command: Run) -> None:
    done = reelseek_command(
        "run", "--", environment.python, "-c", SAYS_PATH, LD_LIBRARY_PATH="/old place"
    )
    assert done.stdout == f"{environment.npp}:/old place\n"


def test_exit_status_of_the_command_passes_through(
    environment: Environment, reelseek_command: Run
) -> None:
    code = "import sys; sys.exit(42)"
    assert reelseek_command("run", "--", environment.python, "-c", code).returncode == 42


def test_signal_that_ends_the_command_passes_through(
    environment: Environment, reelseek_command: Run
) -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    assert reelseek_command("run", "--", environment.python, "-c", code).returncode == -9


def test_arguments_that_look_like_options_are_the_commands(
    environment: Environment, reelseek_command: Run
) -> None:
    done = reelseek_command(
        "run", "--python", environment.python, "echo", "--python", "x", "--help"
    )
    assert (done.returncode, done.stdout) == (0, "--python x --help\n")


def test_nothing_is_exported_where_nothing_is_needed(
    environment: Environment, reelseek_command: Run
) -> None:
    done = reelseek_command(
        "run", "--python", environment.python, "--", "true", LD_LIBRARY_PATH=str(environment.npp)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_missing_command_has_the_shells_status(
    environment: Environment, reelseek_command: Run, tmp_path: Path
) -> None:
    missing = reelseek_command("run", "--python", environment.python, "--", "no-such-command")
    assert missing.returncode == 127
    (line,) = missing.stderr.splitlines()[1:]
    assert line == "reelseek run: there is no command 'no-such-command'"
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    refused = reelseek_command("run", "--python", environment.python, "--", plain)
    assert refused.returncode == 126


def test_environment_that_no_path_mends_is_named(reelseek_command: Run, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "python"
    program.write_text("no program")
    program.chmod(0o755)
    done = reelseek_command("run", "--python", tmp_path, "--", "true")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
