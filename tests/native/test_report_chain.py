"""The report's case from end to end: each cause is named in turn, and the lines printed mend it.

libtorchcodec_core7.so -> libavcodec.so.61 -> libopenvino.so.2520 -> libstdc++.so.6 with
CXXABI_1.3.15, and -> libnppicc.so.12, in conda-like environments of two Pythons.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reelseek.native._facts import collect_facts
from reelseek.native._preload import plan_preloads
from reelseek.native._process import torch_is_imported
from reelseek.native._providers import Providers
from tests.native import chains
from tests.native.chains import Environment, run_alone
from tests.patience import PATIENCE

SOURCES = Path(__file__).parent.parent.parent / "src"
IMPORTS = "import torchcodec; print('loaded with FFmpeg', torchcodec.ffmpeg_major_version)"
LOADED = (0, "loaded with FFmpeg 7\n")

VERSIONS = ("3.10", "3.12")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chains.build_libraries(tmp_path_factory.mktemp("chain") / "libraries")


@pytest.fixture(params=VERSIONS)
def environment(request: pytest.FixtureRequest, libraries: Path, tmp_path: Path) -> Environment:
    python = chains.interpreter(request.param)
    return chains.make_environment(libraries, tmp_path / "gr00t", python)


def reelseek(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command of reelseek, run by the Python of the tests, with only these variables."""
    return subprocess.run(
        [sys.executable, "-m", "reelseek", *arguments],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(SOURCES), **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def diagnosed(environment: Environment, **variables: str) -> dict[str, Any]:
    """What the doctor says of it, as a document, from another environment."""
    done = reelseek("doctor", "--python", str(environment.python), "--json", **variables)
    assert done.returncode in (0, 1), done.stderr
    (found,) = json.loads(done.stdout)["environments"]
    assert found["is_well"] is (done.returncode == 0)
    assert isinstance(found, dict)
    return found


def test_each_cause_is_named_in_turn(environment: Environment) -> None:
    old = {"LD_LIBRARY_PATH": str(environment.old)}

    found = diagnosed(environment, **old)
    assert found["cause"] == "no-nvidia-library"
    assert "libnppicc.so.12" in found["verdict"]
    assert found["remedy"]["command"].endswith("-m pip install nvidia-npp-cu12")

    npp = environment.supply_npp()
    with_npp = {"LD_LIBRARY_PATH": f"{environment.old}:{npp}"}
    found = diagnosed(environment, **with_npp)
    assert found["cause"] == "old-libstdcxx"
    assert f"{environment.old}/libstdc++.so.6" in found["verdict"]
    assert chains.CXXABI in found["verdict"]
    assert found["chain"] == [
        "libtorchcodec_core7.so", "libavcodec.so.61", "libopenvino.so.2520", "libstdc++.so.6",
    ]  # fmt: skip

    mended = f"{environment.prefix}/lib:{npp}:{environment.old}"
    found = diagnosed(environment, LD_LIBRARY_PATH=mended)
    assert (found["cause"], found["is_well"]) == ("ok", True)
    assert environment.run(IMPORTS, LD_LIBRARY_PATH=mended) == LOADED


def test_real_process_fails_as_the_doctor_says(environment: Environment) -> None:
    old = {"LD_LIBRARY_PATH": str(environment.old)}
    assert (
        "OSError: libnppicc.so.12: cannot open shared object" in environment.run(IMPORTS, **old)[1]
    )
    npp = environment.supply_npp()
    code, said = environment.run(IMPORTS, LD_LIBRARY_PATH=f"{environment.old}:{npp}")
    assert code == 1
    assert f"{environment.old}/libstdc++.so.6: version `{chains.CXXABI}' not found" in said
    # The culprit that torchcodec's message ends with: the FFmpeg 4 probe.
    assert said.rindex("libavutil.so.56") > said.rindex(chains.CXXABI)


@pytest.mark.parametrize("way", ["sh", "slurm"])
def test_exported_lines_make_it_load(environment: Environment, way: str) -> None:
    environment.supply_npp()
    printed = reelseek(
        "env", "--python", str(environment.python), "--format", way,
        LD_LIBRARY_PATH=str(environment.old),
    )  # fmt: skip
    assert printed.returncode == 0, printed.stderr
    script = f'set -eu\n{printed.stdout}\n"{environment.python}" -c "{IMPORTS}"\n'
    for shell in ("sh", "bash"):
        for before in ({}, {"LD_LIBRARY_PATH": str(environment.old)}):
            assert run_alone([shell, "-c", script], **before) == LOADED


def test_this_systems_old_libstdcxx_is_named(environment: Environment) -> None:
    npp = {"LD_LIBRARY_PATH": str(environment.supply_npp())}
    code, said = environment.run(IMPORTS, **npp)
    if code == 0:
        pytest.skip("the libstdc++ of this system is new enough")
    found = diagnosed(environment, **npp)
    assert found["cause"] == "old-libstdcxx"
    assert f"{found['fault']['path']}: version `{chains.CXXABI}' not found" in said
    assert "mapped first by torch" in found["verdict"]


def test_python_without_condas_rpath_needs_the_lib_folder_too(
    libraries: Path, tmp_path: Path
) -> None:
    python = chains.interpreter(chains.THIS_PYTHON)
    made = chains.make_environment(libraries, tmp_path / "env", python, has_rpath=False)
    npp = made.supply_npp()
    found = diagnosed(made)
    said = " ".join([found["verdict"], *found["also"]])
    assert "libnppicc.so.12" in said
    assert f"FFmpeg 7 is in {made.prefix}/lib" in said
    assert found["remedy"]["ld_library_path"] == [f"{made.prefix}/lib", str(npp)]
    assert made.run(IMPORTS, LD_LIBRARY_PATH=f"{made.prefix}/lib:{npp}") == LOADED


@pytest.mark.parametrize("way", ["sh", "slurm"])
def test_exported_lines_stand_any_folder_name(libraries: Path, tmp_path: Path, way: str) -> None:
    python = chains.interpreter(chains.THIS_PYTHON)
    prefix = tmp_path / 'it\'s "my" $(env)\n`id`'
    made = chains.make_environment(libraries, prefix, python, has_rpath=False)
    made.supply_npp()
    printed = reelseek("env", "--python", str(made.python), "--format", way)
    assert printed.returncode == 0, printed.stderr
    script = f'set -eu\n{printed.stdout}\n"$PYTHON" -c "{IMPORTS}"\n'
    assert run_alone(["sh", "-c", script], PYTHON=str(made.python)) == LOADED


def test_environment_is_printed_only_where_it_helps(environment: Environment) -> None:
    printed = reelseek("env", "--python", str(environment.python), "--format", "sh")
    assert printed.returncode == 1  # libnppicc is nowhere
    assert printed.stdout == ""
    assert "nvidia-npp-cu12" in printed.stderr


def test_three_environments_are_told_apart(libraries: Path, tmp_path: Path) -> None:
    made = {
        name: chains.make_environment(libraries, tmp_path / name, chains.interpreter(version))
        for name, version in (("gr00t-idm", "3.10"), ("pi05", "3.12"), ("dreamgen", "3.10"))
    }
    made["pi05"].supply_npp()
    arguments = [word for env in made.values() for word in ("--python", str(env.python))]
    said = json.loads(reelseek("doctor", "--json", *arguments).stdout)
    assert [found["python_version"].rpartition(".")[0] for found in said["environments"]] == [
        "3.10", "3.12", "3.10",
    ]  # fmt: skip
    assert {found["cause"] for found in said["environments"][::2]} == {"no-nvidia-library"}
    table = reelseek("doctor", *arguments)
    assert table.returncode == 1
    for name in made:
        assert name in table.stdout


ACTIVATES = """
{before}
from reelseek.native import activate
done = activate()
import torchcodec
print("loaded with FFmpeg", torchcodec.ffmpeg_major_version)
print(done.did, *done.loaded, sep="\\n", file=sys.stderr)
"""


@pytest.fixture
def own(libraries: Path, tmp_path: Path) -> Environment:
    """An environment of the Python that runs the tests, whose numpy it can import."""
    python = chains.interpreter(chains.THIS_PYTHON)
    made = chains.make_environment(libraries, tmp_path / "own", python)
    needs = tmp_path / "needs"
    needs.mkdir()
    for name in ("numpy", "numpy.libs", "elftools", "filelock"):
        source = Path(sysconfig.get_path("purelib")) / name
        if source.exists():
            (needs / name).symlink_to(source)
    return made


def activated(
    own: Environment, before: str = "import sys", **variables: str
) -> subprocess.CompletedProcess[str]:
    """``activate()`` and then ``import torchcodec``, in a process of the environment."""
    needs = own.prefix.parent / "needs"
    return subprocess.run(
        [str(own.python), "-c", ACTIVATES.format(before=before)],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{SOURCES}:{needs}",
            "REELSEEK_CACHE": str(own.prefix / "cache"),
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_missing_nvidia_library_is_supplied_in_process(own: Environment) -> None:
    assert own.run(IMPORTS)[0] == 1
    npp = own.supply_npp()
    done = activated(own)
    assert (done.returncode, done.stdout) == LOADED, done.stderr
    assert f"{npp}/libnppicc.so.12" in done.stderr


def test_newer_libstdcxx_that_numpy_mapped_is_enough(own: Environment) -> None:
    # numpy comes with reelseek, and gets the environment's libstdc++ by the DT_RPATH of conda's
    # Python; torch alone would get the old one by LD_LIBRARY_PATH.
    search = f"{own.old}:{own.supply_npp()}"
    assert own.run(IMPORTS, LD_LIBRARY_PATH=search)[0] == 1
    done = activated(own, LD_LIBRARY_PATH=search)
    assert (done.returncode, done.stdout) == LOADED, done.stderr


def test_old_libstdcxx_that_is_mapped_already_is_refused_with_the_command(
    own: Environment,
) -> None:
    npp = own.supply_npp()
    done = activated(own, "import sys, torch", LD_LIBRARY_PATH=f"{own.old}:{npp}")
    assert done.returncode == 1
    assert "BackendUnavailableError" in done.stderr
    assert f"{own.old}/libstdc++.so.6" in done.stderr
    assert "reelseek run -- " in done.stderr
    assert f"export LD_LIBRARY_PATH={own.prefix}/lib" in done.stderr


def _lose(path: Path) -> None:
    (info,) = path.parent.parent.glob("torchcodec-*.dist-info")
    (info / "RECORD").write_text(f"torchcodec/{path.name},,\n")
    path.unlink()


def _cut(path: Path) -> None:
    os.truncate(path, 5000)


def _become_a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [_cut, _become_a_fifo, _lose])
def test_damaged_torchcodec_is_refused_before_it_is_imported(
    own: Environment, damage: Callable[[Path], None]
) -> None:
    own.supply_npp()
    damage(own.site_packages / "torchcodec" / "libtorchcodec_core7.so")
    done = activated(own)
    assert done.returncode == 1, done.stderr
    assert "libtorchcodec_core7.so" in done.stderr
    assert "pip install --force-reinstall" in done.stderr


def test_export_inside_python_is_pointed_out_as_having_no_effect(own: Environment) -> None:
    npp = own.supply_npp()
    path = f"{own.prefix}/lib:{npp}"
    inside = f"import os, sys; os.environ['LD_LIBRARY_PATH'] = {path!r}; import torch"
    done = activated(own, inside, LD_LIBRARY_PATH=f"{own.old}:{npp}")
    assert done.returncode == 1
    assert "no effect" in done.stderr


@pytest.mark.parametrize("torch_is_c", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_planned_preloads_work_where_no_libstdcxx_is_mapped_yet(
    libraries: Path,
    tmp_path: Path,
    version: str,
    torch_is_c: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What activate() would load, planned from outside: its own process has numpy's libstdc++.
    python = chains.interpreter(version)
    made = chains.make_environment(libraries, tmp_path / "env", python, torch_is_c=torch_is_c)
    made.supply_npp()
    facts = replace(collect_facts(str(made.python)), ld_library_path=(str(made.old),))
    process = torch_is_imported(facts, facts.ld_library_path, with_torch=False)
    monkeypatch.setattr("reelseek.native._preload.sys", SimpleNamespace(modules={}))
    plan = plan_preloads(facts, process, 7, Providers(facts))
    assert plan.stuck_at is None
    assert plan.paths[0] == f"{made.prefix}/lib/libstdc++.so.6"
    code = f"import ctypes\nfor path in {plan.paths!r}: ctypes.CDLL(path)\n{IMPORTS}"
    assert made.run(code, LD_LIBRARY_PATH=str(made.old)) == LOADED


def test_command_runs_under_the_remedy(environment: Environment) -> None:
    npp = environment.supply_npp()
    done = reelseek(
        "run", "--python", str(environment.python), "--", str(environment.python), "-c", IMPORTS,
        LD_LIBRARY_PATH=f"{environment.old}:{npp}",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == LOADED, done.stderr
    assert os.fspath(environment.prefix / "lib") in done.stderr


def test_doctor_of_a_broken_environment_takes_less_than_five_seconds(
    environment: Environment,
) -> None:
    begin = chains.processor_seconds()
    done = reelseek("doctor", "--python", str(environment.python))
    assert done.returncode == 1
    assert chains.processor_seconds() - begin < 5
