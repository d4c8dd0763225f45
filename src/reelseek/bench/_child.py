"""Running a decoder in a subprocess that may crash or hang."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from reelseek.errors import DecodeError

CHILD_COMMAND = (sys.executable, "-m", "reelseek.bench._probe_child")
"""The subprocess; the folder with its request is put after it."""
CHATTER_BYTES = 1 << 16
"""How much of what a decoder printed is looked at, from the end."""

Status = Literal["right", "wrong", "fails", "refuses", "unavailable", "crashed", "timed out"]


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What one reader made of the frames that it was asked for."""

    reader: str
    """A backend's name, or a plain call's."""
    status: Status
    """``right``: every frame is the one asked for. ``wrong``: some aren't. ``fails``: some reads
    raise. ``refuses``: the backend can't keep frame numbers exact for the file. ``unavailable``:
    not installed, or doesn't load."""
    version: str = ""
    """The library's version; empty where it isn't known."""
    right: int = 0
    """Reads in which every frame is the one asked for."""
    wrong: int = 0
    """Reads in which a frame is another one."""
    failed: int = 0
    """Reads that raised."""
    max_difference: int = 0
    """The largest difference of a right frame's pixels from FFmpeg's, in levels of 0 to 255."""
    open_ms: float | None = None
    """Milliseconds to open a file, the median; the first includes what the library loads late."""
    read_ms: list[float] = field(default_factory=list)
    """Milliseconds of each read that returned, in order."""
    reason: str = ""
    """What is the matter, in a few words."""
    detail: str = ""
    """The decoder's own words."""
    remedy: str = ""
    """What to do about it."""

    @property
    def reads(self) -> int:
        """How many reads were tried."""
        return self.right + self.wrong + self.failed

    @property
    def explanation(self) -> str:
        """Reason, the decoder's own words, and what to do, in one line; empty where all is well."""
        text = self.reason
        detail = self.detail.rstrip(".")
        if detail and detail not in text:
            text += f" ({detail})"
        return f"{text}. {self.remedy}" if self.remedy else text

    def in_the_words_of(self, plain: ReadReport) -> ReadReport:
        """This report, with the library's own words where only its plain call brought them out."""
        says_nothing = self.status == "refuses" and not self.detail
        reads_nothing = plain.status == "fails" and not plain.right
        if says_nothing and reads_nothing:
            return replace(self, detail=plain.detail or plain.reason)
        return self

    def to_json(self) -> dict[str, Any]:
        """Its fields, for a JSON document."""
        return asdict(self)


def run_reader(reader: str, jobs: list[dict[str, Any]], *, timeout_seconds: float) -> ReadReport:
    """Read frames in a subprocess.

    Args:
        reader: A backend's name, or a plain call's.
        jobs: For each file ``path``, ``oracle`` (what ``run_oracle`` wrote) and ``reads``: lists
            of frame numbers.
        timeout_seconds: After this the subprocess is killed.
    """
    request = {"task": "read", "reader": reader, "jobs": jobs}
    outcome = _run(request, timeout_seconds)
    if isinstance(outcome, _Death):
        return ReadReport(reader, outcome.status, reason=outcome.reason, detail=outcome.chatter,
                          remedy=outcome.remedy)  # fmt: skip
    result, chatter = outcome
    if result["status"] != "right" and not result.get("detail"):
        result["detail"] = chatter
    return ReadReport(reader, **result)


def run_oracle(files: list[dict[str, Any]], *, timeout_seconds: float) -> list[dict[str, Any]]:
    """Decode files from their start in a subprocess.

    Args:
        files: For each ``path``, ``output`` (where its frames' digests go) and ``until``: the
            last frame needed, or None.
        timeout_seconds: After this the subprocess is killed.

    Returns:
        For each file facts about it, or ``{"error": {"type": ..., "message": ...}}``.
    """
    outcome = _run({"task": "oracle", "files": files}, timeout_seconds)
    if not isinstance(outcome, _Death):
        facts: list[dict[str, Any]] = outcome[0]["files"]
        return facts
    what = DecodeError(f"FFmpeg {outcome.reason}", detail=outcome.chatter, remedy=outcome.remedy)
    return [{"error": {"type": type(what).__name__, "message": str(what)}}] * len(files)


@dataclass(frozen=True, slots=True)
class _Death:
    status: Literal["crashed", "timed out"]
    reason: str
    chatter: str
    remedy: str


def _run(request: dict[str, Any], timeout_seconds: float) -> tuple[dict[str, Any], str] | _Death:
    """The subprocess's result and the telling line of what it printed, or how it died."""
    request = {**request, "timeout_seconds": timeout_seconds}
    with tempfile.TemporaryDirectory(prefix="reelseek-probe-") as scratch:
        folder = Path(scratch)
        (folder / "request.json").write_text(json.dumps(request))
        status = _wait(folder, timeout_seconds)
        telling, last = _telling_line(_text(folder / "chatter"))
        result = folder / "result.json"
        # A library that crashes while the process ends has done its work before.
        if result.exists():
            return json.loads(result.read_text()), telling
        return _death(status, _text(folder / "stage"), telling or last, timeout_seconds)


def _wait(folder: Path, timeout_seconds: float) -> int | None:
    """The exit status, negative for a signal; None where it took too long."""
    with (
        open(folder / "chatter", "wb") as chatter,
        subprocess.Popen(
            [*CHILD_COMMAND, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=chatter,
            stderr=chatter,
            start_new_session=True,
        ) as child,
    ):
        try:
            return child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # The whole group, on Ctrl-C too: a decoder may have started processes of its own.
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


def _death(status: int | None, stage: str, chatter: str, timeout_seconds: float) -> _Death:
    while_doing = f" while {stage}" if stage else ""
    if status is None:
        return _Death("timed out", f"did not end within {timeout_seconds:g} s{while_doing}",
                      chatter, "Give it longer with --timeout, or leave it out")  # fmt: skip
    if status < 0:
        return _Death("crashed", f"crashed with {_signal_name(-status)}{while_doing}", chatter,
                      "Don't read this file with it in a training process")  # fmt: skip
    return _Death("crashed", f"ended with exit status {status}{while_doing}", chatter, "")


def _signal_name(number: int) -> str:
    try:
        found = signal.Signals(number)
    except ValueError:
        return f"signal {number}"
    return f"{found.name} ({(signal.strsignal(number) or '').lower()})"


TELLING = (
    re.compile(
        r"doesn't sup|not support|unsupported|cannot|can't|unable|could not|not found", re.I
    ),
    re.compile(r"error|fail|missing|invalid|abort|terminate", re.I),
)
DECORATION = re.compile(
    r"^\s*((\[[^\]]*\]\s*)+((global|\S+\.(cpp|cc|hpp|h):\d+:?)\s+)*(open\s+)?)+"
)
"""``[av1 @ 0x55d0]``, ``[ERROR:0@0.034] global cap.cpp:164 open`` and ``[08:42:29] reader.cc:151:``
in front of a message."""


def undecorated(line: str) -> str:
    """A native library's message without addresses, clocks and source lines in front of it."""
    return DECORATION.sub("", line).strip()


def _telling_line(text: str) -> tuple[str, str]:
    """The last line that says what is wrong, and the last line of all; empty without any."""
    lines = [line for line in map(undecorated, text.splitlines()) if line]
    for pattern in TELLING:
        for line in reversed(lines):
            if pattern.search(line):
                return line, lines[-1]
    return "", lines[-1] if lines else ""


def _text(path: Path) -> str:
    if not path.exists():
        return ""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - CHATTER_BYTES))
        return file.read().decode(errors="replace")
