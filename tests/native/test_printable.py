"""Text that may be shown to people, and commands that still mean the same."""

from __future__ import annotations

import os
import shutil
import subprocess

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reelseek.native._judge import Cause, Diagnosis, describe
from reelseek.native._linker import Fault, FaultKind
from reelseek.native._printable import printable, printable_command
from reelseek.native._remedy import Remedy, RemedyKind, export_line
from tests.conftest import skip_without

HOSTILE = "lib\nrun: \x1b[2J\u202e"
SHOWN = r"lib\nrun: \x1b[2J\u202e"


def test_readable_text_stays_as_it_is() -> None:
    for text in ("/opt/env/lib", 'it\'s \\ a "quote"', "/données/環境"):
        assert printable(text) == text


def test_what_commands_a_terminal_is_written_out() -> None:
    assert printable(HOSTILE) == SHOWN
    assert printable("\x00\x7f\x9b\xa0") == r"\x00\x7f\x9b\xa0"


def test_bytes_that_are_no_utf8_are_written_as_bytes() -> None:
    assert printable(os.fsdecode(b"caf\xe9")) == r"caf\xe9"


@given(st.text())
def test_nothing_unprintable_is_left_and_a_second_time_changes_nothing(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)


def test_what_is_said_of_a_fault_and_its_remedy_is_printable() -> None:
    fault = Fault(FaultKind.NOT_FOUND, HOSTILE, "")
    assert describe(fault) == f"{SHOWN} is not found"
    diagnosis = Diagnosis(Cause.NO_LIBRARY, HOSTILE, None, fault, (HOSTILE,), (HOSTILE,))
    assert (diagnosis.verdict, diagnosis.also, diagnosis.noise) == (SHOWN, (SHOWN,), (SHOWN,))
    assert Remedy(RemedyKind.UNKNOWN, note=HOSTILE).note == SHOWN


@given(st.text(min_size=1))
@settings(max_examples=60, deadline=None)
def test_shell_takes_a_command_as_if_nothing_were_escaped(name: str) -> None:
    assume("\0" not in name)
    if shutil.which("bash") is None:
        skip_without("bash", "bash isn't installed")
    command = printable_command(export_line([f"/{name}"]))
    assert command.isprintable()
    done = subprocess.run(
        ["bash", "-c", f'{command}; printf %s "$LD_LIBRARY_PATH"'], env={"LC_ALL": "C.UTF-8"},
        capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout.decode() == f"/{name}"
