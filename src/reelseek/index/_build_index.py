"""Building the index of a dataset or of a single video.

Only what is new or changed is looked into. One build at a time writes, under a lock; others wait,
and then find nothing to do. A build that is killed leaves the index as it was, and a partial file
from which the next one goes on.
"""

from __future__ import annotations

import functools
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from reelseek.errors import DatasetNotFoundError, IndexFileError, VideoNotFoundError
from reelseek.index._location import writable_path
from reelseek.index._sidecar import Sidecar
from reelseek.index._sidecar_writer import SidecarWriter
from reelseek.index._stamp import stamp_of
from reelseek.index._video_record import RecordHead, VideoRecord
from reelseek.index._worker import INDEX_FILES, index_file
from reelseek.workers import answers_of, num_cpus

VIDEO_SUFFIXES = (
    ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".ts", ".mpg", ".mpeg", ".flv", ".ivf", ".nut"
)  # fmt: skip
"""Of the files that are taken for videos."""
CHECKPOINT_FILES = 500
CHECKPOINT_SECONDS = 10.0
"""After so many files or so much time, what was found is handed to the disk."""
TOGETHER_FILES = 32
TOGETHER_BYTES = 8 * 1024 * 1024
"""Of the files that one call of a process indexes: their bytes are in memory at once."""
ALONE_BYTES = 1024 * 1024
"""Of a file for which a call is little beside what it takes."""
TURNS = 4
"""Calls that each of several processes gets at least, where there are files enough."""

Tell = Callable[[int, int], None]
"""(files done, files in all)."""
IndexFiles = Callable[[str, list[bytes]], Iterator[tuple[bytes, VideoRecord | str]]]
"""(folder, files below it) -> each file, with its record or what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that can't be indexed."""

    path: str
    """The file."""
    message: str
    """What is wrong with it, and what to do."""


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a build did."""

    path: str
    """Where the index is."""
    num_files: int
    """Videos in the index."""
    num_frames: int
    """Their frames."""
    num_bytes: int
    """The index's size."""
    num_indexed: int
    """Videos that were looked into now."""
    num_dropped: int
    """Videos of the former index that are gone."""
    failures: tuple[Failure, ...]
    """Videos that can't be indexed; they are tried again by the next build."""
    seconds: float
    """How long it took, waiting for other builds included."""

    @property
    def bytes_per_frame(self) -> float:
        """The index's size for each frame of the videos."""
        return self.num_bytes / max(1, self.num_frames)


def build_index(
    owner: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    index_path: str | os.PathLike[str] | None = None,
    tell: Tell | None = None,
    tell_waiting: Callable[[], None] | None = None,
    index_files: IndexFiles | None = None,
) -> IndexReport:
    """Index a dataset's videos, or a single video.

    Args:
        owner: A dataset's folder, or a video file.
        jobs: Processes; None takes one for each CPU that this process may use.
        index_path: Where to write; None takes ``<dataset>/meta/reelseek/index.bin`` or
            ``<video>.reelseek``, or the user's cache folder where that is read-only.
        tell: Is told how many of the files are done.
        tell_waiting: Is told when another build of the same index is waited for.
        index_files: What looks into the files; None takes processes of this machine.

    Raises:
        DatasetNotFoundError: The folder is no dataset.
        VideoNotFoundError: There is neither a folder nor a file.
        IndexFileError: The index can't be written.
    """
    started = time.monotonic()
    owner = os.path.abspath(os.fspath(owner))
    files = _files_of(owner)
    folder = owner if Path(owner).is_dir() else str(Path(owner).parent)
    try:
        path = writable_path(owner) if index_path is None else Path(index_path).absolute()
        with _partial_of(path, folder == owner, tell_waiting) as partial:
            build = _Build(folder, path, partial, files, tell or _tell_nobody)
            here = functools.partial(_in_processes, jobs=num_cpus() if jobs is None else jobs)
            return build.run(index_files or here, started)
    except OSError as exc:
        raise IndexFileError(
            "the index can't be written",
            remedy="Free some space, or name a folder that can be written by REELSEEK_CACHE",
            path=exc.filename or owner,
            detail=exc.strerror or str(exc),
        ) from exc


