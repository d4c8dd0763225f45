"""What a probe's subprocess does: ``python -m reelseek.bench._probe_child FOLDER``.

It reads ``request.json`` in the folder and writes ``result.json`` there. ``stage`` says what was
being done, for the parent to quote if this process dies. Nothing here guards against a crash or
a hang: that is the parent's part.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reelseek.bench._child import undecorated
from reelseek.bench._oracle import Oracle, decode_all
from reelseek.bench._readers import Reader, open_reader, reader_version
from reelseek.errors import (
    BackendUnavailableError,
    DeviceUnavailableError,
    ReelseekError,
    UnsupportedVideoError,
)

Json = dict[str, Any]
Stage = Callable[[str], None]
ALARM_SECONDS = 10
"""How long after the parent should have ended this process it ends itself."""


def main(folder: Path) -> None:
    """Do the request that lies in the folder."""
    request = json.loads((folder / "request.json").read_text())
    # Ends even a decoder that hangs in native code, should the parent have been killed.
    signal.alarm(math.ceil(request["timeout_seconds"]) + ALARM_SECONDS)

    def stage(text: str) -> None:
        (folder / "stage").write_text(text)

    tasks: dict[str, Callable[[Json, Stage], Json]] = {"oracle": _oracle, "read": _read}
    result = tasks[request["task"]](request, stage)
    scratch = folder / "result.part"
    scratch.write_text(json.dumps(result))
    scratch.replace(folder / "result.json")


def _oracle(request: Json, stage: Stage) -> Json:
    """Decode files from start to end, and save their frames' digests."""
    return {"files": [_oracle_of(file, stage) for file in request["files"]]}


def _oracle_of(request: Json, stage: Stage) -> Json:
    stage(f"decoding {request['path']} from its start")
    try:
        table, oracle = decode_all(request["path"], until=request["until"])
    except ReelseekError as exc:
        return {"error": {"type": type(exc).__name__, "message": str(exc)}}
    if not oracle.is_sound.any():
        what = f"{request['path']}: FFmpeg can't decode one frame of it. Copy it from its source"
        return {"error": {"type": "CorruptVideoError", "message": what}}
    oracle.save(Path(request["output"]))
    stream = table.stream
    return {
        "container": stream.container,
        "codec": stream.codec,
        "width": stream.width,
        "height": stream.height,
        "pixel_format": stream.pixel_format,
        "num_frames": len(table),
        "num_key_frames": int(table.is_key.sum()),
        "duration_seconds": _finite(table.end_seconds() - float(table.pts_seconds()[0])),
        "notes": list(table.notes),
        "num_frames_decoded": len(oracle.digests),
        "num_frames_of_another_size": int((~oracle.has_shape).sum()),
        "sound_frames": oracle.is_sound[: len(table)].nonzero()[0].tolist(),
    }


@dataclass(slots=True)
class _Findings:
    """What one reader did over all reads."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    failures: list[ReelseekError | Exception] = field(default_factory=list)
    difference: int = 0
    open_ms: list[float] = field(default_factory=list)
    read_ms: list[float] = field(default_factory=list)


def _read(request: Json, stage: Stage) -> Json:
    """Read frames of one or more files, and compare each with the oracle's."""
    name = request["reader"]
    stage("loading its library")
    try:
        version = reader_version(name)
    except ReelseekError as exc:
        return {"status": "unavailable", **_words(exc)}
    findings = _Findings()
    for job in request["jobs"]:
        oracle = Oracle.load(job["oracle"])
        stage(f"opening {job['path']}")
        try:
            started = time.perf_counter()
            reader = open_reader(name, job["path"], oracle.pts_seconds)
            findings.open_ms.append((time.perf_counter() - started) * 1000)
        except Exception as exc:  # noqa: BLE001 - a library's plain call raises anything
            return {"version": version, "status": _refusal(exc), **_words(exc)}
        for frames in job["reads"]:
            stage(f"reading frame {', '.join(map(str, frames))} of {job['path']}")
            _read_once(reader, frames, oracle, findings)
        with contextlib.suppress(Exception):
            reader.close()
    return {"version": version, **_summary(findings)}


def _read_once(reader: Reader, frames: list[int], oracle: Oracle, findings: _Findings) -> None:
    started = time.perf_counter()
    try:
        pixels = reader.read(frames)
    except Exception as exc:  # noqa: BLE001 - a library's plain call raises anything
        findings.failures.append(exc)
        return
    findings.read_ms.append((time.perf_counter() - started) * 1000)
    is_right = True
    for frame, picture in zip(frames, pixels, strict=True):
        match = oracle.match(frame, picture)
        if match.is_right:
            findings.difference = max(findings.difference, match.difference)
            continue
        is_right = False
        if match.shown >= 0:
            findings.wrong.append(f"frame {match.shown} for {frame}")
        else:
            findings.wrong.append(f"a picture of {picture.shape[1]}x{picture.shape[0]} for {frame}")
    findings.right += is_right


def _summary(findings: _Findings) -> Json:
    summary: Json = {
        "status": "right",
        "right": findings.right,
        "failed": len(findings.failures),
        "wrong": len(findings.read_ms) - findings.right,
        "max_difference": findings.difference,
        "open_ms": round(statistics.median(findings.open_ms), 4),
        "read_ms": [round(value, 4) for value in findings.read_ms],
    }
    if findings.wrong:
        summary |= {"status": "wrong", "reason": f"returns {findings.wrong[0]}"}
    elif findings.failures:
        texts = Counter(str(exc) for exc in findings.failures)
        commonest = texts.most_common(1)[0][0]
        first = next(exc for exc in findings.failures if str(exc) == commonest)
        summary |= {"status": "fails", **_words(first)}
    return summary


def _refusal(exc: Exception) -> str:
    if isinstance(exc, BackendUnavailableError | DeviceUnavailableError):
        return "unavailable"
    return "refuses" if isinstance(exc, UnsupportedVideoError) else "fails"


def _words(exc: Exception) -> Json:
    """What an exception says, in parts: the fault, the library's own words, what to do."""
    if isinstance(exc, ReelseekError):
        return {"reason": exc.what, "detail": _one_line(exc.detail), "remedy": exc.remedy}
    return {"reason": _one_line(str(exc)) or type(exc).__name__, "detail": "", "remedy": ""}


def _one_line(text: str) -> str:
    """The first line that says anything; C++ stacks and Python traces follow it."""
    return next((found for line in text.splitlines() if (found := undecorated(line))), "")


def _finite(value: float) -> float | None:
    return value if value == value else None  # JSON knows no NaN


if __name__ == "__main__":
    main(Path(sys.argv[1]))
