"""A lock that a forked child finds open."""

from __future__ import annotations

import os
import threading


class ForkLock:
    """A lock for ``with``, one for each process.

    A plain lock that another thread holds at the moment of a fork stays held in the child for
    ever, as the thread that would open it doesn't exist there.
    """

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def __enter__(self) -> None:
        lock = self._locks.get(pid := os.getpid())
        if lock is None:  # setdefault is atomic: two threads get the same one
            lock = self._locks.setdefault(pid, threading.Lock())
        lock.acquire()

    def __exit__(self, *_exc_info: object) -> None:
        self._locks[os.getpid()].release()

    def __reduce__(self) -> tuple[type[ForkLock], tuple[()]]:
        return ForkLock, ()
