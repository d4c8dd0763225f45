"""What a process on another machine is told, and what it left in its log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reelseek.care.jobs._processes import LOG_CHARACTERS, end_of_log, own_paths


def test_paths_are_those_that_the_bare_interpreter_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_prefix = str(Path(sys.base_prefix).resolve() / "a folder of modules")
    monkeypatch.setattr("sys.path", [str(tmp_path), under_prefix, *sys.path])
    own = own_paths()
    assert own[:2] == [str(tmp_path), under_prefix]
    code = "import json, sys; print(json.dumps(sys.path))"
    bare = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert not any(f'"{path}"' in bare for path in own)


def test_end_of_log_is_a_short_line_however_long_the_log_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert end_of_log(log) == ""
    log.write_text("first\n" * 9 + "\n  \x1b[31mlast \n")
    assert end_of_log(log, 2) == "first |  [31mlast"
    with open(log, "wb") as file:
        file.seek(1 << 40)  # what isn't read costs nothing
        file.write(b"\xff" + b"x" * 5000 + b" at the end")
    end = end_of_log(log)
    assert end.startswith("...x") and end.endswith("x at the end")
    assert len(end) == LOG_CHARACTERS + 3
