"""Several worker processes; what one dies of is that call's failure only."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reelseek.workers._worker import Worker

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
        self._workers: set[Worker] = set()
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
        worker: Worker | None = None
        try:
            while not self._stopped.is_set():
                position = self._todo.get_nowait()
                worker = worker or self._started()
                try:
                    value = worker.call(self._function, *self._calls[position])
                    self._put(Answer(position, value))
                except EOFError:
                    death = self._ended(worker)
                    worker = None
                    self._put(Answer(position, None, death))
        except queue.Empty:
            pass
        except Exception as exc:  # noqa: BLE001 - as that no process can be started: is raised by ``answers``
            self._put(exc)
        finally:
            if worker is not None:
                self._ended(worker)

    def _started(self) -> Worker:
        worker = Worker()
        self._workers.add(worker)
        return worker

    def _ended(self, worker: Worker) -> str:
        self._workers.discard(worker)
        return worker.end()

    def _put(self, answer: Answer | BaseException) -> None:
        while not self._stopped.is_set():
            try:
                return self._answers.put(answer, timeout=1)
            except queue.Full:
                continue
        return None


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