def _in_processes(
    folder: str, files: list[bytes], *, jobs: int
) -> Iterator[tuple[bytes, VideoRecord | str]]:
    """Several files in a call; those of a call that a process died of are tried again, alone."""
    left: list[bytes] = []
    calls = [(folder, together) for together in groups_of(folder, files, jobs)]
    for answer in answers_of(INDEX_FILES, calls, jobs, retries=0):
        together = calls[answer.position][1]
        if answer.death:
            left += together
        else:
            yield from zip(together, answer.value, strict=True)
    for answer in answers_of(INDEX_FILES, [(folder, [file]) for file in left], jobs):
        died = f"the process that indexed it {answer.death}"
        yield left[answer.position], died if answer.death else answer.value[0]


def groups_of(folder: str, files: list[bytes], jobs: int) -> list[list[bytes]]:
    """Files that are indexed together: few enough that all processes have as much to do."""
    most = TOGETHER_FILES
    if jobs > 1:
        most = max(1, min(most, len(files) // (jobs * TURNS)))
    groups: list[list[bytes]] = []
    room = 0
    for file in files:
        size = _size_of(os.path.join(folder, os.fsdecode(file)))
        is_large = size >= ALONE_BYTES
        if not groups or len(groups[-1]) >= most or size > room or is_large:
            groups.append([])
            room = TOGETHER_BYTES
        groups[-1].append(file)
        room = 0 if is_large else room - size
    return groups


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:  # whoever indexes it says what is wrong
        return 0


def list_videos(root: str) -> list[bytes]:
    """The paths of a folder's videos, relative to it, sorted; hidden folders are left out."""
    found: list[bytes] = []
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(root, followlinks=True):
        status = os.stat(folder)
        key = (status.st_dev, status.st_ino)
        if key in seen:  # a link to a folder above it
            folders.clear()
            continue
        seen.add(key)
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = os.path.relpath(folder, root)
        for name in names:
            if name.lower().endswith(VIDEO_SUFFIXES):
                found.append(os.fsencode(os.path.normpath(os.path.join(below, name))))
    return sorted(found)


def _files_of(owner: str) -> list[bytes]:
    if not Path(owner).is_dir():
        if not Path(owner).exists():
            raise VideoNotFoundError(
                "neither a dataset's folder nor a video",
                remedy="Check the path, and that the disk or NAS is mounted on this machine",
                path=owner,
            )
        return [os.fsencode(Path(owner).name)]
    if not (Path(owner) / "meta" / "info.json").is_file():
        raise DatasetNotFoundError(
            "the folder has no meta/info.json",
            remedy="Give the dataset's own folder, or a video file",
            path=owner,
        )
    return list_videos(owner)


@dataclass(slots=True)
class _Build:
    """One build, while it holds the lock."""

    folder: str
    path: Path
    partial: Path
    files: list[bytes]
    tell: Tell
    heads: dict[bytes, RecordHead] = field(default_factory=dict)
    """The videos that the index will hold."""
    failures: list[Failure] = field(default_factory=list)
    _old: Sidecar | None = None
    _writer: SidecarWriter | None = None
    _old_paths: set[bytes] = field(default_factory=set)
    """The videos of the former index."""

    def run(self, index_files: IndexFiles, started: float) -> IndexReport:
        """Index what is new or changed."""
        is_whole = self._open_old()
        if self.partial.exists():
            self._resume()
        todo = [file for file in self.files if file not in self.heads]
        dropped = self._old_paths.difference(self.files)
        if dropped or not is_whole:
            self._open_writer()
        try:
            self._index(todo, index_files)
            size = self._old.num_bytes if self._old is not None else 0
            if self._writer is not None:
                size = self._writer.finish()
        finally:
            if self._writer is not None:
                self._writer.close()
        return IndexReport(
            path=str(self.path),
            num_files=len(self.heads),
            num_frames=sum(head.counts[0] for head in self.heads.values()),
            num_bytes=size,
            num_indexed=len(todo) - len(self.failures),
            num_dropped=len(dropped),
            failures=tuple(self.failures),
            seconds=time.monotonic() - started,
        )

    def _open_old(self) -> bool:
        """Take over what is fresh of the former index; False where that isn't whole."""
        try:
            self._old = Sidecar(str(self.path), self.folder)
        except IndexFileError:
            return False
        wanted = set(self.files)
        for head, _record in self._old.records():
            self._old_paths.add(head.path)
            if head.path in wanted and self._is_fresh(head):
                self.heads[head.path] = head
        return len(self._old_paths) == len(self._old) and self._old.has_whole_directory()

    def _resume(self) -> None:
        """Take over what a killed build left."""
        writer = self._open_writer()
        wanted = set(self.files)
        for path, head in writer.resumed.items():
            if path in wanted and self._is_fresh(head):
                self.heads[path] = head
            elif path not in self.heads:
                writer.drop(path)

    def _open_writer(self) -> SidecarWriter:
        """Begin a new file, with what is kept of the former one."""
        if self._writer is None:
            self._writer = SidecarWriter(self.path, self.partial)
            resumed = self._writer.resumed
            for head, record in [] if self._old is None else self._old.records():
                if self.heads.get(head.path) == head and resumed.get(head.path) != head:
                    self._writer.add(record, head.path)
        return self._writer

    def _index(self, todo: list[bytes], index_files: IndexFiles) -> None:
        done = len(self.files) - len(todo)
        self.tell(done, len(self.files))
        saved_at = time.monotonic()
        for count, (file, found) in enumerate(self._results(todo, index_files), 1):
            self._take(file, found)
            is_due = time.monotonic() - saved_at > CHECKPOINT_SECONDS
            if self._writer is not None and (is_due or count % CHECKPOINT_FILES == 0):
                self._writer.checkpoint()
                saved_at = time.monotonic()
            self.tell(done + count, len(self.files))

    def _results(
        self, todo: list[bytes], index_files: IndexFiles
    ) -> Iterator[tuple[bytes, VideoRecord | str]]:
        if len(self.files) == 1:  # a single video isn't worth a process of its own
            return ((file, index_file(self.folder, file)) for file in todo)
        return index_files(self.folder, todo)

    def _take(self, file: bytes, found: VideoRecord | str) -> None:
        if isinstance(found, str):
            path = os.path.join(self.folder, os.fsdecode(file))
            self.failures.append(Failure(path, found.removeprefix(f"{path}: ")))
            return
        self.heads[file] = found.head()
        self._open_writer().add(found, file)

    def _is_fresh(self, head: RecordHead) -> bool:
        return stamp_of(os.path.join(self.folder, os.fsdecode(head.path))) == head.stamp


@contextmanager
def _partial_of(
    path: Path, is_shared: bool, tell_waiting: Callable[[], None] | None
) -> Iterator[Path]:
    """The file to write before it becomes the index.

    A dataset's stays for the next build, and is one builder's at a time. A single video's is
    quickly made: each builder has its own, and no lock file stays beside the video.
    """
    if not is_shared:
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        try:
            yield partial
        finally:
            partial.unlink(missing_ok=True)
        return
    with _locked(path, tell_waiting):
        yield path.with_name(path.name + ".partial")


@contextmanager
def _locked(path: Path, tell_waiting: Callable[[], None] | None) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(path.name + ".lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if tell_waiting is not None:
            tell_waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _tell_nobody(_done: int, _total: int) -> None:
    pass
