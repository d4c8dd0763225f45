"""A job's outcomes: each item once, whatever dies, and from the journal what was done before."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from reelseek.care.jobs import Item, Job, LocalExecutor, Outcome, discard_job, run_job
from reelseek.care.jobs._held import held
from reelseek.errors import ReelseekError
from tests.care.jobs.drive import job_of


def calls(tmp_path: Path) -> list[str]:
    return sorted((tmp_path / "log").read_text().split())


def outcomes(job: Job) -> dict[str, Outcome]:
    run = list(run_job(job, LocalExecutor(2)))
    assert len(run) == len(job.items)
    return {outcome.key: outcome for outcome in run}


def test_each_item_is_done_once_and_progress_is_told(tmp_path: Path) -> None:
    job = job_of(tmp_path, *(f"good_{number}" for number in range(7)))
    told: list[tuple[int, int]] = []
    run = run_job(job, LocalExecutor(2), tell=lambda done, total: told.append((done, total)))
    assert {outcome.key: outcome.value for outcome in run} == {
        f"good_{number}": {"tried": 1} for number in range(7)
    }
    assert told == [(done, 7) for done in range(8)]
    summary = run.summary()
    assert (summary.num_items, summary.num_failed, summary.num_retried) == (7, 0, 0)


def test_second_run_takes_all_from_the_journal(tmp_path: Path) -> None:
    job = job_of(tmp_path, "good_1", "good_2")
    first = outcomes(job)
    again = outcomes(job)
    assert [again[key].value for key in first] == [first[key].value for key in first]
    assert {outcome.attempts for outcome in again.values()} == {0}
    assert calls(tmp_path) == ["good_1", "good_2"]


def test_changed_input_is_done_again(tmp_path: Path) -> None:
    outcomes(job_of(tmp_path, "good_1"))
    outcomes(job_of(tmp_path, "good_1", stamp="b"))
    assert calls(tmp_path) == ["good_1", "good_1"]


def test_file_copied_again_with_its_times_has_another_stamp(tmp_path: Path) -> None:
    file, copy = tmp_path / "a.mp4", tmp_path / "b.mp4"
    file.write_bytes(b"bad")
    copy.write_bytes(b"new")
    os.utime(file, ns=(1, 1))
    before = Item.of_file("a", file)
    assert (before.num_bytes, Item.of_file("a", file)) == (3, before)
    shutil.copyfile(copy, file)  # in place, as rsync --inplace does
    os.utime(file, ns=(1, 1))
    in_place = Item.of_file("a", file)
    os.utime(copy, ns=(1, 1))
    copy.rename(file)
    assert len({before.stamp, in_place.stamp, Item.of_file("a", file).stamp}) == 3
    assert Item.of_file("a", tmp_path / "c.mp4") == Item("a", 0)


def test_discarded_job_is_done_again_and_leaves_no_folder(tmp_path: Path) -> None:
    job = job_of(tmp_path, "good_1")
    outcomes(job)
    discard_job(job)
    assert not (tmp_path / "jobs").exists()
    outcomes(job)
    assert calls(tmp_path) == ["good_1", "good_1"]


def test_job_that_is_not_kept_goes_at_its_end_where_nothing_failed(tmp_path: Path) -> None:
    for key, is_left in (("refuses_1", True), ("good_1", False)):
        list(run_job(job_of(tmp_path / key, key), LocalExecutor(1), keep=False))
        assert (tmp_path / key / "jobs").exists() == is_left


def test_job_at_work_is_not_discarded(tmp_path: Path) -> None:
    job = job_of(tmp_path, "good_1", "good_2")
    run = run_job(job, LocalExecutor(1))
    next(run)
    with pytest.raises(ReelseekError, match="another run of this job is at work"):
        discard_job(job)
    assert len(list(run)) == 1
    assert {outcome.attempts for outcome in outcomes(job).values()} == {0}


def test_job_that_is_begun_while_it_is_discarded_begins_anew_and_stays(tmp_path: Path) -> None:
    job = job_of(tmp_path, "good_1")
    outcomes(job)
    with held(job) as folder:
        folder.forget()
        run = run_job(job, LocalExecutor(1))
        assert next(run).attempts == 1
    with pytest.raises(ReelseekError, match="another run of this job is at work"):
        discard_job(job)
    run.close()
    assert outcomes(job)["good_1"].attempts == 0


@pytest.mark.parametrize("discards", [False, True])
def test_array_that_a_killed_driver_left_is_cancelled_until_scancel_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, discards: bool
) -> None:
    job = job_of(tmp_path, "good_1")
    outcomes(job)
    (folder,) = job.folder.iterdir()
    note = folder / "runs" / "0123abcd" / "at-slurm"
    note.parent.mkdir(parents=True)
    note.touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for status in (1, 0):
        scancel = tmp_path / "scancel"
        scancel.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/asked"\nexit {status}\n')
        scancel.chmod(0o755)
        if discards:
            discard_job(job)
        else:
            outcomes(job)
        assert note.exists() == (status == 1)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["--quiet --name=reelseek-toy-0123abcd"] * 2
    assert job.folder.exists() != discards


def test_full_disk_is_one_error_with_what_to_do(tmp_path: Path) -> None:
    run = run_job(job_of(tmp_path, "good_1", "good_2"), LocalExecutor(1))
    next(run)
    (journal,) = (tmp_path / "jobs").rglob("*.jsonl")
    journal.unlink()
    journal.symlink_to("/dev/full")
    with pytest.raises(ReelseekError, match=r"No space left on device.*Free some space or quota"):
        list(run)


def test_item_whose_worker_dies_is_tried_three_times_and_takes_nothing_else_along(
    tmp_path: Path,
) -> None:
    keys = ["dies_1", "diesonce_1", *(f"good_{number}" for number in range(5))]
    found = outcomes(job_of(tmp_path, *keys))
    assert found["dies_1"].error == "dies_1: the process that worked on it died of signal 9"
    assert found["dies_1"].attempts == 3
    assert found["diesonce_1"] == Outcome("diesonce_1", {"tried": 2}, "", 2)
    assert all(found[f"good_{number}"].value == {"tried": 1} for number in range(5))


def test_error_is_tried_again_but_an_answer_is_not(tmp_path: Path) -> None:
    found = outcomes(job_of(tmp_path, "raises_1", "raisesonce_1", "refuses_1"))
    assert found["raises_1"].error == "raises_1: OSError: the disk is tired"
    assert found["raisesonce_1"].value == {"tried": 2}
    assert found["refuses_1"].error == "refuses_1: it is cut short. Copy it again"
    assert found["refuses_1"].attempts == 1


def test_failure_is_tried_again_by_the_next_run(tmp_path: Path) -> None:
    job = job_of(tmp_path, "refuses_1", "good_1")
    outcomes(job)
    outcomes(job)
    assert calls(tmp_path) == ["good_1", "refuses_1", "refuses_1"]


def test_torn_and_mixed_lines_are_ignored(tmp_path: Path) -> None:
    job = job_of(tmp_path, "good_1", "good_2")
    outcomes(job)
    (journal,) = (tmp_path / "jobs").rglob("*.jsonl")
    first, second = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first.replace(b'"tried":1', b'"tried":7') + second + second[:-9])
    found = outcomes(job)
    tries = sorted(outcome.value["tried"] for outcome in found.values() if outcome.value)
    assert tries == [1, 2]
    assert len(calls(tmp_path)) == 3


def test_one_run_at_a_time(tmp_path: Path) -> None:
    job = job_of(tmp_path, "good_1", "good_2")
    run = run_job(job, LocalExecutor(1))
    next(run)
    with pytest.raises(ReelseekError, match="another run of this job is at work"):
        next(run_job(job, LocalExecutor(1)))
    run.close()
    outcomes(job)


def test_keys_are_unique(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'a' is given twice"):
        job_of(tmp_path, "a", "a")
