"""Workers, threads and pickles: every process reads what the main process reads."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import reelseek
from reelseek.datasets import Dataset
from reelseek.errors import VideoNotFoundError
from tests.conftest import needed
from tests.corpus import clip_path
from tests.datasets.conftest import need_backend
from tests.datasets.makers import TOP, WRIST, numbers, shown, v2_video
from tests.patience import PATIENCE

torch = needed("torch")
DataLoader = needed("torch.utils.data").DataLoader

DELTAS = {"observation.images.*": [-1, 0, 3], "action": range(4)}
BACKENDS = ("indexed", "torchcodec", "pyav")

pytestmark = [
    pytest.mark.slow,
    # Python 3.12 and later warn of any fork while threads run; Arrow and torch have some.
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """No worker outlives its test, running or as a zombie."""
    yield
    gc.collect()  # an iterator in an error's traceback holds its workers
    for child in multiprocessing.active_children():
        child.join(PATIENCE)
    assert multiprocessing.active_children() == []


def opened(root: Path, backend: str, **options: Any) -> Dataset:
    need_backend(backend)
    return reelseek.open_dataset(root, backend=backend, delta_indices=DELTAS, **options)


def loader(ds: Dataset, start_method: str, workers: int = 2, **options: Any) -> Any:
    return DataLoader(
        ds,
        batch_size=4,
        num_workers=workers,
        multiprocessing_context=start_method,
        timeout=PATIENCE,
        **options,
    )


def assert_epoch_equals(batches: Any, ds: Dataset) -> None:
    """An unshuffled epoch holds every sample, key by key."""
    seen = 0
    for batch in batches:
        count = len(batch["index"])
        expected = ds.get_batch(range(seen, seen + count))
        assert set(batch) == set(expected)
        for key, values in expected.items():
            if isinstance(values, torch.Tensor):
                assert batch[key].dtype == values.dtype
                assert torch.equal(batch[key], values)
            else:
                assert list(batch[key]) == values
        seen += count
    assert seen == len(ds)


@pytest.mark.parametrize("read_before", [False, True])
@pytest.mark.parametrize("kind", ["v2.1", "v3.0", "images"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_forked_workers_read_what_the_parent_reads(
    roots: dict[str, Path], backend: str, kind: str, read_before: bool
) -> None:
    ds = opened(roots[kind], backend)
    if read_before:
        ds.get_batch(range(len(ds)))
    assert_epoch_equals(loader(ds, "fork"), opened(roots[kind], backend))


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_started_workers_read_what_the_parent_reads(
    roots: dict[str, Path], backend: str, start_method: str
) -> None:
    ds = opened(roots["v3.0"], backend)
    ds.get_batch(range(len(ds)))
    assert_epoch_equals(loader(ds, start_method), ds)


@pytest.mark.parametrize("backend", BACKENDS)
def test_workers_that_stay_read_a_second_epoch(roots: dict[str, Path], backend: str) -> None:
    ds = opened(roots["v2.1"], backend, max_open_videos=2)
    batches = loader(ds, "fork", persistent_workers=True)
    for _epoch in range(2):
        assert_epoch_equals(batches, ds)
    del batches


@pytest.mark.parametrize("backend", BACKENDS)
def test_parent_reads_on_while_workers_read(roots: dict[str, Path], backend: str) -> None:
    ds = opened(roots["v3.0"], backend)
    ds[0]
    for batch in loader(ds, "fork"):
        for place, index in enumerate(batch["index"].tolist()):
            assert torch.equal(ds[index][TOP], batch[TOP][place])


def test_error_in_a_worker_keeps_its_type_and_text(v21: Path) -> None:
    v2_video(v21, TOP, 1).unlink()
    with pytest.raises(VideoNotFoundError, match=r"episode_000001\.mp4: no such file"):
        list(loader(opened(v21, "pyav"), "fork", workers=1))


# Pickles


@pytest.mark.parametrize("backend", BACKENDS)
def test_pickled_dataset_reads_the_same(root: Path, backend: str) -> None:
    ds = opened(root, backend)
    ds.get_batch(range(len(ds)))
    again = pickle.loads(pickle.dumps(ds))
    assert repr(again) == repr(ds)
    assert_epoch_equals([again.get_batch(range(len(ds)))], ds)


def test_pickle_does_not_grow_with_what_was_read(root: Path) -> None:
    ds = opened(root, "pyav")
    before = len(pickle.dumps(ds))
    ds.get_batch(range(len(ds)))
    assert len(pickle.dumps(ds)) == before


# Threads


@pytest.mark.parametrize("max_open", [1, 3, None])
@pytest.mark.parametrize("backend", BACKENDS)
def test_eight_threads_read_one_dataset(
    roots: dict[str, Path], backend: str, max_open: int | None
) -> None:
    ds = opened(roots["v2.1"], backend, max_open_videos=max_open)

    def read(start: int) -> list[tuple[int, list[int]]]:
        order = [(start * 3 + step * 7) % len(ds) for step in range(12)]
        return [(index, [numbers(ds[index][c])[1] for c in (TOP, WRIST)]) for index in order]

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(read, range(8)):
            for index, seen in found:
                assert seen == [shown(TOP, index), shown(WRIST, index)]


# Plain forks, without a DataLoader that prepares its workers


@contextmanager
def threads_that_read(ds: Dataset) -> Iterator[None]:
    """Two threads that read all the while."""
    stop = threading.Event()

    def read() -> None:
        for step in itertools.takewhile(lambda _step: not stop.is_set(), itertools.count()):
            ds[step * 7 % len(ds)]

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def run_forked(function: Callable[..., None], *arguments: Any) -> int | None:
    """A forked process's exit code; None where it hangs."""
    child = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    child.start()
    child.join(PATIENCE)
    exit_code = child.exitcode
    child.kill()
    child.join()
    return exit_code


def check_samples(ds: Dataset) -> None:
    for index in range(0, len(ds), 2):
        if numbers(ds[index][TOP])[1] != index:
            os._exit(1)
    os._exit(0)


def check_odd_size(path: str, backend: str) -> None:
    with reelseek.open_video(path, backend=backend) as video:
        video.get_frames_at([3, 0, 3])
    os._exit(0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_fork_while_other_threads_read_does_not_hang(roots: dict[str, Path], backend: str) -> None:
    ds = opened(roots["v2.1"], backend, max_open_videos=2)
    ds[0]  # imports all it needs: a fork in the middle of an import is Python's own trap
    with threads_that_read(ds):
        assert [run_forked(check_samples, ds) for _ in range(6)] == [0] * 6


@pytest.mark.parametrize("backend", BACKENDS)
def test_fork_after_torch_used_its_threads_does_not_hang(
    roots: dict[str, Path], backend: str
) -> None:
    ds = opened(roots["v2.1"], backend)
    torch.ones(2_000_000).add(1).sum()
    assert run_forked(check_samples, ds) == 0
    assert run_forked(check_odd_size, str(clip_path("odd_size_420.mp4")), backend) == 0
