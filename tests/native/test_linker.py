"""The emulated dynamic linker, rule by rule, on libraries compiled for each; glibc has to agree."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from reelseek.errors import ElfError
from reelseek.native._ld_so import cpu_levels, read_ld_so
from reelseek.native._linker import (
    Fault,
    FaultKind,
    FoundBy,
    LinkerSetting,
    LoadResult,
    simulate_load,
    simulate_start,
)
from tests.conftest import skip_without
from tests.patience import PATIENCE

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
/* Arguments: libraries to load, in order; after "-": by the function load() of the one before. */
int main(int count, char **names) {
    struct link_map *entry;
    void *handle = 0;
    for (int i = 1; i < count; i++) {
        void *(*load)(const char *, int) = dlopen;
        if (names[i][0] == '-') {
            load = (void *(*)(const char *, int)) dlsym(handle, "load");
            names[i]++;
        }
        handle = load(names[i], RTLD_NOW);
        if (!handle) { printf("!%s\n", dlerror()); return 0; }
    }
    dlinfo(dlopen(0, RTLD_NOW), RTLD_DI_LINKMAP, &entry);
    for (; entry; entry = entry->l_next)
        if (entry->l_name[0] && !strstr(entry->l_name, "-vdso")) puts(entry->l_name);
    return 0;
}
"""


