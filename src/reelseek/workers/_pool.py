"""Several worker processes; what one dies of is that call's failure only."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reelseek.workers import _child

ANSWERS_WAITING = 64


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one call."""

    position: int
    """The call's place among those that were asked for."""
    value: Any
    """What the function returned; None where its process died."""
    death: str = ""
    """How its process ended, as "died of signal 9"; empty where it didn't."""
    attempts: int = 1
    """How often it was tried."""


class WorkerPool:
    """Calls one function in worker processes, which are its threads' own.

    Processes are started as programs, neither forked nor spawned by multiprocessing: whatever the
    caller runs, threads or a script without a main guard, they start clean.
    """

    def __init__(self, function: str, calls: Sequence[tuple[Any, ...]], jobs: int) -> None:
        """Start to work.

        Args:
            function: "module:name", of a function whose errors are answers: where one escapes,
                its process ends.
            calls: The arguments of each call; they and the answers are pickled.
            jobs: Processes.
        """
        self._function = function
        self._calls = calls
        self._todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for position in range(len(calls)):
            self._todo.put(position)
        self._answers: queue.Queue[Answer | BaseException] = queue.Queue(ANSWERS_WAITING)
        self._stopped = threading.Event()
        self._workers: set[subprocess.Popen[bytes]] = set()
        self._threads = [
            threading.Thread(target=self._serve, daemon=True) for _ in range(min(jobs, len(calls)))
        ]
        for thread in self._threads:
            thread.start()

    def answers(self) -> Iterator[Answer]:
        """Each call's answer, as they come. Whoever stops early calls ``close``."""
        for _ in self._calls:
            answer = self._answers.get()
            if isinstance(answer, BaseException):
                raise answer
            yield answer

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
        """One thread: hands calls to its process, and starts another where that dies."""
        worker: subprocess.Popen[bytes] | None = None
        try:
            while not self._stopped.is_set():
                position = self._todo.get_nowait()
                worker = worker or self._started()
                try:
                    answer = Answer(position, self._asked(worker, position))
                except (EOFError, OSError):
                    answer = Answer(position, None, _end_of(worker))
                    self._workers.discard(worker)
                    worker = None
                self._put(answer)
        except queue.Empty:
            pass
        except OSError as exc:  # no process can be started
            self._put(exc)
        finally:
            if worker is not None:
                self._workers.discard(worker)
                _ended(worker)

    def _asked(self, worker: subprocess.Popen[bytes], position: int) -> Any:
        assert worker.stdin is not None
        assert worker.stdout is not None
        _child.send(worker.stdin, (self._function, self._calls[position]))
        return _child.receive(worker.stdout)

    def _put(self, answer: Answer | BaseException) -> None:
        while not self._stopped.is_set():
            try:
                return self._answers.put(answer, timeout=1)
            except queue.Full:
                continue
        return None

    def _started(self) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [sys.executable, _child.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": python_path()},
        )
        self._workers.add(worker)
        return worker


def answers_of(
    function: str, calls: Sequence[tuple[Any, ...]], jobs: int, *, retries: int = 1
) -> Iterator[Answer]:
    """Each call's answer, as they come; one whose process died is tried again, alone.

    Args:
        function: As for ``WorkerPool``.
        calls: As for ``WorkerPool``.
        jobs: Processes.
        retries: How often a call is tried again after its process died.
    """
    died: list[Answer] = []
    with WorkerPool(function, calls, jobs) as pool:
        for answer in pool.answers():
            if answer.death and retries:
                died.append(answer)
            else:
                yield answer
    for first in died:
        yield _tried_alone(function, calls, first, retries)


def _tried_alone(
    function: str, calls: Sequence[tuple[Any, ...]], last: Answer, retries: int
) -> Answer:
    for attempt in range(2, retries + 2):
        with WorkerPool(function, [calls[last.position]], 1) as pool:
            (again,) = pool.answers()
        last = Answer(last.position, again.value, again.death, attempt)
        if not last.death:
            break
    return last


def num_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def python_path() -> str:
    """PYTHONPATH for another process that finds what this one finds."""
    return os.pathsep.join(str(Path(entry or ".").resolve()) for entry in sys.path)


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
