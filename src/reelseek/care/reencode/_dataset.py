"""A dataset's videos encoded anew, or copied into new containers: a new dataset beside it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import reelseek
from reelseek.care.jobs import (
    Executor,
    Item,
    Job,
    Summary,
    executor_from_options,
    run_job,
    stamp_of,
)
from reelseek.care.reencode._encoding import Encoding
from reelseek.care.reencode._faults import told_of_place
from reelseek.care.reencode._file import COPY_FILE, REENCODE_FILE, SPANS, digest_of
from reelseek.care.reencode._meta import new_info, write_episode_times, write_json
from reelseek.care.reencode._partial import Partial, check_place, check_room
from reelseek.care.reencode._report import Failure, FileReport, ReencodeReport
from reelseek.care.reencode._sample import estimated_bytes
from reelseek.care.reencode._seek import Spread, Stretch, time_in_turn
from reelseek.care.reencode._source import check_pyav
from reelseek.care.reencode._tree import OtherFile, copy_other, drop_others, other_files
from reelseek.care.reencode._videos import DatasetVideo, videos_of
from reelseek.datasets import Dataset, open_dataset
from reelseek.errors import DatasetError, QualityError, ReelseekError, VideoError
from reelseek.index import build_index

MIN_PSNR_DB = 30.0
"""Below this a video differs visibly from its source."""
SEEK_FILES, SEEK_READS = 3, 15
"""Videos whose random reads are timed at the end, and reads of each."""
WORST_BELOW_DB = 10.0
"""How much further than that a single frame may be."""
COPY, RESTAMP = "--copy", " --restamp"
INFO = os.path.join("meta", "info.json")
DEPTH = ("is_depth_map", "video.is_depth_map")
"""How info.json says that a camera's pictures are distances."""
PROVENANCE = os.path.join("meta", "reelseek", "reencode.json")
"""What the new dataset's videos were made by."""

Tell = Callable[[int, int], None]
"""(videos done, videos in all)."""


def reencode_dataset(
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    encoding: Encoding | None,
    *,
    restamp: bool = False,
    depth_maps: bool = False,
    min_psnr_db: float = MIN_PSNR_DB,
    follow_links: bool = False,
    executor: Executor | None = None,
    tell: Tell | None = None,
) -> ReencodeReport:
    """Write a dataset again, with its videos encoded another way.

    The new dataset is complete and of the same format: frames, their numbers and all other files
    stay. It is made in ``OUT.partial``, every video in it is checked frame by frame, and it is
    renamed to OUT when all of it is there. Killed at any point, the same call goes on from there.

    Args:
        root: The dataset; it isn't changed.
        out: The new dataset's folder, which must not exist.
        encoding: How to encode; None copies the coded frames into new containers, and proves
            that every decoded frame is the same.
        restamp: Whether frame i of every episode goes to i/fps of ``info.json`` whatever its
            time was. A video whose frames aren't as many as its rows is then a failure.
        depth_maps: Whether depth maps too may be encoded, whose values then change.
        min_psnr_db: The least PSNR of a video's frames against what was encoded.
        follow_links: Whether links in the dataset may lead out of it, as in a hub's cache.
        executor: Where to work; None takes processes of this machine.
        tell: Is told how many videos are done.

    Returns:
        The report. Where it lists failures, OUT isn't there; call again once they are mended.

    Raises:
        OutputError: OUT exists, or has no room, or is in the dataset or the reverse.
        QualityError: A video's PSNR is below the floor.
        DatasetError: The dataset can't be read, is incomplete, or has depth maps.
        DependencyError: PyAV is older than 17.
    """
    check_pyav()
    started = time.monotonic()
    source, target = Path(os.path.abspath(root)), Path(os.path.abspath(out))
    partial = Partial(target)
    settings = {
        "dataset": os.path.realpath(source),
        "options": (COPY if encoding is None else encoding.command_options()) + RESTAMP * restamp,
        "version": reelseek.__version__,
    }
    if (report := partial.finished(settings)) is not None:
        return report
    check_place(source, target)
    dataset = open_dataset(source, output="numpy")
    videos = videos_of(dataset)
    if not videos:
        raise DatasetError("it has no videos", remedy="Copy it as it is", path=source)
    if encoding is not None and not depth_maps:
        _check_no_depth(dataset, videos)
    others = other_files(source, [video.key for video in videos], follow_links=follow_links)
    with partial.opened(settings), closing(dataset), told_of_place(partial.path):
        run = _Run(dataset, partial, encoding, restamp, min_psnr_db, videos, others)
        return run.run(executor or executor_from_options("local"), tell, started)


