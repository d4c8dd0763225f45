"""The doctor in environments whose libraries are cut, changed, unreadable or no files at all.

It ends in time, says which file, and has loaded nothing of the environment into its own process.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reelseek.native._doctor import Examination, examine
from reelseek.native._document import document
from reelseek.native._facts import INTERPRETER_TIMEOUT_SECONDS
from reelseek.native._judge import Cause
from tests.native import chains
from tests.native.chains import Environment

SECONDS, BYTES = 5.0, 500 << 20
IN_CI = bool(os.environ.get("CI"))
RANDOM_CHANGES = 150 if IN_CI else 60


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("hostile")
    libraries = chains.build_libraries(folder / "libraries")
    made = chains.make_environment(
        libraries, folder / "env", chains.interpreter(chains.THIS_PYTHON)
    )
    made.supply_npp()
    return made


@pytest.fixture(scope="module")
def searching(environment: Environment) -> Environment:
    """The same, whose libraries are only found by LD_LIBRARY_PATH."""
    folder = environment.prefix.parent
    python = chains.interpreter(chains.THIS_PYTHON)
    made = chains.make_environment(
        folder / "libraries", folder / "searching", python, has_rpath=False
    )
    made.supply_npp()
    return made


@pytest.fixture
def restored(environment: Environment) -> Iterator[Environment]:
    """The environment, whose changed files are put back after the test."""
    originals = {path: path.read_bytes() for path in _files(environment)}
    yield environment
    for path, data in originals.items():
        _replace(path, _writer(data))


def _files(environment: Environment) -> list[Path]:
    """Every library of the environment that torchcodec's loads touch."""
    folders = (
        environment.prefix / "lib",
        environment.site_packages / "torch" / "lib",
        environment.site_packages / "torchcodec",
        environment.npp,
    )
    found = [path for folder in folders for path in folder.glob("*.so*") if not path.is_symlink()]
    return sorted(found)


def _writer(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    write(path)


def examined(environment: Environment) -> Examination:
    """What the doctor finds, with the limits that it keeps."""
    before, begin = _peak_bytes(), chains.processor_seconds()
    found = examine(str(environment.python), with_proof=False)
    document([found])
    # Work, and at most the wait for an interpreter that hangs; nothing else is waited for.
    work = chains.processor_seconds() - begin
    assert work + INTERPRETER_TIMEOUT_SECONDS < SECONDS
    assert _peak_bytes() - before < BYTES
    maps = Path("/proc/self/maps").read_text()
    assert str(environment.prefix) not in maps
    return found


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _words(found: Examination) -> str:
    return "\n".join([found.diagnosis.verdict, *found.diagnosis.also, found.remedy.command])


def _cut(path: Path) -> None:
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(50))


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _sparse_behind_an_elf_file(path: Path) -> None:
    shutil.copyfile(sys.executable, path)
    os.truncate(path, 1 << 40)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("/* GNU ld script */ INPUT(libavcodec.so.61.3.100)"),
    "cut": _cut,
    "a terabyte of zeros": _sparse,
    "a terabyte behind a program": _sparse_behind_an_elf_file,
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("/nowhere"),
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_ffmpeg_library_that_is_no_library_is_named(restored: Environment, kind: str) -> None:
    path = restored.prefix / "lib" / "libavcodec.so.61"
    _replace(path, HOSTILE[kind])
    found = examined(restored)
    assert not found.is_well
    assert "libavcodec.so.61" in _words(found)


@pytest.mark.parametrize("kind", HOSTILE)
def test_torchcodec_library_that_is_no_library_is_named(restored: Environment, kind: str) -> None:
    path = restored.site_packages / "torchcodec" / "libtorchcodec_core7.so"
    _replace(path, HOSTILE[kind])
    found = examined(restored)
    assert found.diagnosis.cause is Cause.DAMAGED_FILE
    assert str(path) in found.diagnosis.verdict
    assert "--force-reinstall --no-deps torchcodec==" in found.remedy.command


@pytest.mark.parametrize("kind", [kind for kind in HOSTILE if kind != "link to nothing"])
@pytest.mark.parametrize("name", ["libavutil.so.59", "libavcodec.so.61"])
def test_no_library_first_on_the_search_path_is_named_and_a_better_path_proposed(
    searching: Environment, tmp_path: Path, name: str, kind: str
) -> None:
    _replace(tmp_path / name, HOSTILE[kind])
    good = [str(searching.prefix / "lib"), str(searching.npp)]
    search = [str(tmp_path), *good]
    found = examine(str(searching.python), with_proof=False, ld_library_path=search)
    assert str(tmp_path / name) in found.diagnosis.verdict
    assert found.remedy.folders == (good[0],)
    search = [*found.remedy.folders, *search]
    found = examine(str(searching.python), with_proof=False, ld_library_path=search)
    assert found.diagnosis.cause is Cause.OK


