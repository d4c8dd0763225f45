"""What verify finds: a code, how bad it is, where, and what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

SCHEMA = "reelseek.verify/1"


class Severity(Enum):
    """How bad a finding is."""

    ERROR = "error"
    """Samples can't be read, or are wrong."""
    WARNING = "warning"
    """Samples can be read; it is likely that something isn't as it was meant."""
    NOTE = "note"
    """Odd, and harmless to reading."""


ORDER = tuple(Severity)
"""The worst first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a dataset."""

    code: str
    """Stable and in kebab case, such as ``video-truncated``; ``CODES`` says what each means."""
    severity: Severity
    """How bad it is; always the code's own."""
    what: str
    """The fault in one sentence, with its values."""
    remedy: str
    """What to do about it."""
    path: str = ""
    """The file, relative to the dataset; empty where it is no single file's fault."""
    episode: int | None = None
    """The episode's number."""
    camera: str = ""
    """The camera's key, or another feature's name."""
    frames: tuple[int, int] | None = None
    """The first and the last frame of the file, or row of the episode, that it is about."""

    def document(self) -> dict[str, Any]:
        """The finding as JSON has it."""
        return {**dataclasses.asdict(self), "severity": self.severity.value}


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was looked at, and what is wrong with it."""

    root: str
    """The dataset's folder."""
    level: str
    """``quick`` or ``decode``."""
    findings: tuple[Finding, ...]
    """The worst first, then by code, path and episode."""
    num_files: int
    """Videos and parquet files that were looked into, now or earlier."""
    num_kept: int
    """Those that an earlier run had looked into, and that are unchanged since."""
    num_frames: int
    """Frames of the videos; at the level ``decode`` those that were decoded."""
    num_episodes: int
    """Episodes in ``meta``."""
    seconds: float
    """How long it took."""

    @property
    def is_sound(self) -> bool:
        """True where no finding is an error."""
        return not self.count(Severity.ERROR)

    def count(self, severity: Severity) -> int:
        """How many findings there are of a severity."""
        return sum(finding.severity is severity for finding in self.findings)

    def without(self, codes: Collection[str]) -> VerifyReport:
        """The same without the findings of some codes."""
        left = tuple(finding for finding in self.findings if finding.code not in codes)
        return dataclasses.replace(self, findings=left)

    def document(self) -> dict[str, Any]:
        """The report as JSON has it, with a schema name of its own."""
        return {
            "schema": SCHEMA,
            "root": self.root,
            "level": self.level,
            "is_sound": self.is_sound,
            "counts": {severity.value: self.count(severity) for severity in ORDER},
            "num_files": self.num_files,
            "num_kept": self.num_kept,
            "num_frames": self.num_frames,
            "num_episodes": self.num_episodes,
            "seconds": self.seconds,
            "findings": [finding.document() for finding in self.findings],
        }


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first, then by code, path, episode and place; each once."""
    return tuple(sorted(dict.fromkeys(findings), key=_place))


def _place(finding: Finding) -> tuple[Any, ...]:
    episode = -1 if finding.episode is None else finding.episode
    severity = ORDER.index(finding.severity)
    where = (finding.path, episode, finding.camera, finding.frames or (-1, -1))
    return (severity, finding.code, *where, finding.what)
