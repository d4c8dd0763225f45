"""The one cause that is named, from what the emulated linker met."""

from __future__ import annotations

from pathlib import Path

import pytest

from reelseek.native._facts import Facts
from reelseek.native._judge import Cause, Diagnosis, judge, ranked
from reelseek.native._linker import Fault, FaultKind, LinkerSetting, Loaded, LoadResult
from reelseek.native._process import Attempt, Process

AVUTIL = {4: 56, 5: 57, 6: 58, 7: 59, 8: 60}
PROCESS = Process(LinkerSetting("/env/bin/python"), {"/usr/lib/libstdc++.so.6": "torch"}, ())


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    torchcodec = tmp_path / "torchcodec"
    torchcodec.mkdir()
    for major in AVUTIL:
        (torchcodec / f"libtorchcodec_core{major}.so").touch()
    return Facts(
        python="/env/bin/python",
        executable="/env/bin/python3.11",
        python_version="3.11.7",
        prefix="/env",
        base_prefix="/env",
        kind="venv",
        starts=True,
        site_packages=(),
        versions={"torch": "2.13.0+cpu", "torchcodec": "0.13.0"},
        packages={"torch": "/env/torch", "torchcodec": str(torchcodec)},
        torch_cuda="",
        ffmpeg={},
        glibc="2.31",
        ld_library_path=(),
        path_was_changed_inside=False,
        ld_preload=(),
    )


def with_facts(facts: Facts, **changes: object) -> Facts:
    fields = {name: getattr(facts, name) for name in Facts.__dataclass_fields__}
    return Facts(**{**fields, **changes})


def missing(library: str, *by: str) -> Fault:
    return Fault(FaultKind.NOT_FOUND, library, "", chain=(*by, library))


def lacks(library: str, path: str, version: str, *by: str) -> Fault:
    return Fault(FaultKind.VERSION_NOT_DEFINED, library, path, version, chain=(*by, library))


def attempt(major: int, *faults: Fault) -> Attempt:
    """One FFmpeg major; without faults about FFmpeg's own libraries, they were all found."""
    core, avutil = f"libtorchcodec_core{major}.so", f"libavutil.so.{AVUTIL[major]}"
    libraries = (
        Loaded(core, f"/env/{core}", None, -1, None),
        Loaded(avutil, f"/env/lib/{avutil}", None, 0, None),
        Loaded("libavcodec.so.61", "/env/lib/libavcodec.so.61", None, 0, None),
    )
    return Attempt(major, (LoadResult(libraries, faults),), faults)


def without_ffmpeg(major: int, *also: Fault) -> Attempt:
    names = [f"libavutil.so.{AVUTIL[major]}", f"libavcodec.so.{AVUTIL[major] + 2}"]
    core = f"libtorchcodec_core{major}.so"
    return attempt(major, *(missing(name, core) for name in names), *also)


def cause_of(facts: Facts, *attempts: Attempt) -> tuple[Cause, str]:
    found = judge(facts, PROCESS, attempts)
    return found.cause, found.verdict


def test_first_major_that_loads_is_what_torchcodec_takes(facts: Facts) -> None:
    found = judge(facts, PROCESS, [without_ffmpeg(8), attempt(7)])
    assert (found.cause, found.fault) == (Cause.OK, None)
    assert found.verdict == "torchcodec 0.13.0 loads, with FFmpeg 7 (/env/lib/libavcodec.so.61)"
    assert found.noise == ("FFmpeg 8: libavutil.so.60 is not found",)


def test_absent_packages_are_named_before_anything_else(facts: Facts) -> None:
    alone = with_facts(facts, packages={"torch": "/env/torch"})
    assert cause_of(alone) == (Cause.NO_TORCHCODEC, "torchcodec isn't installed in /env")
    packages = {"torchcodec": facts.packages["torchcodec"]}
    assert cause_of(with_facts(facts, packages=packages))[0] is Cause.NO_TORCH


def test_torch_that_does_not_load_itself_is_the_cause(facts: Facts) -> None:
    broken = Process(PROCESS.setting, {}, (missing("libcudnn.so.9", "_C.so"),))
    found = judge(facts, broken, [without_ffmpeg(8)])
    assert found.cause is Cause.TORCH_FAILS
    assert "libcudnn.so.9" in found.verdict


