"""Processes that hang, that never stop talking, or that leave others behind."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from reelseek.native._child import MAX_OUTPUT_BYTES, ChildError, Ended, run_child


def shell(script: str, timeout_seconds: float = 60) -> Ended:
    return run_child(["/bin/sh", "-c", script], timeout_seconds=timeout_seconds)


def test_output_and_status_are_what_the_process_gave() -> None:
    assert shell("echo out; echo err >&2; exit 3") == Ended(3, b"out\n", b"err\n")
    assert shell("kill -SEGV $$").status == -11


def test_nothing_is_on_stdin() -> None:
    assert shell("cat") == Ended(0, b"", b"")


def test_variables_and_folder_are_the_ones_given(tmp_path: Path) -> None:
    done = run_child(
        ["/bin/sh", "-c", 'pwd; echo "$WORD"'], timeout_seconds=60,
        environment={"WORD": "said"}, folder=str(tmp_path),
    )  # fmt: skip
    assert done.stdout.decode().splitlines() == [str(tmp_path), "said"]


@pytest.mark.parametrize("stream", ["1", "2"])
def test_endless_output_is_cut_off_before_it_fills_the_memory(stream: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ChildError, match="said more than 4 MiB"):
        shell(f"exec cat /dev/zero >&{stream}")
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert kilobytes * 1024 < 8 * MAX_OUTPUT_BYTES


def test_much_output_comes_back_whole() -> None:
    assert len(shell("head -c 3000000 /dev/zero").stdout) == 3_000_000


@pytest.mark.parametrize(
    "script", ["sleep 100", "exec sleep 100", "exec sleep 100 >/dev/null 2>&1", "yes >/dev/null"]
)
def test_process_that_hangs_is_given_up(script: str) -> None:
    with pytest.raises(ChildError, match=r"timed out after 0\.5 s"):
        shell(script, 0.5)


def test_what_the_process_has_started_ends_with_it(tmp_path: Path) -> None:
    number = tmp_path / "number"
    with pytest.raises(ChildError, match="timed out"):
        shell(f"sleep 100 & echo $! > {number}; wait", 2)
    gone = Path("/proc", number.read_text().strip(), "stat")
    for _ in range(600):
        if not gone.exists() or gone.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the process that it started goes on")


def test_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChildError, match="No such file"):
        run_child([str(tmp_path / "gone")], timeout_seconds=1)