@dataclass(slots=True)
class _Run:
    """One run, while it holds the partial folder."""

    dataset: Dataset
    partial: Partial
    encoding: Encoding | None
    restamp: bool
    min_psnr_db: float
    videos: list[DatasetVideo]
    others: list[OtherFile]
    files: dict[str, FileReport] = field(default_factory=dict)
    spans: dict[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """By video, of its episodes: when each begins and ends in the new file, in seconds."""
    proven: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By video: the stamp and digest of the new file that was checked."""
    failures: list[Failure] = field(default_factory=list)

    def run(self, executor: Executor, tell: Tell | None, started: float) -> ReencodeReport:
        """Do what is left to do."""
        self._check_room()
        for other in self.others:
            copy_other(other, self.dataset.root, self.partial.dataset, self.partial.work)
        job = self._make_videos(executor, tell)
        if self.failures:
            return self._report(started, job)
        self._write_meta()
        report = self._report(started, job, *self._seek_times())
        self._write_provenance(report)
        for key in self.proven:
            self._check_is_proven(key)
        self.partial.publish(report)
        return report

    def _check_room(self) -> None:
        expected = estimated_bytes(
            self.dataset.root, self.videos, self.encoding, self.dataset.fps, self.partial.work
        )
        expected += sum(other.num_bytes for other in self.others)
        check_room(self.partial.path, expected - self.partial.num_bytes())

    def _make_videos(self, executor: Executor, tell: Tell | None) -> Summary:
        """Have each video made, and check what came of it."""
        with closing(run_job(self._job(), executor, tell=tell)) as outcomes:
            for outcome in outcomes:
                if outcome.value is None:
                    self.failures.append(Failure(outcome.key, outcome.error))
                else:
                    self._take(outcome.key, outcome.value)
            return outcomes.summary()

    def _job(self) -> Job:
        root = self.dataset.root
        spans = {video.key: (video.num_rows, video.spans) for video in self.videos}
        write_json(self.partial.path / SPANS, spans, self.partial.work)
        arguments: dict[str, Any] = {
            "root": str(root),
            "partial": str(self.partial.path),
            "token": self.partial.token,
            "fps": self.dataset.fps,
            "restamp": self.restamp,
        }
        function = COPY_FILE
        if self.encoding is not None:
            function, arguments["encoding"] = REENCODE_FILE, self.encoding.document()
        return Job(
            name="reencode",
            function=function,
            arguments=arguments,
            items=tuple(
                Item(video.key, video.num_bytes, _stamp(video, root / video.key))
                for video in self.videos
            ),
            folder=self.partial.journal,
            needs=(str(root), str(self.partial.path)),
        )

    def _take(self, key: str, facts: dict[str, Any]) -> None:
        """Take a video's facts, if the file is there and near enough to its source."""
        facts = dict(facts)
        self.spans[key] = facts.pop("spans")
        self.proven[key] = facts.pop("stamp"), facts.pop("digest")
        file = self.files[key] = FileReport(key, **facts)
        self._check_is_proven(key)
        self._check_quality(file)

    def _check_is_proven(self, key: str) -> None:
        """ReelseekError where another file stands in the place of the one that was checked."""
        path, (stamp, digest) = self.partial.dataset / key, self.proven[key]
        if stamp_of(path) != stamp and not (path.is_file() and digest_of(path) == digest):
            raise ReelseekError(
                "the video was made, and isn't there any more as it was",
                remedy=f"Run `{self.partial.removal}`, and the same command again",
                path=path,
            )

    def _check_quality(self, file: FileReport) -> None:
        if file.psnr_db is None or file.worst_psnr_db is None or self.encoding is None:
            return
        least, least_of_one = self.min_psnr_db, self.min_psnr_db - WORST_BELOW_DB
        if file.psnr_db >= least and file.worst_psnr_db >= least_of_one:
            return
        crf = max(0, self.encoding.quality - 6)
        better = f"again with --crf {crf}" if self.encoding.quality else "again with --preset slow"
        if not self.encoding.quality and self.encoding.codec == "av1":
            better = "again with --preset 4"
        raise QualityError(
            f"encoded as {self.encoding}, its PSNR is {file.psnr_db:.1f} dB over all frames and "
            f"{file.worst_psnr_db:.1f} dB in frame {file.worst_frame}; the floor is {least:g} dB, "
            f"and {least_of_one:g} dB for one frame",
            remedy=f"Run `{self.partial.removal}`, and {better}; or accept it by --min-psnr",
            path=self.dataset.root / file.key,
        )

    def _write_meta(self) -> None:
        """Put right what the dataset says of its videos, and index them."""
        target, work = self.partial.dataset, self.partial.work
        if self.encoding is not None:
            cameras = sorted({video.camera for video in self.videos})
            info = new_info(self.dataset.info.raw, cameras, self.encoding)
            write_json(target / INFO, info, work)
        times: dict[str, dict[int, Sequence[float]]] = {}
        for video in self.videos:
            of_camera = times.setdefault(video.camera, {})
            of_camera.update(zip(video.episodes, self.spans[video.key], strict=True))
        write_episode_times(target, times, work)
        drop_others(target, [f.key for f in self.others] + [video.key for video in self.videos])
        report = build_index(target)
        Path(report.path + ".lock").unlink(missing_ok=True)
        if report.failures:
            raise ReelseekError(
                "a new video can't be indexed", path=report.failures[0].path,
                detail=report.failures[0].message, remedy="Please report it",
            )  # fmt: skip

    def _write_provenance(self, report: ReencodeReport) -> None:
        document = report.document()
        wanted = (
            "root",
            "encoding",
            "restamp",
            "bytes_before",
            "bytes_after",
            "num_frames",
            "psnr_db",
        )
        write_json(
            self.partial.dataset / PROVENANCE,
            {
                "schema": "reelseek.reencoded/1",
                "reelseek": reelseek.__version__,
                **{name: document[name] for name in wanted},
            },
            self.partial.work,
        )

    def _seek_times(self) -> tuple[Spread | None, Spread | None]:
        """What random reads cost in a few of the videos, before and after.

        None where none of them could be read at random before.
        """
        before: list[float] = []
        after: list[float] = []
        rng = np.random.default_rng(0)
        places = np.linspace(0, len(self.videos) - 1, min(SEEK_FILES, len(self.videos)))
        for place in dict.fromkeys(places.astype(int).tolist()):
            key = self.videos[place].key
            pair = [Stretch(folder / key) for folder in (self.dataset.root, self.partial.dataset)]
            try:
                times = time_in_turn(pair, self.files[key].num_frames, SEEK_READS, rng)
            except VideoError:
                continue  # such as one whose size changes on the way: no reader takes it
            before += times[0]
            after += times[1]
        return (Spread.of(before), Spread.of(after)) if before else (None, None)

    def _report(
        self, started: float, job: Summary,
        before: Spread | None = None, after: Spread | None = None,
    ) -> ReencodeReport:  # fmt: skip
        return ReencodeReport(
            root=str(self.dataset.root),
            out=str(self.partial.out),
            encoding=self.encoding,
            restamp=self.restamp,
            files=tuple(self.files[key] for key in sorted(self.files)),
            failures=tuple(sorted(self.failures, key=lambda failure: failure.key)),
            num_other_files=len(self.others),
            seek_ms_before=before,
            seek_ms_after=after,
            seconds=time.monotonic() - started,
            job=job,
        )


def _stamp(video: DatasetVideo, path: Path) -> str:
    """Fingerprint of a video, and of what ``meta`` says of its episodes."""
    said = json.dumps([video.num_rows, video.spans]).encode()
    return f"{stamp_of(path)}-{hashlib.blake2b(said, digest_size=8).hexdigest()}"


def _check_no_depth(dataset: Dataset, videos: Sequence[DatasetVideo]) -> None:
    """DatasetError where a camera's pictures are distances, not colours."""
    features = dataset.info.raw["features"]
    for camera in sorted({video.camera for video in videos}):
        said = [features[camera].get(name) for name in ("info", "video_info")]
        if any(block.get(name) for block in said if isinstance(block, dict) for name in DEPTH):
            raise DatasetError(
                f"the pictures of {camera} are depth maps, and encoding would change distances",
                remedy="Keep them with --copy; or pass --depth-maps if such a loss is fine",
                path=dataset.root,
            )
