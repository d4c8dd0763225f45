"""Worker processes: what one dies of is its own call's failure, and they end with who asks."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reelseek.workers import Answer, Worker, WorkerPool, answers_of
from reelseek.workers._child import LENGTH
from tests.patience import PATIENCE

THIS = "tests.workers.test_pool"
DRIVER = f"""
from reelseek.workers import WorkerPool
pool = WorkerPool("{THIS}:pid_and_sleep", [(path,) for path in FOLDER], 1)
list(pool.answers())
"""


def square(number: int) -> int:
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def dies_once(note: str) -> str:
    if not Path(note).exists():
        Path(note).touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    return "well"


def pid_and_sleep(note: str) -> None:
    Path(note).write_text(str(os.getpid()))
    time.sleep(60)


def answers_by_half(kind: str) -> object:
    if kind == "torn":
        open_now = [int(path.name) for path in Path("/proc/self/fd").iterdir()]
        (answers,) = filter(is_pipe_to_asker, open_now)
        os.write(answers, LENGTH.pack(100) + b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    return Unreadable() if kind == "unreadable" else kind


def is_pipe_to_asker(descriptor: int) -> bool:
    try:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        return descriptor > 2 and flags & os.O_ACCMODE == os.O_WRONLY
    except OSError:  # listed by the look itself
        return False


class Unreadable:
    def __reduce__(self) -> tuple[object, ...]:
        return int, ("no number",)


def test_answer_that_is_cut_short_is_its_calls_death() -> None:
    answers = list(answers_of(f"{THIS}:answers_by_half", [("torn",), ("whole",)], 1, retries=0))
    assert answers == [Answer(0, None, "died of signal 9"), Answer(1, "whole")]


def test_answer_that_cannot_be_read_is_raised_and_nobody_waits_for_it() -> None:
    with pytest.raises(ValueError, match="no number"):
        list(answers_of(f"{THIS}:answers_by_half", [("unreadable",), ("whole",)], 1))


def test_answers_come_for_each_call() -> None:
    with WorkerPool(f"{THIS}:square", [(number,) for number in range(9)], 3) as pool:
        answers = {answer.position: answer.value for answer in pool.answers()}
    assert answers == {number: number * number for number in range(9)}


def test_death_is_one_calls_and_told_after_its_retries() -> None:
    answers = list(answers_of(f"{THIS}:square", [(-1,), (2,), (3,)], 2, retries=1))
    assert sorted((answer.position, answer.value) for answer in answers[:2]) == [(1, 4), (2, 9)]
    assert answers[2] == Answer(0, None, "died of signal 9", 2)


def test_call_whose_process_died_is_tried_again(tmp_path: Path) -> None:
    (answer,) = answers_of(f"{THIS}:dies_once", [(str(tmp_path / "note"),)], 1)
    assert answer == Answer(0, "well", "", 2)


def test_what_is_printed_is_no_answer_and_goes_into_the_log(tmp_path: Path) -> None:
    worker = Worker(tmp_path / "log")
    assert worker.call("builtins:print", "hello") is None
    assert worker.call(f"{THIS}:square", 5) == 25
    for _ in range(2):
        with pytest.raises(EOFError):
            worker.call(f"{THIS}:square", "no number")
    assert worker.end() == "ended with exit status 1"
    text = (tmp_path / "log").read_text()
    assert text.startswith("hello\n") and "TypeError" in text


def test_worker_at_work_ends_when_who_asked_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = DRIVER.replace("FOLDER", repr([str(note)]))
    with subprocess.Popen([sys.executable, "-c", code]) as driver:
        wait_until(lambda: note.exists() and note.read_text() != "")
        driver.kill()
    pid = int(note.read_text())
    wait_until(lambda: not is_running(pid))


def wait_until(is_so: object) -> None:
    assert callable(is_so)
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_worker_whose_call_was_broken_off_answers_nothing_more() -> None:
    worker = Worker()

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            worker.call("time:sleep", 60)
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(EOFError):
        worker.call("os:getpid")
    assert worker.end() == "died of signal 9"
