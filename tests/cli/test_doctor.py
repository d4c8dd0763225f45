"""``reelseek doctor``: the verdict, the command, the tree, and the document."""

from __future__ import annotations

import importlib.resources
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Run
from tests.conftest import skip_without
from tests.native import chains
from tests.native.chains import Environment


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chains.build_libraries(tmp_path_factory.mktemp("doctor") / "libraries")


@pytest.fixture
def environment(libraries: Path, tmp_path: Path) -> Environment:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    return chains.make_environment(libraries, tmp_path / "env", python)


def _schema() -> Any:
    path = importlib.resources.files("reelseek.native") / "doctor.schema.json"
    return json.loads(path.read_text())


def test_first_line_is_the_verdict_and_the_second_the_command(
    environment: Environment, reelseek_command: Run
) -> None:
    done = reelseek_command("doctor", "--python", environment.python)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "NVIDIA's libnppicc.so.12 is not found (torchcodec needs it)"
    assert lines[1] == f"run: {environment.python} -m pip install nvidia-npp-cu12"


def test_tree_shows_the_way_to_the_fault(environment: Environment, reelseek_command: Run) -> None:
    npp = environment.supply_npp()
    path = f"{environment.old}:{npp}"
    done = reelseek_command("doctor", "--python", environment.python, LD_LIBRARY_PATH=path)
    assert done.returncode == 1
    tree = [line for line in done.stdout.splitlines() if ".so" in line]
    assert any(line.startswith("libtorchcodec_core7.so  ") for line in tree)
    assert any(line.startswith("    libopenvino.so.2520  ") for line in tree)
    fault = f"<- {environment.old}/libstdc++.so.6 has no version CXXABI_1.3.15"
    assert any(line.startswith("      libstdc++.so.6  ") and fault in line for line in tree)
    assert "proved under it: a frame was decoded" in done.stdout


def test_fake_environment_that_loads_is_well(
    environment: Environment, reelseek_command: Run
) -> None:
    path = f"{environment.prefix}/lib:{environment.supply_npp()}"
    done = reelseek_command("doctor", "--python", environment.python, LD_LIBRARY_PATH=path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("torchcodec 0.5.0+cu126 loads, with FFmpeg 7 (")


def test_several_environments_begin_with_a_table(
    environment: Environment, reelseek_command: Run, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(empty)], check=True)
    done = reelseek_command(
        "doctor", "--no-prove", "--python", environment.python, "--python", empty
    )
    assert done.returncode == 1
    header, first, second = done.stdout.splitlines()[:3]
    assert header.split() == ["environment", "python", "torch", "torchcodec", "av", "verdict"]
    assert first.split()[0] == str(environment.prefix)
    assert first.endswith("no-nvidia-library")
    assert second.split()[0] == str(empty)
    assert second.endswith("no-torchcodec")


def test_documents_follow_the_schema(
    environment: Environment, reelseek_command: Run, tmp_path: Path
) -> None:
    npp = environment.supply_npp()
    schema = _schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    paths = ("", str(environment.old), f"{environment.prefix}/lib:{npp}")
    for path in paths:
        done = reelseek_command(
            "doctor", "--json", "--slurm-check", "--python", environment.python,
            LD_LIBRARY_PATH=path, SLURM_JOB_ID="1",
        )  # fmt: skip
        jsonschema.validate(json.loads(done.stdout), schema)
    own = reelseek_command("doctor", "--json", "--no-prove")
    document = json.loads(own.stdout)
    jsonschema.validate(document, schema)
    assert document["schema"] == "reelseek.doctor/1"
    assert document["environments"][0]["is_well"] is (own.returncode == 0)


def test_broken_environment_takes_less_than_five_seconds(
    environment: Environment, reelseek_command: Run
) -> None:
    begin = chains.processor_seconds()
    done = reelseek_command("doctor", "--json", "--python", environment.python)
    assert chains.processor_seconds() - begin < 5
    (found,) = json.loads(done.stdout)["environments"]
    assert found["seconds"] > 0 and found["proof"] is None


def test_environment_whose_torchcodec_fails_for_another_reason_is_not_called_well(
    environment: Environment, reelseek_command: Run
) -> None:
    decoders = environment.site_packages / "torchcodec" / "decoders" / "__init__.py"
    decoders.write_text("raise ImportError('no decoder today')\n")
    path = f"{environment.prefix}/lib:{environment.supply_npp()}"
    done = reelseek_command("doctor", "--python", environment.python, LD_LIBRARY_PATH=path)
    assert done.returncode == 1
    assert "no decoder today" in done.stdout.splitlines()[0]


def test_remedy_that_fails_when_it_is_tried_is_taken_back(
    environment: Environment, reelseek_command: Run
) -> None:
    environment.supply_npp()
    decoders = environment.site_packages / "torchcodec" / "decoders" / "__init__.py"
    decoders.write_text("raise ImportError('no decoder today')\n")
    done = reelseek_command("doctor", "--python", environment.python)
    assert done.returncode == 1
    assert "\nrun: " not in done.stdout
    assert "no decoder today" in done.stdout


def test_path_that_is_no_python_is_named(reelseek_command: Run, tmp_path: Path) -> None:
    missing = reelseek_command("doctor", "--python", tmp_path / "python")
    assert missing.returncode == 1
    verdict, remark = missing.stdout.splitlines()[:2]
    assert verdict == f"there is no Python interpreter at {tmp_path}/python"
    assert remark == "Give the path of an environment's bin/python"
    text = tmp_path / "text"
    text.write_text("#!/bin/sh\necho hello\n")
    text.chmod(0o755)
    done = reelseek_command("doctor", "--python", text)
    assert done.returncode == 1
    assert "is no Python" in done.stdout.splitlines()[0]


