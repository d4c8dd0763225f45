"""The proof, with interpreters that do what broken ones do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reelseek.native._facts import collect_facts
from reelseek.native._prove import Proof, prove

IMPORTED = """echo '{"step": "imported"}'"""
DECODED = """echo '{"step": "decoded", "shape": [3, 8, 8]}'"""
TRACEBACKS = """cat >&2 <<'END'
FFmpeg version 7:
OSError: libnppicc.so.12: cannot open shared object file: No such file or directory
FFmpeg version 4:
OSError: libavutil.so.56: cannot open shared object file: No such file or directory
[end of libtorchcodec loading traceback].
END
exit 1"""


def proof_by(tmp_path: Path, script: str, folders: tuple[str, ...] = ()) -> Proof:
    """The proof by an interpreter that is a shell script."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    facts = replace(collect_facts(), python=str(program), ld_library_path=("/old",))
    return prove(facts, folders, timeout_seconds=3)


def test_both_steps_are_needed(tmp_path: Path) -> None:
    whole = proof_by(tmp_path, f"{IMPORTED}\n{DECODED}")
    assert (whole.imports, whole.decodes, whole.message) == (True, True, "")
    half = proof_by(tmp_path, f"{IMPORTED}\necho 'RuntimeError: no decoder for av1' >&2; exit 1")
    assert (half.imports, half.decodes) == (True, False)
    assert half.message == "RuntimeError: no decoder for av1"


def test_words_that_a_package_prints_do_not_count(tmp_path: Path) -> None:
    proof = proof_by(tmp_path, f"echo hello\necho 12\necho '[]'\n{IMPORTED}\n{DECODED}")
    assert proof.decodes


def test_message_is_the_reason_and_not_the_last_probe(tmp_path: Path) -> None:
    assert proof_by(tmp_path, TRACEBACKS).message.startswith("libnppicc.so.12: cannot open")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("sleep 20", "timed out"),
        ("kill -SEGV $$", "ended by signal 11"),
        ("exit 3", "status 3"),
        ("cat /dev/zero >&2", "said more than 4 MiB"),
    ],
)
def test_process_that_hangs_or_dies_is_no_proof(tmp_path: Path, script: str, message: str) -> None:
    proof = proof_by(tmp_path, f"exec {script}" if script.startswith("sleep") else script)
    assert not proof.imports
    assert message in proof.message
    assert proof.seconds < 10


def test_interpreter_that_is_gone_is_no_proof(tmp_path: Path) -> None:
    facts = replace(collect_facts(), python=str(tmp_path / "gone"))
    assert not prove(facts, ()).imports


def test_folders_stand_before_the_old_path(tmp_path: Path) -> None:
    proof = proof_by(tmp_path, 'echo "$LD_LIBRARY_PATH" >&2; exit 1', ("/new folder", "/second"))
    assert proof.message == "/new folder:/second:/old"
