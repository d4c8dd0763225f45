"""What is read of an environment, from folders made for each test."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from reelseek.errors import BackendUnavailableError
from reelseek.native._facts import collect_facts, started_with

LINE = "{}.{}".format(*sys.version_info[:2])


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A venv without packages."""
    folder = tmp_path / "env"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True
    )
    return folder


def _site(prefix: Path) -> Path:
    return prefix / "lib" / f"python{LINE}" / "site-packages"


def _install(site: Path, name: str, version: str, written: str = "") -> None:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (site / name).mkdir(exist_ok=True)
    if written:
        (site / name / "version.py").write_text(written)


def test_own_environment_is_the_running_one() -> None:
    facts = collect_facts()
    assert (facts.prefix, facts.starts) == (sys.prefix, True)
    assert facts.executable == os.path.realpath(sys.executable)
    assert facts.versions["reelseek"]


def test_packages_are_read_without_importing_them(prefix: Path) -> None:
    bomb = "raise SystemExit('imported')\n__version__ = '2.9.1+cu128'\n"
    _install(_site(prefix), "torch", "2.9.1", bomb)
    _install(_site(prefix), "nvidia-npp-cu12", "12.3")
    _install(_site(prefix), "requests", "2.0")
    facts = collect_facts(str(prefix / "bin" / "python"))
    assert facts.versions == {"torch": "2.9.1+cu128", "nvidia-npp-cu12": "12.3"}
    assert (facts.torch_cuda, facts.kind) == ("12.8", "venv")
    assert facts.packages == {"torch": str(_site(prefix) / "torch")}


def test_cuda_is_read_from_torchs_own_word_where_the_version_has_none(prefix: Path) -> None:
    written = "__version__ = '2.9.1'\ncuda: Optional[str] = '13.0'\n"
    _install(_site(prefix), "torch", "2.9.1", written)
    assert collect_facts(str(prefix)).torch_cuda == "13.0"
    (_site(prefix) / "torch" / "version.py").write_text("__version__ = '2.9.1'\ncuda = None\n")
    assert collect_facts(str(prefix)).torch_cuda == ""


def test_folder_stands_for_its_interpreter(prefix: Path) -> None:
    assert collect_facts(str(prefix)).python == str(prefix / "bin" / "python")


def test_conda_environment_is_known_by_its_folder(prefix: Path) -> None:
    (prefix / "pyvenv.cfg").unlink()
    (prefix / "conda-meta").mkdir()
    assert collect_facts(str(prefix)).kind == "conda"


def test_lines_of_a_pth_file_add_folders_and_run_no_code(prefix: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    _install(elsewhere, "torch", "2.9.1")
    flag = tmp_path / "ran"
    lines = f"import pathlib; pathlib.Path({str(flag)!r}).touch()\n# text\n{elsewhere}\n"
    (_site(prefix) / "more.pth").write_text(lines)
    facts = collect_facts(str(prefix))
    assert facts.packages == {"torch": str(elsewhere / "torch")}
    assert not flag.exists()


def test_interpreter_that_does_not_start_is_read_from_its_folders(prefix: Path) -> None:
    _install(_site(prefix), "torch", "2.9.1")
    python = prefix / "bin" / "python"
    python.unlink()
    python.write_text("#!/no/such/program\n")
    python.chmod(0o755)
    facts = collect_facts(str(python))
    assert not facts.starts
    assert facts.python_version.startswith(LINE)
    assert facts.versions == {"torch": "2.9.1"}


def test_interpreter_that_hangs_is_given_up(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reelseek.native._facts.INTERPRETER_TIMEOUT_SECONDS", 0.2)
    python = prefix / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexec sleep 20\n")
    python.chmod(0o755)
    assert not collect_facts(str(python)).starts


def test_interpreter_that_never_stops_talking_is_given_up(prefix: Path) -> None:
    python = prefix / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexec cat /dev/zero\n")
    python.chmod(0o755)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert not collect_facts(str(python)).starts
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # kilobytes


def test_script_that_starts_python_leads_to_the_real_one(prefix: Path, tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text(f'#!/bin/sh\nexec "{prefix}/bin/python" "$@"\n')
    shim.chmod(0o755)
    assert collect_facts(str(shim)).prefix == str(prefix)


def test_missing_interpreter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailableError, match="no Python interpreter here"):
        collect_facts(str(tmp_path / "python"))


def test_home_of_a_user_that_is_not_there_is_no_interpreter() -> None:
    with pytest.raises(BackendUnavailableError, match="no Python interpreter here"):
        collect_facts("~no-such-user/bin/python")


def test_metadata_that_is_no_file_is_passed_over(prefix: Path) -> None:
    info = _site(prefix) / "torch-2.9.1.dist-info"
    info.mkdir()
    os.mkfifo(info / "METADATA")  # reading it would wait for ever
    assert collect_facts(str(prefix)).versions == {"torch": ""}


def test_change_of_the_path_inside_python_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    # OpenCV changes it when it is imported, as another test in this process may have.
    before = started_with().get("LD_LIBRARY_PATH", "")
    monkeypatch.setenv("LD_LIBRARY_PATH", before)
    assert not collect_facts().path_was_changed_inside
    monkeypatch.setenv("LD_LIBRARY_PATH", "/set/inside")
    facts = collect_facts()
    assert facts.path_was_changed_inside
    assert "/set/inside" not in facts.ld_library_path
    assert ":".join(facts.ld_library_path) == before


def test_program_that_is_no_python_is_refused() -> None:
    with pytest.raises(BackendUnavailableError, match="no Python interpreter"):
        collect_facts("/bin/true")


def test_folder_with_python3_alone_is_an_environment(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    assert collect_facts(str(tmp_path)).python == str(tmp_path / "bin" / "python3")