@dataclass(slots=True)
class Workshop:
    """Compiles libraries and asks glibc and the emulation about them."""

    folder: Path

    def library(
        self,
        path: str,
        *needs: str,
        soname: str | None = "",
        rpath: str = "",
        runpath: str = "",
        code: str = "",
        versions: str = "",
        options: Sequence[str] = (),
    ) -> Path:
        """A library at ``path``, needing others; its soname is its name, or None."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        name = target.name if soname == "" else soname
        source = self.folder / "source.c"
        source.write_text(code)
        arguments = ["-shared", "-fPIC", "-nostdlib", "-Wl,--allow-shlib-undefined", *options]
        arguments += [f"-Wl,-soname,{name}"] if name else []
        if versions:
            script = self.folder / "versions.map"
            script.write_text(versions)
            arguments.append(f"-Wl,--version-script,{script}")
        self._compile(source, target, arguments, needs, rpath, runpath)
        return target

    def program(
        self,
        path: str,
        *needs: str,
        rpath: str = "",
        runpath: str = "",
        options: Sequence[str] = (),
    ) -> Path:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        source = self.folder / "program.c"
        source.write_text(PROGRAM)
        self._compile(source, target, ["-rdynamic", *options], needs, rpath, runpath)
        return target

    def _compile(
        self,
        source: Path,
        target: Path,
        arguments: Sequence[str],
        needs: Sequence[str],
        rpath: str,
        runpath: str,
    ) -> None:
        linked = [str(self.folder / need) for need in needs]
        search = [f"-Wl,-rpath,{rpath or runpath}"] if rpath or runpath else []
        tags = "--disable-new-dtags" if rpath else "--enable-new-dtags"
        subprocess.run(
            ["gcc", "-o", str(target), str(source), *arguments, f"-Wl,{tags}",
             "-Wl,--no-as-needed", *linked, "-Wl,--as-needed",
             "-Wl,--unresolved-symbols=ignore-all", *search],
            check=True, capture_output=True, text=True,
        )  # fmt: skip

    def load(
        self,
        program: Path,
        *paths: Path | str,
        ld_library_path: str | None = None,
        ld_preload: str = "",
        check_symbols: bool = False,
        folder: Path | None = None,
    ) -> LoadResult:
        """What the emulation says of the last path, once glibc has agreed to it."""
        said = self._ask_glibc(program, paths, ld_library_path, ld_preload, folder)
        setting = LinkerSetting(
            str(program),
            () if ld_library_path is None else tuple(ld_library_path.split(":")),
            tuple(ld_preload.split()),
            folder=str(folder or ""),
        )
        result, expected = _simulated(setting, [str(path) for path in paths], check_symbols)
        if said and said[0].startswith("!"):
            assert any(_is_what_glibc_says(fault, said[0]) for fault in result.faults), said
        else:
            assert result.faults == ()
            assert [os.path.abspath(path) for path in expected] == said
        return result

    def _ask_glibc(
        self,
        program: Path,
        paths: Sequence[Path | str],
        ld_library_path: str | None,
        ld_preload: str,
        folder: Path | None,
    ) -> list[str]:
        variables = {"LD_PRELOAD": ld_preload} if ld_preload else {}
        if ld_library_path is not None:
            variables["LD_LIBRARY_PATH"] = ld_library_path
        done = subprocess.run(
            [str(program), *map(str, paths)], env=variables, cwd=folder, capture_output=True,
            text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        if done.returncode:
            return ["!" + done.stderr]
        at = folder or Path.cwd()
        lines = done.stdout.splitlines()
        return [line if line[0] == "!" else os.path.abspath(at / line) for line in lines]


def _simulated(
    setting: LinkerSetting, paths: Sequence[str], check_symbols: bool
) -> tuple[LoadResult, list[str]]:
    """The last load, and all paths in the order of loading, with the linker itself where it is."""
    result = simulate_start(setting)
    order = [library.path for library in result.libraries[1:]]
    for path in paths:
        caller = order[-1] if path.startswith("-") else ""
        now = LinkerSetting(
            setting.executable, setting.ld_library_path, setting.ld_preload, tuple(order), caller,
            folder=setting.folder,
        )  # fmt: skip
        result = simulate_load(path.lstrip("-"), now, check_symbols=check_symbols)
        order += [found.path for found in result.libraries if found.path not in order]
    return result, order


def _is_what_glibc_says(fault: Fault, said: str) -> bool:
    words = {
        FaultKind.NOT_FOUND: (fault.library, "cannot open shared object file"),
        FaultKind.VERSION_NOT_DEFINED: (fault.path, f"version `{fault.version}' not found"),
        FaultKind.WRONG_MACHINE: (fault.library, ""),
        FaultKind.UNREADABLE: (fault.path, ""),
        FaultKind.UNDEFINED_SYMBOL: (fault.path, f"undefined symbol: {fault.symbol}"),
    }
    return all(word in said for word in words[fault.kind])


def _path_of(result: LoadResult, name: str) -> str:
    return next(found.path for found in result.libraries if found.name == name)


def _found_by(result: LoadResult, name: str) -> FoundBy | None:
    return next(found.found_by for found in result.libraries if found.name == name)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    if shutil.which("gcc") is None:
        skip_without("gcc", "gcc isn't installed")
    return Workshop(tmp_path)


@pytest.fixture
def two(workshop: Workshop) -> Workshop:
    """libb.so in the folders ``one`` and ``two``."""
    workshop.library("one/libb.so")
    workshop.library("two/libb.so")
    return workshop


def test_rpath_of_the_loader_comes_before_ld_library_path(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", rpath=f"{two.folder}/one")
    result = two.load(two.program("main"), a, ld_library_path=f"{two.folder}/two")
    assert _path_of(result, "libb.so") == f"{two.folder}/one/libb.so"
    assert _found_by(result, "libb.so") is FoundBy.DT_RPATH


def test_runpath_of_the_loader_comes_after_ld_library_path(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one")
    result = two.load(two.program("main"), a, ld_library_path=f"{two.folder}/two")
    assert _path_of(result, "libb.so") == f"{two.folder}/two/libb.so"
    assert _found_by(result, "libb.so") is FoundBy.LD_LIBRARY_PATH
    assert _found_by(two.load(two.program("main"), a), "libb.so") is FoundBy.DT_RUNPATH


def test_rpath_of_an_ancestor_serves_what_its_libraries_need(two: Workshop) -> None:
    two.library("one/libm1.so", "one/libb.so")
    a = two.library("liba.so", "one/libm1.so", rpath=f"{two.folder}/one")
    result = two.load(two.program("main"), a, ld_library_path=f"{two.folder}/two")
    assert _path_of(result, "libb.so") == f"{two.folder}/one/libb.so"


def test_runpath_is_not_passed_on(two: Workshop) -> None:
    two.library("one/libm1.so", "one/libb.so")
    a = two.library("liba.so", "one/libm1.so", runpath=f"{two.folder}/one")
    result = two.load(two.program("main"), a)
    assert [fault.chain for fault in result.faults] == [("liba.so", "libm1.so", "libb.so")]
    assert result.faults[0].kind is FaultKind.NOT_FOUND


def test_rpath_of_ancestors_is_not_used_by_a_loader_with_a_runpath(two: Workshop) -> None:
    two.library("one/libm1.so", "one/libb.so", runpath="/nowhere")
    a = two.library("liba.so", "one/libm1.so", rpath=f"{two.folder}/one")
    result = two.load(two.program("main"), a, ld_library_path=f"{two.folder}/two")
    assert _path_of(result, "libb.so") == f"{two.folder}/two/libb.so"


def test_empty_runpath_still_switches_rpath_off(two: Workshop) -> None:
    middle = two.library("one/libm1.so", "one/libb.so", runpath="/to/be/emptied")
    _overwrite(middle, middle.read_bytes().index(b"/to/be/emptied"), b"\0")
    a = two.library("liba.so", "one/libm1.so", rpath=f"{two.folder}/one")
    result = two.load(two.program("main"), a, folder=two.folder / "one")
    assert [fault.chain for fault in result.faults] == [("liba.so", "libm1.so", "libb.so")]


def test_rpath_of_the_program_serves_what_is_loaded_later(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so")
    main = two.program("bin/main", rpath="$ORIGIN/../one")
    result = two.load(main, a, ld_library_path=f"{two.folder}/two")
    assert Path(_path_of(result, "libb.so")) == Path(f"{two.folder}/bin/../one/libb.so")


def test_runpath_of_the_program_does_not(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so")
    main = two.program("main", runpath=f"{two.folder}/one")
    assert [fault.library for fault in two.load(main, a).faults] == ["libb.so"]


CALLER = "void *dlopen(const char *, int); void *load(char *p, int m) { return dlopen(p, m); }"


@pytest.mark.parametrize("tag", ["rpath", "runpath"])
def test_search_path_of_the_library_that_calls_dlopen_serves_a_name(
    two: Workshop, tag: Literal["rpath", "runpath"]
) -> None:
    path = f"{two.folder}/one"
    caller = two.library("libcaller.so", code=CALLER, **{tag: path})
    result = two.load(two.program("main"), caller, "-libb.so")
    assert result.libraries[0].path == f"{two.folder}/one/libb.so"


def test_rpath_of_the_caller_is_not_passed_on(two: Workshop) -> None:
    caller = two.library("libcaller.so", code=CALLER, rpath=f"{two.folder}/one")
    two.library("one/liba.so", "one/libb.so")
    for name in (f"-{two.folder}/one/liba.so", "-liba.so"):
        result = two.load(two.program("main"), caller, name)
        assert [fault.chain for fault in result.faults] == [("liba.so", "libb.so")]


def test_name_without_a_slash_is_searched_for(two: Workshop) -> None:
    result = two.load(two.program("main"), "libb.so", ld_library_path=f"{two.folder}/two")
    assert result.libraries[0].path == f"{two.folder}/two/libb.so"


def test_origin_follows_the_path_that_was_found_and_not_its_links(two: Workshop) -> None:
    a = two.library("real/liba.so", "one/libb.so", runpath="${ORIGIN}")
    (two.folder / "one/liba.so").symlink_to(a)
    result = two.load(two.program("main"), two.folder / "one/liba.so")
    assert _path_of(result, "libb.so") == f"{two.folder}/one/libb.so"


def test_origin_of_the_program_follows_its_links(two: Workshop) -> None:
    main = two.program("prefix/bin/main", "one/libb.so", rpath="$ORIGIN/../../one")
    (two.folder / "link").symlink_to(main)
    result = two.load(two.folder / "link")
    assert Path(_path_of(result, "libb.so")).resolve() == two.folder / "one/libb.so"


def test_other_dollars_stand_as_they_are(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath="$ORIGINAL:$ORIGIN/$FOO:$ORIGIN/one")
    (two.folder / "$FOO").mkdir()
    shutil.copy(two.folder / "two/libb.so", two.folder / "$FOO/libb.so")
    result = two.load(two.program("main"), a)
    assert _path_of(result, "libb.so") == f"{two.folder}/$FOO/libb.so"


def test_lib_stands_for_the_systems_folder_name(two: Workshop) -> None:
    main = two.program("main")
    lib = read_ld_so(str(_interpreter()), "x86_64", 64).lib
    two.library(f"{lib}/libb.so")
    a = two.library("liba.so", "one/libb.so", runpath="$ORIGIN/$LIB")
    assert _path_of(two.load(main, a), "libb.so") == f"{two.folder}/{lib}/libb.so"


def _interpreter() -> Path:
    return next(
        path
        for path in map(Path, ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"))
        if path.exists()
    )


@pytest.mark.parametrize(
    "text", ["{0}/two:{0}/one", "{0}/none;{0}/two/", "{0}//two", "$ORIGIN/two"]
)
def test_ld_library_path_is_split_at_colons_and_semicolons(two: Workshop, text: str) -> None:
    a = two.library("liba.so", "one/libb.so")
    result = two.load(two.program("main"), a, ld_library_path=text.format(two.folder))
    assert Path(_path_of(result, "libb.so")) == Path(f"{two.folder}/two/libb.so")


@pytest.mark.parametrize("text", [":/nowhere", "/nowhere:", ".", "/nowhere::/nowhere2"])
def test_empty_entry_is_the_current_folder(two: Workshop, text: str) -> None:
    a = two.library("liba.so", "one/libb.so")
    main = two.program("main")
    result = two.load(main, a, ld_library_path=text, folder=two.folder / "one")
    assert Path(_path_of(result, "libb.so")) == two.folder / "one/libb.so"


def test_empty_variable_is_as_none(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so")
    result = two.load(two.program("main"), a, ld_library_path="", folder=two.folder / "one")
    assert [fault.kind for fault in result.faults] == [FaultKind.NOT_FOUND]


def test_folder_for_the_cpu_comes_before_the_folder_itself(two: Workshop) -> None:
    if not read_ld_so(str(_interpreter()), "x86_64", 64).hwcaps:
        skip_without("hwcaps", "this CPU or glibc has no glibc-hwcaps folders")
    best, *others = cpu_levels()
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one")
    for level in (*others, best, "x86-64-v99"):
        two.library(f"one/glibc-hwcaps/{level}/libb.so")
    result = two.load(two.program("main"), a)
    assert _path_of(result, "libb.so") == f"{two.folder}/one/glibc-hwcaps/{best}/libb.so"


def test_soname_that_is_mapped_already_is_taken_from_there(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one")
    main = two.program("main")
    result = two.load(main, two.folder / "two/libb.so", a)
    assert _path_of(result, "libb.so") == f"{two.folder}/two/libb.so"
    assert _found_by(result, "libb.so") is FoundBy.MAPPED


def test_first_library_of_a_name_serves_all_that_need_it(two: Workshop) -> None:
    two.library("libx.so", "one/libb.so", runpath=f"{two.folder}/two")
    two.library("liby.so", "one/libb.so", runpath=f"{two.folder}/one")
    a = two.library("liba.so", "libx.so", "liby.so", runpath="$ORIGIN")
    result = two.load(two.program("main"), a)
    assert _path_of(result, "libb.so") == f"{two.folder}/two/libb.so"
    assert [found.name for found in result.libraries].count("libb.so") == 1


def test_one_file_under_two_names_is_mapped_once(workshop: Workshop) -> None:
    real = workshop.library("libreal.so", soname=None)
    workshop.library("one/libreal.so")
    workshop.library("one/libalias.so")
    a = workshop.library("liba.so", "one/libreal.so", "one/libalias.so", runpath="$ORIGIN")
    (workshop.folder / "libalias.so").symlink_to(real)
    result = workshop.load(workshop.program("main"), a)
    assert [found.name for found in result.libraries][:2] == [str(a), "libreal.so"]
    assert "libalias.so" not in [found.name for found in result.libraries]


def test_needed_libraries_come_breadth_first(workshop: Workshop) -> None:
    for name in ("libd.so", "libe.so"):
        workshop.library(name)
    workshop.library("libb.so", "libd.so", runpath="$ORIGIN")
    workshop.library("libc1.so", "libe.so", "libd.so", runpath="$ORIGIN")
    a = workshop.library("liba.so", "libb.so", "libc1.so", runpath="$ORIGIN")
    result = workshop.load(workshop.program("main"), a)
    assert [(found.name, found.needed_by) for found in result.libraries[1:]] == [
        ("libb.so", 0), ("libc1.so", 0), ("libd.so", 1), ("libe.so", 2),
    ]  # fmt: skip


def test_file_of_another_class_or_machine_is_passed_over(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one:{two.folder}/two")
    main = two.program("main")
    for place, value in ((4, b"\x01"), (18, struct.pack("<H", 0xF3))):
        two.library("one/libb.so")
        _overwrite(two.folder / "one/libb.so", place, value)
        assert _path_of(two.load(main, a), "libb.so") == f"{two.folder}/two/libb.so"


@pytest.mark.parametrize(("place", "value"), [(4, b"\x01"), (18, b"\xf3\0")])
def test_only_a_file_for_another_machine(two: Workshop, place: int, value: bytes) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one")
    _overwrite(two.folder / "one/libb.so", place, value)
    (fault,) = two.load(two.program("main"), a).faults
    assert fault.kind is FaultKind.WRONG_MACHINE
    assert (fault.library, fault.path) == ("libb.so", f"{two.folder}/one/libb.so")


@pytest.mark.parametrize(
    "data", [b"INPUT(libb.so.6 -lc)" * 20, b"", b"\x7fELF", b"version https://git-lfs"]
)
def test_file_that_is_no_library_ends_the_search(two: Workshop, data: bytes) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one:{two.folder}/two")
    (two.folder / "one/libb.so").write_bytes(data)
    (fault,) = two.load(two.program("main"), a).faults
    assert fault.kind is FaultKind.UNREADABLE
    assert fault.path == f"{two.folder}/one/libb.so"
    assert fault.detail


def test_folder_of_the_librarys_name_ends_the_search(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one:{two.folder}/two")
    (two.folder / "one/libb.so").unlink()
    (two.folder / "one/libb.so").mkdir()
    (fault,) = two.load(two.program("main"), a).faults
    assert fault.kind is FaultKind.UNREADABLE


def test_folder_whose_name_is_too_long_is_passed_over(two: Workshop) -> None:
    long = "/x" * 2500
    a = two.library("liba.so", "one/libb.so", runpath=f"{long}:/{'y' * 300}:{two.folder}/two")
    result = two.load(two.program("main"), a)
    assert _path_of(result, "libb.so") == f"{two.folder}/two/libb.so"


def test_file_that_cannot_be_opened_ends_the_search_in_its_list(two: Workshop) -> None:
    runpath = f"{two.folder}/loop:{two.folder}/two"
    a = two.library("liba.so", "one/libb.so", runpath=runpath)
    (two.folder / "loop").mkdir()
    (two.folder / "loop/libb.so").symlink_to("libb.so")
    result = two.load(two.program("main"), a)
    assert [fault.kind for fault in result.faults] == [FaultKind.NOT_FOUND]


def test_link_that_leads_nowhere_is_passed_over(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/three:{two.folder}/two")
    (two.folder / "three").mkdir()
    (two.folder / "three/libb.so").symlink_to("absent.so")
    result = two.load(two.program("main"), a)
    assert _path_of(result, "libb.so") == f"{two.folder}/two/libb.so"


def test_file_in_place_of_a_folder_is_passed_over(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/file:{two.folder}/two")
    (two.folder / "file").write_text("")
    result = two.load(two.program("main"), a)
    assert _path_of(result, "libb.so") == f"{two.folder}/two/libb.so"


def test_program_cannot_be_loaded_as_a_library(workshop: Workshop) -> None:
    main = workshop.program("main")
    (fault,) = workshop.load(main, workshop.program("other")).faults
    assert fault.kind is FaultKind.UNREADABLE
    assert "program" in fault.detail


def test_fifo_does_not_block(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one")
    (two.folder / "one/libb.so").unlink()
    os.mkfifo(two.folder / "one/libb.so")  # glibc itself would wait for a writer
    result = simulate_load(str(a), LinkerSetting(str(two.program("main"))))
    assert [fault.kind for fault in result.faults] == [FaultKind.UNREADABLE]


def test_library_cut_short_is_a_fault(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one")
    whole = (two.folder / "one/libb.so").read_bytes()
    (two.folder / "one/libb.so").write_bytes(whole[: len(whole) // 2])
    result = simulate_load(str(a), LinkerSetting(str(two.program("main"))))  # glibc: SIGBUS
    assert [fault.kind for fault in result.faults] == [FaultKind.UNREADABLE]


DEFINES = "int f(void) { return 1; }"
CALLS = "int f(void); int g(void) { return f(); }"


@pytest.fixture
def versioned(workshop: Workshop) -> Workshop:
    """libv.so of version V_2 in ``new``, of V_1 in ``old``; liba.so needs V_2."""
    workshop.library("old/libv.so", versions="V_1 { global: *; };", code="int e(void){return 1;}")
    workshop.library("new/libv.so", versions="V_1 {}; V_2 { global: *; };", code=DEFINES)
    workshop.library("liba.so", "new/libv.so", code=CALLS)
    return workshop


def test_version_that_the_file_defines_loads(versioned: Workshop) -> None:
    path = f"{versioned.folder}/new:{versioned.folder}/old"
    a = versioned.folder / "liba.so"
    assert versioned.load(versioned.program("main"), a, ld_library_path=path).loads


def test_version_is_held_against_the_file_that_is_taken(versioned: Workshop) -> None:
    path = f"{versioned.folder}/old:{versioned.folder}/new"
    versioned.library("libtop.so", "liba.so", runpath="$ORIGIN")
    top = versioned.folder / "libtop.so"
    (fault,) = versioned.load(versioned.program("main"), top, ld_library_path=path).faults
    assert fault.kind is FaultKind.VERSION_NOT_DEFINED
    assert (fault.library, fault.version) == ("libv.so", "V_2")
    assert fault.path == f"{versioned.folder}/old/libv.so"
    assert fault.chain == ("libtop.so", "liba.so", "libv.so")


def test_version_is_held_against_the_file_that_is_mapped(versioned: Workshop) -> None:
    a, main = versioned.folder / "liba.so", versioned.program("main")
    path = f"{versioned.folder}/new"
    (fault,) = versioned.load(
        main, versioned.folder / "old/libv.so", a, ld_library_path=path
    ).faults
    assert fault.path == f"{versioned.folder}/old/libv.so"


def test_weak_version_need_is_no_fault(versioned: Workshop) -> None:
    _make_version_needs_weak(versioned.folder / "liba.so")
    versioned.library("old/libv.so", versions="V_1 { global: *; };", code=DEFINES)
    path = f"{versioned.folder}/old"
    result = simulate_load(
        f"{versioned.folder}/liba.so", LinkerSetting(str(versioned.program("main")), (path,))
    )
    assert result.loads


def test_library_without_any_versions_serves_every_version(versioned: Workshop) -> None:
    # It needs versions of libc's. One that doesn't even do that fails an assertion in ld.so.
    code = 'int puts(const char *); int f(void) { return puts(""); }'
    versioned.library("old/libv.so", code=code, options=["-lc"])
    a, path = versioned.folder / "liba.so", f"{versioned.folder}/old"
    result = versioned.load(versioned.program("main"), a, ld_library_path=path, check_symbols=True)
    assert result.loads


def test_program_itself_can_lack_a_version(versioned: Workshop) -> None:
    main = versioned.program("main", "liba.so", runpath="$ORIGIN")
    setting = LinkerSetting(str(main), (f"{versioned.folder}/old",))
    (fault,) = simulate_start(setting).faults
    assert fault.chain == ("main", "liba.so", "libv.so")


def test_nodeflib_leaves_out_the_default_folders(workshop: Workshop) -> None:
    main = workshop.program("main")
    system = [p for p in ("/lib/x86_64-linux-gnu/libresolv.so.2", "/lib64/libresolv.so.2",
                          "/lib/aarch64-linux-gnu/libresolv.so.2") if Path(p).exists()]  # fmt: skip
    a = workshop.library("liba.so", system[0])
    assert workshop.load(main, a).loads
    a = workshop.library("liba.so", system[0], options=["-Wl,-z,nodefaultlib"])
    assert [fault.library for fault in workshop.load(main, a).faults] == ["libresolv.so.2"]


def test_default_folders_serve_where_there_is_no_cache(workshop: Workshop) -> None:
    setting = LinkerSetting(str(workshop.program("main")), cache="/nonexistent")
    result = simulate_start(setting)
    assert result.loads
    assert _found_by(result, "libc.so.6") is FoundBy.DEFAULT
    assert not result.cache_problem


def test_damaged_cache_is_named_and_left_aside(workshop: Workshop) -> None:
    damaged = workshop.folder / "ld.so.cache"
    damaged.write_bytes(b"glibc-ld.so.cache1.1" + b"\xff" * 100)
    result = simulate_start(LinkerSetting(str(workshop.program("main")), cache=str(damaged)))
    assert result.loads
    assert str(damaged) in result.cache_problem


def test_undefined_symbol_is_found(workshop: Workshop) -> None:
    workshop.library("libb.so", code="int other(void) { return 1; }")
    a = workshop.library("liba.so", "libb.so", runpath="$ORIGIN", code=CALLS)
    (fault,) = workshop.load(workshop.program("main"), a, check_symbols=True).faults
    assert (fault.kind, fault.symbol) == (FaultKind.UNDEFINED_SYMBOL, "f")
    assert fault.path == str(a)


def test_symbol_of_the_program_or_of_any_library_of_the_tree_serves(workshop: Workshop) -> None:
    workshop.library("libc1.so", code=DEFINES)
    workshop.library("libb.so", "libc1.so", runpath="$ORIGIN")
    code = CALLS + "int main(int, char **); int h(void) { return main(0, 0); }"
    a = workshop.library("liba.so", "libb.so", runpath="$ORIGIN", code=code)
    assert workshop.load(workshop.program("main"), a, check_symbols=True).loads


def test_damaged_symbol_table_is_a_fault_of_its_library(workshop: Workshop) -> None:
    b = workshop.library("libb.so", code=DEFINES, options=["-Wl,--hash-style=gnu"])
    a = workshop.library("liba.so", "libb.so", runpath="$ORIGIN", code=CALLS)
    data = b.read_bytes()
    # The tag of DT_GNU_HASH, whose table tells how many symbols there are.
    entry = data.index(struct.pack("<Q", 0x6FFFFEF5))
    table = struct.unpack_from("<Q", data, entry + 8)[0]
    _overwrite(b, table, b"\xff\xff\xff\xff")
    setting = LinkerSetting(str(workshop.program("main")))
    (fault,) = simulate_load(str(a), setting, check_symbols=True).faults
    assert fault.kind is FaultKind.UNREADABLE
    assert fault.chain == ("liba.so", "libb.so")


def test_weak_undefined_symbol_is_no_fault(workshop: Workshop) -> None:
    code = "int f(void) __attribute__((weak)); int g(void) { return f ? f() : 0; }"
    a = workshop.library("liba.so", code=code)
    assert workshop.load(workshop.program("main"), a, check_symbols=True).loads


def test_symbols_of_other_loads_do_not_serve(workshop: Workshop) -> None:
    b = workshop.library("libb.so", code=DEFINES)
    a = workshop.library("liba.so", code=CALLS)
    (fault,) = workshop.load(workshop.program("main"), b, a, check_symbols=True).faults
    assert fault.symbol == "f"


def test_preloaded_library_comes_first(two: Workshop) -> None:
    a = two.library("liba.so", "one/libb.so", runpath=f"{two.folder}/one")
    main = two.program("main")
    result = two.load(main, a, ld_preload=f"{two.folder}/two/libb.so")
    assert _path_of(result, "libb.so") == f"{two.folder}/two/libb.so"


def test_missing_preload_is_passed_over(two: Workshop) -> None:
    a = two.library("liba.so")
    assert two.load(two.program("main"), a, ld_preload="/nowhere/libx.so").loads


def test_needed_name_with_a_slash_is_a_path(two: Workshop) -> None:
    two.library("one/libslash.so", soname=f"{two.folder}/one/libslash.so")
    a = two.library("liba.so", "one/libslash.so")
    result = two.load(two.program("main"), a)
    assert result.libraries[1].found_by is FoundBy.PATH


def test_missing_for_one_library_and_found_for_another(two: Workshop) -> None:
    two.library("libx.so", "one/libb.so", runpath="$ORIGIN")
    two.library("liby.so", "one/libb.so", runpath=f"{two.folder}/one")
    a = two.library("liba.so", "libx.so", "liby.so", runpath="$ORIGIN")
    result = two.load(two.program("main"), a)
    assert [fault.chain for fault in result.faults] == [("liba.so", "libx.so", "libb.so")]
    assert f"{two.folder}/one/libb.so" in [found.path for found in result.libraries]


def test_library_that_is_not_there_is_a_fault(workshop: Workshop) -> None:
    (fault,) = workshop.load(workshop.program("main"), workshop.folder / "absent.so").faults
    assert fault.kind is FaultKind.NOT_FOUND


def test_program_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ElfError):
        simulate_start(LinkerSetting(str(tmp_path / "absent")))


def test_static_program_maps_nothing(workshop: Workshop) -> None:
    main = workshop.program("main", options=["-static"])
    assert [found.path for found in simulate_start(LinkerSetting(str(main))).libraries] == [
        str(main)
    ]


def test_default_folders_are_those_that_ld_so_tells_of() -> None:
    ld_so = _interpreter()
    done = subprocess.run(
        [str(ld_so), "--list-diagnostics"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    if done.returncode:
        skip_without("ld.so --list-diagnostics", "this glibc is older than 2.33")
    told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    machine = os.uname().machine
    found = read_ld_so(str(ld_so), machine, 64)
    assert list(found.folders) == [
        value.strip('"').rstrip("/") for key, value in told.items() if "path.system_dirs" in key
    ]
    assert found.lib == told["dl_dst_lib"].strip('"')
    assert len(found.hwcaps) == int(told["dl_hwcaps_subdirs_active"], 16).bit_count()


@pytest.mark.parametrize(
    ("flags", "levels"),
    [
        ("fpu sse2", ()),
        ("cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2 avx", ("x86-64-v2",)),
        ("avx avx2 bmi1 bmi2 f16c fma abm movbe", ()),
    ],
)
def test_cpu_levels_build_on_each_other(
    tmp_path: Path, flags: str, levels: tuple[str, ...]
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    assert cpu_levels(str(tmp_path / "cpuinfo")) == levels


def _overwrite(path: Path, place: int, value: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[place : place + len(value)] = value
    path.write_bytes(data)


def _make_version_needs_weak(path: Path) -> None:
    """Set VER_FLG_WEAK in the one version need: its hash stands before its flags."""
    hashed = 0
    for character in b"V_2":
        hashed = (hashed << 4) + character
    _overwrite(path, path.read_bytes().index(struct.pack("<IH", hashed, 0)) + 4, b"\x02\0")
