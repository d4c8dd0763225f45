"""What a person is told who waits for a cluster that does nothing."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from reelseek.care.jobs._journal import JournalReader
from reelseek.care.jobs._watch import Watch
from reelseek.care.jobs._work import Work
from tests.care.jobs.drive import job_of


class Idle:
    """A cluster whose tasks never begin."""

    def __init__(self, answers: bool) -> None:
        self.answers = answers
        self.looks = 0

    def submit(self, parts: Sequence[Path]) -> list[str]:
        return [part.stem for part in parts]

    def alive(self, tasks: Collection[str]) -> set[str] | None:
        self.looks += 1
        time.sleep(0.02)
        if self.looks > 9:
            raise KeyboardInterrupt
        return set(tasks) if self.answers else None

    def last_words(self, _task: str) -> str:
        return ""

    def avoid(self, task: str) -> None: ...

    def cancel(self) -> None: ...


@pytest.mark.parametrize(
    ("answers", "text"),
    [(True, "no task has begun"), (False, "hasn't said which tasks are alive")],
)
def test_waiting_for_what_never_comes_is_told_once(
    tmp_path: Path, answers: bool, text: str
) -> None:
    job = job_of(tmp_path, "good_1")
    (tmp_path / "results").mkdir()
    work = Work(job, job.items, "run", tmp_path, JournalReader(tmp_path / "results"))
    said: list[str] = []
    watch = Watch(work, Idle(answers), 1, 1, said.append, 0.01, 0.0, 0.0, quiet_seconds=0.05)
    with pytest.raises(KeyboardInterrupt):
        list(watch.entries())
    (line,) = said
    assert text in line