def test_major_that_the_machine_nearly_has_is_judged_and_the_others_are_noise(
    facts: Facts,
) -> None:
    fault = missing("libnppicc.so.12", "libtorchcodec_core7.so", "libavcodec.so.61")
    attempts = [without_ffmpeg(8), attempt(7, fault), *map(without_ffmpeg, (6, 5, 4))]
    found = judge(facts, PROCESS, attempts)
    assert found.cause is Cause.NO_NVIDIA_LIBRARY
    assert found.verdict == "NVIDIA's libnppicc.so.12 is not found (libavcodec.so.61 needs it)"
    assert found.chain == ("libtorchcodec_core7.so", "libavcodec.so.61", "libnppicc.so.12")
    assert [text[:8] for text in found.noise] == ["FFmpeg 8", "FFmpeg 6", "FFmpeg 5", "FFmpeg 4"]


def test_missing_library_comes_before_a_missing_version_as_in_the_linker(facts: Facts) -> None:
    old = lacks(
        "libstdc++.so.6", "/usr/lib/libstdc++.so.6", "CXXABI_1.3.15", "core", "libopenvino.so.2520"
    )
    npp = missing("libnppicc.so.12", "core", "libavcodec.so.61")
    found = judge(facts, PROCESS, [attempt(7, old, npp)])
    assert found.cause is Cause.NO_NVIDIA_LIBRARY
    assert found.also == (
        "/usr/lib/libstdc++.so.6 is mapped first by torch, too old: libopenvino.so.2520 needs "
        "CXXABI_1.3.15",
    )
    assert cause_of(facts, attempt(7, old))[0] is Cause.OLD_LIBSTDCXX


@pytest.mark.parametrize("library", ["libtorch_cuda.so", "libnvrtc.so.13"])
def test_cuda_wheel_beside_a_cpu_torch_is_told_by_what_it_needs_itself(
    facts: Facts, library: str
) -> None:
    fault = missing(library, "libtorchcodec_core8.so")
    found = judge(facts, PROCESS, [without_ffmpeg(8, fault)])
    assert found.cause is Cause.CUDA_WHEEL
    assert found.verdict.endswith("and torch 2.13.0+cpu is a CPU build")
    assert found.also == ("torchcodec 0.13.0 finds no FFmpeg: none of libavutil.so.56 to "
                          "libavutil.so.60",)  # fmt: skip


def test_wheel_for_another_cuda_than_torchs_is_told(facts: Facts) -> None:
    cuda = with_facts(facts, torch_cuda="12.8")
    fault = missing("libnvrtc.so.13", "libtorchcodec_core8.so")
    cause, verdict = cause_of(cuda, attempt(8, fault))
    assert cause is Cause.CUDA_WHEEL
    assert verdict.endswith("is built for CUDA 12.8")
    same = missing("libnvrtc.so.12", "libtorchcodec_core8.so")
    assert cause_of(cuda, attempt(8, same))[0] is Cause.NO_NVIDIA_LIBRARY


def test_undefined_symbol_means_another_torch(facts: Facts) -> None:
    fault = Fault(
        FaultKind.UNDEFINED_SYMBOL, "libtorchcodec_core8.so", "/core", symbol="_ZN3c105ErrorE",
        chain=("libtorchcodec_core8.so",),
    )  # fmt: skip
    old = with_facts(facts, versions={"torch": "2.13.0", "torchcodec": "0.7.0"})
    assert cause_of(old, attempt(8, fault)) == (
        Cause.OTHER_TORCH,
        "torchcodec 0.7.0 is built for torch 2.8, and torch 2.13.0 is installed",
    )
    early = with_facts(facts, versions={"torch": "2.9.0", "torchcodec": "0.13.0"})
    assert cause_of(early, attempt(8, fault))[1] == (
        "torchcodec 0.13.0 is built for torch 2.11 or newer, and torch 2.9.0 is installed"
    )
    unknown = with_facts(facts, versions={"torch": "2.13.0", "torchcodec": "9.1"})
    assert "_ZN3c105ErrorE" in cause_of(unknown, attempt(8, fault))[1]


