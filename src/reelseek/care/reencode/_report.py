"""What re-encoding a dataset came to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reelseek.care.jobs import Summary
from reelseek.care.reencode._compare import MOST_DB, PEAK, psnr_db
from reelseek.care.reencode._encoding import Encoding
from reelseek.care.reencode._seek import Spread

SCHEMA = "reelseek.reencode/1"


@dataclass(frozen=True, slots=True)
class FileReport:
    """One new video, which was checked frame by frame."""

    key: str
    """Its path, relative to the dataset."""
    num_frames: int
    """Its frames, as many as before."""
    num_key_frames: int
    """Those that are key frames."""
    num_key_frames_before: int
    """Those that were key frames in the source."""
    bytes_before: int
    """The source's size."""
    bytes_after: int
    """The new file's size."""
    psnr_db: float | None
    """How near its frames are to what was encoded, over all frames; None for a stream copy, whose
    frames are the same."""
    worst_psnr_db: float | None
    """The same of the frame that is furthest."""
    worst_frame: int | None
    """The number of that frame."""
    note: str
    """What is different from the source's times, or unusual in them, and what of its pixels wasn't
    kept before anything was encoded: bits, colours; PSNR doesn't show these."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A video without a new one."""

    key: str
    """Its path, relative to the dataset."""
    message: str
    """What is wrong, and what to do."""


@dataclass(frozen=True, slots=True)
class ReencodeReport:
    """What became of a dataset."""

    root: str
    """The dataset's folder."""
    out: str
    """The new dataset's folder; not there where there are failures."""
    encoding: Encoding | None
    """How its videos were encoded; None for a stream copy."""
    restamp: bool
    """True where each frame i was put at i/fps whatever its time was."""
    files: tuple[FileReport, ...]
    """The new videos, by path."""
    failures: tuple[Failure, ...]
    """Videos that couldn't be made; the new dataset is then unfinished."""
    num_other_files: int
    """Files that were copied as they are."""
    seek_ms_before: Spread | None
    """What reading two frames at a random place takes in a few of the source's videos: warm, one
    thread, in milliseconds; None where there are failures, or none could be read at random."""
    seek_ms_after: Spread | None
    """The same in the new videos, each read in turn with the source's."""
    seconds: float
    """How long this run took."""
    job: Summary
    """What became of the videos' job: how many were done before, tried again, failed."""

    @property
    def bytes_before(self) -> int:
        """Of all videos."""
        return sum(file.bytes_before for file in self.files)

    @property
    def bytes_after(self) -> int:
        """Of all new videos."""
        return sum(file.bytes_after for file in self.files)

    @property
    def num_frames(self) -> int:
        """Of all new videos."""
        return sum(file.num_frames for file in self.files)

    @property
    def psnr_db(self) -> float | None:
        """Over all frames of all videos; None for a stream copy."""
        known = [(file.psnr_db, file.num_frames) for file in self.files if file.psnr_db is not None]
        if not known:
            return None
        total = sum(_mse(psnr) * count for psnr, count in known)
        return psnr_db(total / sum(count for _psnr, count in known))

    @property
    def worst(self) -> FileReport | None:
        """The video with the frame that is furthest from its source; None for a stream copy."""
        known = [file for file in self.files if file.worst_psnr_db is not None]
        return min(known, key=lambda file: file.worst_psnr_db or 0.0, default=None)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "schema": SCHEMA,
            **dataclasses.asdict(self),
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "num_frames": self.num_frames,
            "psnr_db": self.psnr_db,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> ReencodeReport:
        """From what ``document`` gave."""
        encoding = document["encoding"]
        return cls(
            root=document["root"],
            out=document["out"],
            encoding=None if encoding is None else Encoding.from_document(encoding),
            restamp=document["restamp"],
            files=tuple(FileReport(**file) for file in document["files"]),
            failures=tuple(Failure(**failure) for failure in document["failures"]),
            num_other_files=document["num_other_files"],
            seek_ms_before=_spread(document["seek_ms_before"]),
            seek_ms_after=_spread(document["seek_ms_after"]),
            seconds=document["seconds"],
            job=Summary(**document["job"]),
        )


def _spread(document: Mapping[str, float] | None) -> Spread | None:
    return None if document is None else Spread(**document)


def _mse(psnr: float) -> float:
    return 0.0 if psnr >= MOST_DB else float(PEAK**2 / 10 ** (psnr / 10))
