"""What is proposed, for environments whose libraries are real files."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reelseek.native._doctor import examine
from reelseek.native._facts import Facts, collect_facts
from reelseek.native._judge import Cause, Diagnosis
from reelseek.native._linker import Fault, FaultKind
from reelseek.native._providers import Providers
from reelseek.native._remedy import Remedy, RemedyKind, find_remedy
from tests.native import chains
from tests.native.chains import Environment


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chains.build_libraries(tmp_path_factory.mktemp("remedy") / "libraries")


@pytest.fixture
def environment(libraries: Path, tmp_path: Path) -> Environment:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    return chains.make_environment(libraries, tmp_path / "env", python)


def remedy_of(environment: Environment, *ld_library_path: Path) -> Remedy:
    found = examine(
        str(environment.python),
        with_proof=False,
        decoders=False,
        ld_library_path=tuple(map(str, ld_library_path)),
    )
    return found.remedy


def test_missing_nvidia_library_without_a_provider_is_installed(environment: Environment) -> None:
    remedy = remedy_of(environment, environment.old)
    assert remedy.kind is RemedyKind.INSTALL
    assert remedy.command == f"{environment.python} -m pip install nvidia-npp-cu12"


def test_environments_lib_stands_before_its_nvidia_folders(environment: Environment) -> None:
    npp = environment.supply_npp()
    remedy = remedy_of(environment, environment.old)
    assert remedy.kind is RemedyKind.SEARCH_PATH
    assert remedy.folders == (str(environment.prefix / "lib"), str(npp))


def test_only_the_folders_that_are_needed_are_proposed(environment: Environment) -> None:
    npp = environment.supply_npp()
    for name in ("cublas", "cudnn"):
        (npp.parent.parent / name / "lib").mkdir(parents=True)
    on_path = environment.prefix / "lib"
    assert remedy_of(environment, on_path, environment.old).folders == (str(npp),)


def test_provider_for_another_machine_is_none(environment: Environment) -> None:
    library = environment.supply_npp() / "libnppicc.so.12"
    image = bytearray(library.read_bytes())
    image[18:20] = (183).to_bytes(2, sys.byteorder)  # e_machine: EM_AARCH64
    library.write_bytes(image)
    assert remedy_of(environment, environment.old).kind is RemedyKind.INSTALL


def test_provider_that_misses_something_itself_is_not_proposed(environment: Environment) -> None:
    # Everything resolves but for libstdc++, and the newer one is gone.
    npp = environment.supply_npp()
    shutil.copy(environment.old / "libstdc++.so.6", environment.prefix / "lib")
    remedy = remedy_of(environment, environment.old, npp)
    assert remedy.kind is RemedyKind.INSTALL
    assert remedy.command.startswith("conda install -y -p ")
    assert "libstdcxx" in remedy.command


def test_nothing_is_proposed_where_nothing_is_wrong(environment: Environment) -> None:
    npp = environment.supply_npp()
    remedy = remedy_of(environment, environment.prefix / "lib", npp)
    assert remedy == Remedy(RemedyKind.NOTHING_NEEDED)


def installed(facts: Facts, cause: Cause, fault: Fault | None = None) -> Remedy:
    return find_remedy(facts, Diagnosis(cause, "", None, fault), (), Providers(facts))


@pytest.fixture
def facts() -> Facts:
    found = collect_facts()
    versions = {"torch": "2.13.0+cpu", "torchcodec": "0.17.0"}
    packages = {"torch": "/env/torch", "torchcodec": "/env/torchcodec"}
    return replace(
        found, python="/env/bin/python", prefix="/env", versions=versions, packages=packages,
        torch_cuda="", python_version="3.11.7", kind="venv",
    )  # fmt: skip


def test_cuda_wheel_is_replaced_by_the_last_that_needs_none(facts: Facts) -> None:
    command = installed(facts, Cause.CUDA_WHEEL).command
    assert command == "/env/bin/python -m pip install torchcodec==0.13.0"


def test_torchcodec_is_chosen_for_the_torch_that_is_there(facts: Facts) -> None:
    old = replace(facts, versions={"torch": "2.8.0"})
    assert installed(old, Cause.OTHER_TORCH).command.endswith("torchcodec==0.7.0")
    ancient = replace(facts, versions={"torch": "1.13.0"})
    remedy = installed(ancient, Cause.OTHER_TORCH)
    assert (remedy.kind, remedy.command) == (RemedyKind.UNKNOWN, "")
    assert "1.13.0" in remedy.note


def test_torch_is_installed_with_torchcodec_where_both_are_absent(facts: Facts) -> None:
    bare = replace(facts, versions={}, packages={})
    command = installed(bare, Cause.NO_TORCHCODEC).command
    assert command == "/env/bin/python -m pip install torch torchcodec==0.13.0"


def test_ffmpeg_comes_from_conda_in_a_conda_environment(facts: Facts) -> None:
    conda = replace(facts, kind="conda")
    assert installed(conda, Cause.NO_FFMPEG).command == (
        "conda install -y -p /env -c conda-forge 'ffmpeg<8'"
    )


def test_ffmpeg_comes_with_pyav_elsewhere(facts: Facts) -> None:
    command = installed(facts, Cause.NO_FFMPEG).command
    assert command.startswith("/env/bin/python -m pip install 'av>=")


def test_damaged_file_is_brought_back_by_the_package_that_owns_it(facts: Facts) -> None:
    fault = Fault(FaultKind.UNREADABLE, "libtorch.so", "/env/torch/lib/libtorch.so")
    assert installed(facts, Cause.DAMAGED_FILE, fault).command == (
        "/env/bin/python -m pip install --force-reinstall --no-deps torch==2.13.0"
    )


def test_old_glibc_has_no_command(facts: Facts) -> None:
    remedy = installed(facts, Cause.OLD_GLIBC)
    assert (remedy.kind, remedy.command) == (RemedyKind.UNKNOWN, "")
    assert "container" in remedy.note


def test_command_is_quoted_for_a_shell(facts: Facts) -> None:
    hard = replace(facts, python="/my env/it's/bin/python")
    command = installed(hard, Cause.CUDA_WHEEL).command
    assert command.startswith("'/my env/it'\"'\"'s/bin/python' -m pip ")
