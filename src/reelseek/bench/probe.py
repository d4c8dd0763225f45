"""``reelseek probe``: what every decoder makes of a file, compared with FFmpeg's own decode.

Each decoder runs in a subprocess of its own, so one that crashes or hangs is a line in the table.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reelseek.bench._child import ReadReport, run_oracle, run_reader
from reelseek.bench._readers import PLAIN, plain_of
from reelseek.video.backends import backend_names

SCHEMA = "reelseek.probe/1"
SAMPLE = 24
"""Frames read after the first ones, spread over the file, in random order."""
TIMEOUT_SECONDS = 120.0

Tell = Callable[[str], None]
"""Told what is being done, for a progress line."""


@dataclass(frozen=True, slots=True)
class BackendProbe:
    """What one decoder makes of a file."""

    name: str
    """The backend's name."""
    adapter: ReadReport
    """Through reelseek, which refuses rather than return a neighbour."""
    plain: ReadReport | None
    """With the library's plain documented call; None where there is none to try."""

    @property
    def median_seek_ms(self) -> float | None:
        """Milliseconds per seek, of those that returned a frame."""
        times = self.adapter.read_ms
        return round(statistics.median(times), 4) if times else None

    @property
    def plain_verdict(self) -> str:
        """How the plain call did, in a few words."""
        report = self.plain
        if report is None or report.status == "unavailable":
            return ""
        if report.status in ("crashed", "timed out"):
            return "crashes" if report.status == "crashed" else "hangs"
        if not report.reads:
            return "cannot open"
        if report.failed == report.reads:
            return report.reason if report.reader == "opencv (plain)" else "every read fails"
        parts = [f"{report.wrong}/{report.reads} wrong"] * bool(report.wrong)
        parts += [f"{report.failed}/{report.reads} fail"] * bool(report.failed)
        if parts:
            return ", ".join(parts)
        colours = f", colours within {report.max_difference}" * bool(report.max_difference)
        return f"{report.right}/{report.reads} right{colours}"

    def to_json(self) -> dict[str, Any]:
        """For the JSON document."""
        return {
            "name": self.name,
            "median_seek_ms": self.median_seek_ms,
            "adapter": self.adapter.to_json(),
            "raw": None
            if self.plain is None
            else {
                "usage": PLAIN[self.plain.reader].usage,
                "verdict": self.plain_verdict,
                **self.plain.to_json(),
            },
        }


@dataclass(frozen=True, slots=True)
class FileProbe:
    """What every decoder makes of one file."""

    path: str
    """The file."""
    error: dict[str, str] | None
    """Its ``type`` and ``message`` where the file is no video; None where it is one."""
    video: dict[str, Any]
    """Facts about the video."""
    frames: tuple[int, ...]
    """The frame numbers that were read, in this order."""
    backends: tuple[BackendProbe, ...]
    """One for each backend."""

    @property
    def is_damaged(self) -> bool:
        """True where FFmpeg's own decode ends before the last frame."""
        return bool(self.video and self.video["num_frames_decoded"] < self.video["num_frames"])

    @property
    def is_readable(self) -> bool:
        """True where the file is whole and a backend returned every frame that was asked for."""
        if self.error or self.is_damaged or self.video["num_frames_of_another_size"]:
            return False
        return any(backend.adapter.status == "right" for backend in self.backends)

    def to_json(self) -> dict[str, Any]:
        """For the JSON document."""
        return {
            "path": self.path,
            "error": self.error,
            "is_readable": self.is_readable,
            "is_damaged": self.is_damaged,
            "video": self.video,
            "frames": list(self.frames),
            "backends": [backend.to_json() for backend in self.backends],
        }


def probe_file(
    path: str | os.PathLike[str],
    *,
    backends: Sequence[str] | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
    seed: int = 0,
    tell: Tell = lambda _text: None,
) -> FileProbe:
    """Try every backend on a file, in subprocesses, and compare its frames with FFmpeg's.

    Args:
        path: A video file.
        backends: Names of backends; None for all.
        timeout_seconds: For each decoder; one that takes longer is killed and reported.
        seed: Of the random order in which frames are read.
        tell: Told what is being done.
    """
    path = os.path.abspath(os.fspath(path))
    with tempfile.TemporaryDirectory(prefix="reelseek-oracle-") as scratch:
        oracle = Path(scratch) / "oracle.npz"
        tell(f"{Path(path).name}: FFmpeg decodes it from start to end")
        request = {"path": path, "output": str(oracle), "until": None}
        (video,) = run_oracle([request], timeout_seconds=timeout_seconds)
        if "error" in video:
            return FileProbe(path, video["error"], {}, (), ())
        frames = frames_to_read(video.pop("sound_frames"), seed)
        jobs = [{"path": path, "oracle": str(oracle), "reads": [[frame] for frame in frames]}]
        found = []
        for name in backends or backend_names():
            tell(f"{Path(path).name}: {name}")
            found.append(_probe_backend(name, jobs, timeout_seconds))
    return FileProbe(path, None, video, frames, tuple(found))


def _probe_backend(name: str, jobs: list[dict[str, Any]], timeout_seconds: float) -> BackendProbe:
    adapter = run_reader(name, jobs, timeout_seconds=timeout_seconds)
    plain = plain_of(name)
    if plain is None or adapter.status == "unavailable":
        return BackendProbe(name, adapter, None)
    report = run_reader(plain, jobs, timeout_seconds=timeout_seconds)
    return BackendProbe(name, adapter.in_the_words_of(report), report)


def frames_to_read(sound: Sequence[int], seed: int) -> tuple[int, ...]:
    """Frame numbers to read: back and forth over the whole file, then a sample in random order.

    Args:
        sound: The frames that FFmpeg decodes without inventing parts of them, ascending.
        seed: Of the random order.
    """
    if not sound:
        return ()
    first, middle, last = sound[0], sound[len(sound) // 2], sound[-1]
    step = max(1, len(sound) // SAMPLE)
    sample = list(sound[step // 2 :: step][:SAMPLE])
    random.Random(seed).shuffle(sample)  # noqa: S311 - an order, not a secret
    return (first, last, middle, first, *sample)


def document(probes: Sequence[FileProbe], *, timeout_seconds: float) -> dict[str, Any]:
    """The versioned JSON document of ``reelseek probe --json``."""
    import reelseek

    return {
        "schema": SCHEMA,
        "reelseek": reelseek.__version__,
        "timeout_seconds": timeout_seconds,
        "files": [probe.to_json() for probe in probes],
    }
