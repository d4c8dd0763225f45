"""One video of a dataset: made anew, checked, and put in its place. Runs in worker processes."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reelseek.care.reencode._clock import Clock, clock_of
from reelseek.care.reencode._copy import copy_stream
from reelseek.care.reencode._encoder import Output, write_video
from reelseek.care.reencode._encoding import Encoding
from reelseek.care.reencode._prove import prove
from reelseek.care.reencode._source import Source
from reelseek.errors import OutputError, VideoError, VideoLengthError
from reelseek.index import FrameTable, index_video
from reelseek.index._stamp import stamp_of

REENCODE_FILE, COPY_FILE = f"{__name__}:reencode_file", f"{__name__}:copy_file"
"""The functions here, for a job."""
DATASET, WORK, SPANS, SETTINGS = "dataset", "work", "episodes.json", "settings.json"
"""In the partial folder: the new dataset, files being written, where episodes begin, and what it
was begun with."""
TOKEN = "token"  # noqa: S105 - no secret: what tells two folders of one name apart
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where a video comes from and goes to."""

    source: str
    """The dataset's video."""
    target: Path
    """The new one."""
    work: Path
    """The folder for what isn't finished."""
    token: str
    """That of the partial folder for which it is made."""
    num_rows: int
    """Rows of the episodes whose pictures it holds."""
    spans: tuple[tuple[float, int], ...]
    """For a file that holds several episodes: when each begins, in seconds, and its length."""


def reencode_file(
    key: str,
    *,
    root: str,
    partial: str,
    token: str,
    fps: float,
    restamp: bool,
    encoding: dict[str, Any],
) -> dict[str, Any]:
    """Encode one video, and check the new file frame by frame.

    Args:
        key: The video's path, relative to the dataset.
        root: The dataset's folder.
        partial: The folder of the unfinished copy.
        token: What tells it from a former folder of that name.
        fps: Frames a second, as the dataset says.
        restamp: True where frame i is to appear at i/fps whatever its time was.
        encoding: ``Encoding.document()``.

    Returns:
        The facts of a FileReport, the new spans of its episodes in seconds, and what the file
        is known by: its stamp and digest.

    Raises:
        VideoError: The source can't be read whole, or the new file isn't as it was to be.
        VideoLengthError: An episode begins where no frame is, or, with ``restamp``, the frames
            aren't as many as the rows.
    """
    place, chosen = _place(key, root, partial, token), Encoding.from_document(encoding)
    table = index_video(place.source)
    clock, starts = _times(table, place, fps, restamp=restamp)
    source = Source(place.source, table, chosen)
    with _unfinished(place) as path:
        output = Output(path, chosen, source.size, source.colours(), clock)
        write_video(output, source.frames(), starts)
        proof = prove(source, output, starts)
        quality = proof.quality
        return {
            **_facts(place, table, path, clock, starts),
            "note": "; ".join(filter(None, (clock.note, source.note))),
            "num_frames": proof.num_frames,
            "num_key_frames": proof.num_key_frames,
            "psnr_db": quality.psnr_db,
            "worst_psnr_db": quality.worst_psnr_db,
            "worst_frame": quality.worst_frame,
        }


def copy_file(
    key: str, *, root: str, partial: str, token: str, fps: float, restamp: bool
) -> dict[str, Any]:
    """Put one video's frames, as they are coded, into a new container; see ``reencode_file``."""
    place = _place(key, root, partial, token)
    table = index_video(place.source)
    clock, starts = _times(table, place, fps, restamp=restamp)
    with _unfinished(place) as path:
        copied = copy_stream(place.source, table, path, clock)
        return {
            **_facts(place, table, path, clock, starts),
            "num_frames": len(copied),
            "num_key_frames": int(copied.is_key.sum()),
            "psnr_db": None,
            "worst_psnr_db": None,
            "worst_frame": None,
        }


def made_stamp(path: str | os.PathLike[str]) -> str:
    """A fingerprint of a file that was made, which stays the same when it is renamed."""
    return "-".join(map(str, stamp_of(path) or ()))