def test_environment_that_is_not_there_leaves_the_others_their_rows(
    environment: Environment, reelseek_command: Run, tmp_path: Path
) -> None:
    environment.supply_npp()
    missing, broken = tmp_path / "gone", tmp_path / "broken"
    _install_fakes(broken, "decord", "av", "cv2")
    paths = (missing, environment.python, broken, "~no-such-user/bin/python")
    arguments = [word for path in paths for word in ("--python", path)]
    table = reelseek_command("doctor", "--no-prove", *arguments)
    assert table.returncode == 1
    rows = table.stdout.splitlines()[1:5]
    assert [row.split()[-1] for row in rows] == [
        "no-interpreter", "no-nvidia-library", "no-interpreter", "no-interpreter",
    ]  # fmt: skip
    done = reelseek_command("doctor", "--json", "--slurm-check", "--no-prove", *arguments)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    jsonschema.validate(document, _schema())
    assert [found["cause"] for found in document["environments"]] == [
        "no-interpreter", "no-nvidia-library", "no-interpreter", "no-interpreter",
    ]  # fmt: skip


def _install_fakes(prefix: Path, *packages: str) -> None:
    """An environment whose interpreter is a text, and packages with a library that is none."""
    site_packages = prefix / "lib" / "python3.11" / "site-packages"
    for package in packages:
        (site_packages / package).mkdir(parents=True)
        for name in ("libdecord.so", "_core.so", "cv2.so"):
            (site_packages / package / name).write_text("no library")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").write_text("no program")
    (prefix / "bin" / "python").chmod(0o755)


def test_environment_is_examined_from_a_folder_that_is_gone(
    environment: Environment, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f'rmdir {gone}; exec "$0" -m reelseek doctor --no-prove --python "$1"'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, str(environment.python)],
        capture_output=True, text=True, check=False, cwd=gone,
    )  # fmt: skip
    assert done.stdout.startswith("NVIDIA's libnppicc.so.12 is not found"), done.stderr


HOSTILE_NAME = b"lib\nrun: rm\x1b[2J"
"""As long as libnppicc.so.12, which it takes the place of in DT_NEEDED."""


def _rename_needed(environment: Environment) -> None:
    for path in (environment.site_packages / "torchcodec").glob("lib*.so"):
        path.write_bytes(path.read_bytes().replace(b"libnppicc.so.12", HOSTILE_NAME))


def test_name_in_a_library_adds_no_line_and_commands_no_terminal(
    environment: Environment, reelseek_command: Run
) -> None:
    _rename_needed(environment)
    done = reelseek_command("doctor", "--python", environment.python)
    verdict, note = done.stdout.splitlines()[:2]
    assert verdict == r"lib\nrun: rm\x1b[2J is not found (torchcodec needs it)"
    assert note == r"Install what has lib\nrun: rm\x1b[2J"
    assert done.stdout.replace("\n", "").isprintable()
    assert not any(line.startswith("run:") for line in done.stdout.splitlines())
    written = reelseek_command("doctor", "--json", "--python", environment.python).stdout
    (found,) = json.loads(written)["environments"]
    assert found["fault"]["library"].encode() == HOSTILE_NAME
    for command in (("env",), ("run", "--python", environment.python, "true")):
        options = () if command[0] == "run" else ("--python", environment.python)
        refused = reelseek_command(*command, *options)
        assert refused.stderr.replace("\n", "").isprintable()
        assert r"lib\nrun: rm\x1b[2J is not found" in refused.stderr


def test_folders_and_versions_are_shown_as_they_are_written(
    libraries: Path, tmp_path: Path, reelseek_command: Run
) -> None:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(libraries, tmp_path / "a[/red]\n\x1b[2Jb", python)
    (made.site_packages / "torch" / "version.py").write_text("__version__ = '2.7\x1b[1m'\n")
    done = reelseek_command("doctor", "--python", made.python, "--python", tmp_path / "gone")
    shown = rf"{tmp_path}/a[/red]\n\x1b[2Jb"
    assert done.stdout.splitlines()[1].startswith(shown)
    assert done.stdout.replace("\n", "").isprintable()
    command = next(line for line in done.stdout.splitlines() if line.startswith("run: "))
    script = command.removeprefix("run: ").partition(" -m ")[0]
    said = subprocess.run(["bash", "-c", f"printf %s {script}"], capture_output=True, check=True)
    assert said.stdout.decode() == str(made.python)


def test_other_decoders_are_listed_with_their_ffmpeg(reelseek_command: Run) -> None:
    done = reelseek_command("doctor", "--json", "--no-prove")
    (found,) = json.loads(done.stdout)["environments"]
    decoders = {decoder["name"]: decoder for decoder in found["decoders"]}
    pyav = decoders["PyAV"]
    assert pyav["loads"] and pyav["decodes_av1"] and pyav["ffmpeg_major"] >= 7
    if importlib.util.find_spec("decord") is None:
        skip_without("decord", "decord isn't installed")
    decord = decoders["decord"]
    assert (decord["loads"], decord["ffmpeg_major"], decord["decodes_av1"]) == (True, 4, False)


def test_own_environment_is_judged_as_a_plain_import_finds_it(reelseek_command: Run) -> None:
    if importlib.util.find_spec("torchcodec") is None:
        skip_without("torchcodec", "torchcodec isn't installed")
    imported = subprocess.run(
        [sys.executable, "-c", "import torchcodec"], capture_output=True, check=False,
        env=dict(os.environ), cwd="/",
    )  # fmt: skip
    done = reelseek_command("doctor")
    assert (done.returncode == 0) is (imported.returncode == 0), done.stdout
    assert "a frame was decoded" in done.stdout, done.stdout