def test_ffmpeg_that_is_not_there_at_all(facts: Facts) -> None:
    assert cause_of(facts, *map(without_ffmpeg, (8, 7, 6, 5, 4))) == (
        Cause.NO_FFMPEG,
        "torchcodec 0.13.0 finds no FFmpeg: none of libavutil.so.56 to libavutil.so.60",
    )


def test_ffmpeg_off_the_search_path_is_named_with_its_folder(facts: Facts) -> None:
    found = with_facts(facts, ffmpeg={"libavutil.so.58": "/opt/lib/libavutil.so.58"})
    assert cause_of(found, *map(without_ffmpeg, (8, 7, 6, 5, 4))) == (
        Cause.NO_FFMPEG, "FFmpeg 6 is in /opt/lib, and not on the search path",
    )  # fmt: skip


def test_ffmpeg_of_a_major_that_torchcodec_is_not_built_for(facts: Facts) -> None:
    found = with_facts(facts, ffmpeg={"libavutil.so.61": "/usr/lib/libavutil.so.61"})
    assert cause_of(found, *map(without_ffmpeg, (8, 7))) == (
        Cause.OTHER_FFMPEG,
        "torchcodec 0.13.0 is built for FFmpeg 4 to 8, and this machine has FFmpeg 9",
    )


def test_ffmpeg_without_one_of_its_libraries(facts: Facts) -> None:
    half = attempt(7, missing("libavdevice.so.61", "libtorchcodec_core7.so"))
    assert cause_of(facts, without_ffmpeg(8), half) == (
        Cause.PARTIAL_FFMPEG, "FFmpeg 7 is here without libavdevice.so.61",
    )  # fmt: skip


def test_old_glibc_is_told_with_both_versions(facts: Facts) -> None:
    fault = lacks("libc.so.6", "/lib/libc.so.6", "GLIBC_2.38", "libtorchcodec_core8.so")
    assert cause_of(facts, attempt(8, fault)) == (
        Cause.OLD_GLIBC,
        "libtorchcodec_core8.so needs glibc 2.38, and this machine has glibc 2.31",
    )


def test_old_library_other_than_libstdcxx(facts: Facts) -> None:
    fault = lacks("libtbb.so.12", "/usr/lib/libtbb.so.12", "TBB_9", "core", "libopenvino.so")
    assert cause_of(facts, attempt(8, fault)) == (
        Cause.OLD_LIBRARY, "/usr/lib/libtbb.so.12 is too old: libopenvino.so needs TBB_9",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "cause"),
    [(FaultKind.UNREADABLE, Cause.DAMAGED_FILE), (FaultKind.WRONG_MACHINE, Cause.WRONG_MACHINE)],
)
def test_file_that_can_never_load_comes_first(facts: Facts, kind: FaultKind, cause: Cause) -> None:
    fault = Fault(kind, "libavcodec.so.61", "/env/lib/libavcodec.so.61", chain=("core", "x"))
    npp = missing("libnppicc.so.12", "core")
    found, verdict = cause_of(facts, attempt(7, npp, fault))
    assert found is cause
    assert "/env/lib/libavcodec.so.61" in verdict


def test_missing_libpython_and_missing_others(facts: Facts) -> None:
    libpython = missing("libpython3.11.so.1.0", "libtorchcodec_custom_ops8.so")
    assert cause_of(facts, attempt(8, libpython))[0] is Cause.NO_LIBPYTHON
    other = missing("libva.so.2", "libtorchcodec_core8.so", "libavutil.so.60")
    assert cause_of(facts, attempt(8, other)) == (
        Cause.NO_LIBRARY, "libva.so.2 is not found (libavutil.so.60 needs it)",
    )  # fmt: skip


def test_torchcodec_without_its_libraries_is_no_whole_install(facts: Facts) -> None:
    assert cause_of(facts)[0] is Cause.DAMAGED_FILE


def test_ffmpeg_that_lies_somewhere_is_nearer_than_one_that_does_not(facts: Facts) -> None:
    found = with_facts(facts, ffmpeg={"libavutil.so.57": "/opt/libavutil.so.57"})
    order = ranked(found, [without_ffmpeg(8), without_ffmpeg(5), attempt(4, missing("libva.so"))])
    assert [one.ffmpeg_major for one in order] == [4, 5, 8]


def test_diagnosis_without_a_fault_has_no_chain() -> None:
    assert Diagnosis(Cause.OK, "").chain == ()