def digest_of(path: str | os.PathLike[str]) -> str:
    """A digest of a file's bytes."""
    found = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _place(key: str, root: str, partial: str, token: str) -> Place:
    spans_path = Path(partial) / SPANS
    num_rows, spans = _all_spans(str(spans_path), spans_path.stat().st_mtime_ns)[key]
    return Place(
        source=os.path.join(root, key),
        target=Path(partial) / DATASET / key,
        work=Path(partial) / WORK,
        token=token,
        num_rows=num_rows,
        spans=tuple((start, length) for start, length in spans),
    )


@functools.lru_cache(2)
def _all_spans(path: str, _mtime_ns: int) -> dict[str, tuple[int, list[list[Any]]]]:
    """Of each file: its rows, and the episodes where it holds several."""
    spans: dict[str, tuple[int, list[list[Any]]]] = json.loads(Path(path).read_text())
    return spans


def _times(
    table: FrameTable, place: Place, fps: float, *, restamp: bool
) -> tuple[Clock, list[int]]:
    """When the new frames appear, and the numbers of those that begin an episode."""
    clock = clock_of(table, fps, restamp=restamp)
    return clock, _starts_by_rows(table, place) if restamp else _starts(table, clock, place)


def _starts_by_rows(table: FrameTable, place: Place) -> list[int]:
    """The number of each episode's first frame: after all rows of the episodes before it.

    Raises:
        VideoLengthError: The frames aren't as many as the rows.
    """
    if len(table) != place.num_rows:
        raise VideoLengthError(
            f"it has {len(table)} frames, and its episodes {place.num_rows} rows: which frame is "
            "a row's can't be known without their times",
            remedy="Run `reelseek verify`, and mend that first; or leave --restamp away",
            path=place.source,
        )
    return [sum(length for _start, length in place.spans[:n]) for n in range(len(place.spans))]


def _starts(table: FrameTable, clock: Clock, place: Place) -> list[int]:
    """The number of each episode's first frame: the one that appears at its time.

    Raises:
        VideoLengthError: No frame does.
    """
    seconds = table.pts_seconds() if table.has_unique_pts else clock.seconds()
    starts = [int(np.abs(seconds - start).argmin()) for start, _length in place.spans]
    for number, (start, _length) in zip(starts, place.spans, strict=True):
        if abs(seconds[number] - start) > 0.5 / clock.rate:
            raise VideoLengthError(
                f"an episode begins at {start:.6f} s by meta/episodes, and the video's "
                f"{len(table)} frames are from {seconds[0]:.6f} s to {seconds[-1]:.6f} s",
                remedy="Run `reelseek verify`, and copy the video or the meta folder again",
                path=place.source,
            )
    return starts


def _facts(
    place: Place, table: FrameTable, path: str, clock: Clock, starts: Sequence[int]
) -> dict[str, Any]:
    lengths = [length for _start, length in place.spans]
    return {
        "num_key_frames_before": int(table.is_key.sum()),
        "bytes_before": os.stat(place.source).st_size,
        "bytes_after": os.stat(path).st_size,
        "spans": [clock.span(*span) for span in zip(starts, lengths, strict=True)],
        "note": clock.note,
        "stamp": made_stamp(path),
        "digest": digest_of(path),
    }


@contextmanager
def _unfinished(place: Place) -> Iterator[str]:
    """A path to write to; the file is put in its place, and on the disk, if all went well."""
    place.work.mkdir(parents=True, exist_ok=True)
    path = place.work / f"{secrets.token_hex(8)}.mp4"
    try:
        yield str(path)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        _check_token(place)
        place.target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place.target)
    except VideoError as exc:
        if exc.path == str(path):  # which is gone: what it was made of is what can be looked at
            exc.path = place.source
        raise
    finally:
        path.unlink(missing_ok=True)


def _check_token(place: Place) -> None:
    """OutputError where the folder for which a video was made is gone, or another one's by now.

    A task of a run that was killed may live on, and must not write into what followed.
    """
    path = place.work.parent / SETTINGS
    try:
        token = json.loads(path.read_text()).get(TOKEN)
    except (FileNotFoundError, ValueError):
        token = None
    if token != place.token:
        raise OutputError(
            "the unfinished copy for which the video was made is there no more",
            remedy="Nothing is to be done: what followed it makes its own",
            path=place.work.parent,
        )
