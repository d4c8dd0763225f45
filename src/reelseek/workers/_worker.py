"""One worker process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from reelseek.workers import _child


class Worker:
    """A process that calls functions for this one.

    It is started as a program, neither forked nor spawned by multiprocessing, and ends when this
    process does. Threads: one call at a time; ``kill`` may come from another thread.
    """

    def __init__(self, log: Path | None = None) -> None:
        """Start it.

        Args:
            log: Where to write what it prints; None takes this process's stderr. A worker with a
                log of its own doesn't get the terminal's Ctrl-C.
        """
        with contextlib.ExitStack() as stack:
            stderr = None if log is None else stack.enter_context(open(log, "ab"))
            self._process = subprocess.Popen(
                [sys.executable, _child.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, "PYTHONPATH": python_path()},
                start_new_session=log is not None,
            )

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function returns, named by "module:name".

        Raises:
            EOFError: The process has ended, as it does where the function raises.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _child.send(self._process.stdin, (function, arguments))
            return _child.receive(self._process.stdout)
        except OSError as exc:  # a BrokenPipeError would be taken for the command's own output
            raise EOFError("the process has ended") from exc
        except EOFError:
            raise
        except BaseException:
            # Broken off, as by Ctrl-C: the next call would take this one's answer for its own.
            self.kill()
            raise

    def kill(self) -> None:
        """End it now, whatever it does."""
        self._process.kill()

    def end(self) -> str:
        """Close its pipes, which ends it, wait for that, and say how it ended."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was in the pipe went with the worker
                    pipe.close()
        code = self._process.wait()
        return f"died of signal {-code}" if code < 0 else f"ended with exit status {code}"


def python_path() -> str:
    """PYTHONPATH for another process that finds what this one finds."""
    return os.pathsep.join(str(Path(entry or ".").resolve()) for entry in sys.path)
