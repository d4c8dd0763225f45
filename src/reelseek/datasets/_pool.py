"""Decoding several files at once: threads, as FFmpeg's decoders let go of the interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

Task = Callable[[], None]


class DecodePool:
    """Runs tasks on a few threads, which start with the first tasks.

    Fork: a child starts threads of its own. Pickling: the number of threads.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._executor: ThreadPoolExecutor | None = None
        self._pid = -1

    def run(self, tasks: Sequence[Task]) -> None:
        """Run all tasks, and come back when none runs any more; the first error is raised."""
        if self._threads <= 1 or len(tasks) <= 1:
            for task in tasks:
                task()
            return
        futures: list[Future[None]] = [self._own_executor().submit(task) for task in tasks]
        wait(futures)
        for future in futures:
            future.result()

    def close(self) -> None:
        """End the threads; the next tasks start them again."""
        executor, self._executor = self._executor, None
        if executor is not None and self._pid == os.getpid():
            executor.shutdown()

    def _own_executor(self) -> ThreadPoolExecutor:
        if self._executor is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._executor = ThreadPoolExecutor(self._threads, "reelseek-decode")
        return self._executor

    def __reduce__(self) -> tuple[Any, ...]:
        return DecodePool, (self._threads,)
