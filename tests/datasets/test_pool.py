"""Files decoded at once for a batch."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytest

import reelseek
from reelseek.datasets._pool import DecodePool
from reelseek.sample import sample_dataset
from tests.patience import PATIENCE

DELTAS = {"observation.images.*": [0, 16]}


def test_batch_decoded_on_threads_is_the_same() -> None:
    one = reelseek.open_dataset(sample_dataset(), output="numpy", delta_indices=DELTAS)
    two = reelseek.open_dataset(sample_dataset(), output="numpy", delta_indices=DELTAS, threads=2)
    for indices in ([0, 200, 100], [380, 5], [7]):
        expected, batch = one.get_batch(indices), two.get_batch(indices)
        for key in expected:
            np.testing.assert_array_equal(batch[key], expected[key])


def test_tasks_run_at_once() -> None:
    meeting = threading.Barrier(3, timeout=PATIENCE)

    def meet() -> None:
        meeting.wait()

    DecodePool(3).run([meet] * 3)


def test_error_of_a_task_is_raised_when_all_have_ended() -> None:
    ended = []

    def fail() -> None:
        raise reelseek.errors.DecodeError("no")

    with pytest.raises(reelseek.errors.DecodeError):
        DecodePool(2).run([fail, lambda: ended.append(1), lambda: ended.append(2)])
    assert sorted(ended) == [1, 2]


def test_pool_starts_its_own_threads_in_a_child() -> None:
    pool = DecodePool(2)
    pool.run([lambda: None] * 4)
    child = os.fork()
    if child == 0:
        pool.run([lambda: None] * 4)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_pool_pickles_and_closes_twice() -> None:
    pool = DecodePool(2)
    pool.run([lambda: None] * 2)
    pool.close()
    pool.close()
    pickle.loads(pickle.dumps(pool)).run([lambda: None] * 2)