LOST = {
    "torchcodec": ["torchcodec/libtorchcodec_core7.so", "torchcodec/libtorchcodec_custom_ops7.so",
                   "torchcodec/__init__.py", "torchcodec"],
    "torch": ["torch/__init__.py", "torch/lib/libc10.so", "torch"],
}  # fmt: skip


@pytest.mark.parametrize(("package", "name"), [(one, name) for one in LOST for name in LOST[one]])
def test_file_that_record_lists_and_is_not_there_is_named(
    environment: Environment, tmp_path: Path, package: str, name: str
) -> None:
    site_packages = environment.site_packages
    (info,) = site_packages.glob(f"{package}-*.dist-info")
    listed = [*LOST[package][:-1], f"{info.name}/METADATA"]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in listed))
    ops = site_packages / "torchcodec" / "libtorchcodec_custom_ops7.so"
    shutil.copy2(ops.with_name("libtorchcodec_core7.so"), ops)
    (site_packages / name).rename(tmp_path / "lost")
    try:
        found = examined(environment)
    finally:
        (tmp_path / "lost").rename(site_packages / name)
        (info / "RECORD").unlink()
        ops.unlink()
    assert found.diagnosis.cause is Cause.DAMAGED_FILE
    assert f"is not a whole install: {site_packages / name}" in found.diagnosis.verdict
    assert f"--force-reinstall --no-deps {package}==" in found.remedy.command
    assert not found.remedy.folders


def test_emptied_torch_is_no_whole_install(environment: Environment, tmp_path: Path) -> None:
    torch = environment.site_packages / "torch"
    torch.rename(tmp_path / "torch")
    torch.mkdir()
    try:
        found = examined(environment)
    finally:
        torch.rmdir()
        (tmp_path / "torch").rename(torch)
    assert found.diagnosis.verdict.startswith("torch 2.")
    assert "is not a whole install" in found.diagnosis.verdict
    assert "--force-reinstall --no-deps torch==" in found.remedy.command


def test_missing_library_of_an_ffmpeg_that_is_not_used_is_no_fault(
    environment: Environment,
) -> None:
    (info,) = environment.site_packages.glob("torchcodec-*.dist-info")
    (info / "RECORD").write_text("torchcodec/libtorchcodec_core8.so,,\n")
    search = [str(environment.prefix / "lib"), str(environment.npp)]
    try:
        found = examine(str(environment.python), with_proof=False, ld_library_path=search)
    finally:
        (info / "RECORD").unlink()
    assert found.diagnosis.cause is Cause.OK
    assert [attempt.loads for attempt in found.attempts] == [False, True]


@pytest.mark.parametrize("kind", HOSTILE)
def test_interpreters_library_that_is_no_library_is_survived(
    restored: Environment, kind: str
) -> None:
    # On the path of the whole process, torch and interpreter included.
    _replace(restored.prefix / "lib" / "libstdc++.so.6", HOSTILE[kind])
    examined(restored)


@pytest.mark.parametrize("kind", ["a terabyte of zeros", "fifo", "folder", "endless device"])
def test_metadata_that_is_none_is_survived(restored: Environment, kind: str) -> None:
    site_packages = restored.site_packages
    (information,) = site_packages.glob("torchcodec-*.dist-info/METADATA")
    for path in (site_packages / "torch" / "version.py", information):
        original = path.read_bytes()
        _replace(path, HOSTILE[kind])
        try:
            found = examined(restored)
            assert found.facts.packages.keys() >= {"torch", "torchcodec"}
        finally:
            _replace(path, _writer(original))


def test_interpreter_that_hangs_is_given_up(restored: Environment) -> None:
    program = restored.prefix / "bin" / "python"
    original = program.readlink()
    program.unlink()
    program.write_text("#!/bin/sh\nexec sleep 100\n")
    program.chmod(0o755)
    try:
        examined(restored)
    finally:
        program.unlink()
        program.symlink_to(original)


def test_changed_bytes_anywhere_are_survived(restored: Environment) -> None:
    """Random places of random libraries, among them headers and dynamic sections."""
    seed = 0 if IN_CI else random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    files = _files(restored)
    begin = time.monotonic()
    for number in range(RANDOM_CHANGES):
        path = chance.choice(files)
        data = path.read_bytes()
        _replace(path, _writer(_changed(data, chance)))
        examined(restored)
        if number % 3:  # every third damage stays, so that they add up
            _replace(path, _writer(data))
    print(f"{RANDOM_CHANGES} environments in {time.monotonic() - begin:.1f} s")


def _changed(data: bytes, chance: random.Random) -> bytes:
    out = bytearray(data or bytes(64))
    if chance.random() < 0.25:
        del out[chance.randrange(len(out)) :]
    # Headers and the dynamic section lie in the first and last kilobytes of small libraries.
    for _ in range(chance.randint(1, 8)):
        span = chance.choice((64, 1024, len(out)))
        place = chance.randrange(max(1, min(span, len(out))))
        new = chance.choice((b"\xff" * 8, bytes(8), chance.randbytes(chance.randint(1, 8))))
        out[place : place + len(new)] = new
    return bytes(out)
