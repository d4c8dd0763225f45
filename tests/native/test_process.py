"""What torchcodec's load is made of, and this process as the planner sees it."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reelseek.native import _process as process
from reelseek.native._facts import collect_facts
from reelseek.native._preload import mapped_files
from tests.native import chains


def _majors(folder: Path, *names: str) -> tuple[int, ...]:
    for name in names:
        (folder / name).touch()
    return process.torchcodec_majors(replace(collect_facts(), packages={"torchcodec": str(folder)}))


def test_folders_that_are_not_there_are_asked_for_once(tmp_path: Path) -> None:
    there = str(tmp_path)
    search = [f"/no/such/{number}" for number in range(6000)]
    setting = process.torch_is_imported(
        collect_facts(), ["", *search, there, "$ORIGIN", "relative", there], with_torch=False
    ).setting
    assert setting.ld_library_path == ("", there, "$ORIGIN", "relative")


def test_highest_ffmpeg_major_is_tried_first(tmp_path: Path) -> None:
    names = [f"libtorchcodec_core{major}.so" for major in (4, 10, 7)]
    assert _majors(tmp_path, *names, "libtorchcodec_image.so") == (10, 7, 4)


def test_library_of_old_releases_has_another_name(tmp_path: Path) -> None:
    assert _majors(tmp_path, "libtorchcodec_decoder7.so") == (7,)


def test_folder_without_libraries_has_no_major(tmp_path: Path) -> None:
    assert _majors(tmp_path) == ()


def test_mapped_files_are_this_process_libraries_in_their_order(tmp_path: Path) -> None:
    chains.build_libraries(tmp_path / "libraries")
    first, second = (
        tmp_path / "libraries" / "torch" / name for name in ("libc10.so", "libtorch_cpu.so")
    )
    assert not {str(first), str(second)} & set(mapped_files())
    ctypes.CDLL(str(first))
    ctypes.CDLL(str(second))
    files = mapped_files()
    assert files.index(str(first)) < files.index(str(second))
    assert all(".so" in path for path in files)


def test_symbol_that_nothing_has_is_found_where_all_files_are(tmp_path: Path) -> None:
    libraries = chains.build_libraries(tmp_path / "libraries")
    python = chains.interpreter("{}.{}".format(*sys.version_info[:2]))
    made = chains.make_environment(libraries, tmp_path / "env", python, torch_is_c=True)
    npp = made.supply_npp()
    facts = collect_facts(str(made.python))
    before = process.torch_is_imported(facts, [str(npp)])
    whole = process.try_all(facts, before)
    assert whole[0].loads
    chains.compile_library(  # as a torchcodec of another torch would be
        made.site_packages / "torchcodec" / "libtorchcodec_core7.so",
        "int _ZN3c105ErrorE(void); int core(void) { return _ZN3c105ErrorE(); }",
        needs=[libraries / "torch" / "libtorch.so"],
    )
    (fault,) = process.try_all(facts, before)[0].faults
    assert (fault.kind.name, fault.symbol) == ("UNDEFINED_SYMBOL", "_ZN3c105ErrorE")


@pytest.mark.parametrize("name", ["libavutil.so.59", "libswscale.so.8", "libpostproc.so.58"])
def test_libraries_of_ffmpeg_are_known_by_name(name: str) -> None:
    assert process.FFMPEG_NAME.fullmatch(name)
    assert not process.FFMPEG_NAME.fullmatch(name.removesuffix(name[-3:]))
