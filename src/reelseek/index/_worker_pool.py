"""Several worker processes; a file on which one dies is that file's failure only."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reelseek.index import _worker
from reelseek.index._video_record import VideoRecord

Result = tuple[bytes, VideoRecord | str]
"""A file's path, and its record or what is wrong with it."""
RESULTS_WAITING = 64


class WorkerPool:
    """Indexes files in worker processes, which are its threads' own.

    Processes are started as programs, neither forked nor spawned by multiprocessing: whatever the
    caller runs, threads or a script without a main guard, they start clean.
    """

    def __init__(self, folder: str, files: Sequence[bytes], jobs: int) -> None:
        """Start to index files.

        Args:
            folder: What the files' paths start from.
            files: Paths below it.
            jobs: Processes.
        """
        self._folder = folder
        self._count = len(files)
        self._todo: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        for file in files:
            self._todo.put(file)
        self._results: queue.Queue[Result | BaseException] = queue.Queue(RESULTS_WAITING)
        self._stopped = threading.Event()
        self._workers: set[subprocess.Popen[bytes]] = set()
        self._threads = [
            threading.Thread(target=self._serve, daemon=True) for _ in range(min(jobs, len(files)))
        ]
        for thread in self._threads:
            thread.start()

    def results(self) -> Iterator[Result]:
        """Each file's result, as they come. Whoever stops early calls ``close``."""
        for _ in range(self._count):
            result = self._results.get()
            if isinstance(result, BaseException):
                raise result
            yield result

    def close(self) -> None:
        """End the processes."""
        self._stopped.set()
        for worker in list(self._workers):
            worker.kill()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    def _serve(self) -> None:
        """One thread: hands files to its process, and starts another where that dies."""
        worker: subprocess.Popen[bytes] | None = None
        try:
            while not self._stopped.is_set():
                file = self._todo.get_nowait()
                worker = worker or self._started()
                found = _asked(worker, self._folder, file)
                if found is None:
                    found = f"{self._path(file)}: the process that indexed it {_end_of(worker)}"
                    self._workers.discard(worker)
                    worker = None
                self._put((file, found))
        except queue.Empty:
            pass
        except OSError as exc:  # no process can be started
            self._put(exc)
        finally:
            if worker is not None:
                self._workers.discard(worker)
                _ended(worker)

    def _put(self, result: Result | BaseException) -> None:
        while not self._stopped.is_set():
            try:
                return self._results.put(result, timeout=1)
            except queue.Full:
                continue
        return None

    def _started(self) -> subprocess.Popen[bytes]:
        paths = [str(Path(entry or ".").resolve()) for entry in sys.path]
        worker = subprocess.Popen(
            [sys.executable, _worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self._workers.add(worker)
        return worker

    def _path(self, file: bytes) -> str:
        return os.path.join(self._folder, os.fsdecode(file))


def _asked(worker: subprocess.Popen[bytes], folder: str, file: bytes) -> Any:
    """What a worker says of a file; None where it died."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        _worker.send(worker.stdin, (folder, file))
        return _worker.receive(worker.stdout)
    except (EOFError, OSError):
        return None


def _end_of(worker: subprocess.Popen[bytes]) -> str:
    _ended(worker)
    code = worker.returncode
    return f"died of signal {-code}" if code < 0 else f"ended with exit status {code}"


def _ended(worker: subprocess.Popen[bytes]) -> None:
    """Close a worker's pipes, which ends it, and wait for that."""
    for pipe in (worker.stdin, worker.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was in the pipe went with the worker
                pipe.close()
    worker.wait()
