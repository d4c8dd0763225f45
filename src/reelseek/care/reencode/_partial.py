"""The unfinished copy of a dataset: a folder beside the new one, which becomes it at the end.

::

    OUT.partial/
        README.txt      what the folder is
        settings.json   what it was begun with, and a token that tells it from others before it
        episodes.json   where episodes begin in shared videos
        journal/        which videos are done
        lock            held by the run that works on it
        work/           files being written
        dataset/        the new dataset, renamed to OUT when all of it is there
        report.json     what came of it, from just before that
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reelseek.care.reencode._faults import told_of_place
from reelseek.care.reencode._file import DATASET, SETTINGS, SPANS, TOKEN, WORK
from reelseek.care.reencode._meta import write_json
from reelseek.care.reencode._report import ReencodeReport
from reelseek.errors import OutputError

SUFFIX = ".partial"
POOR_ESTIMATE = 2
"""How many times too high the bytes that are needed may be estimated. A disk that is full before
the end stops the work, which then goes on from there."""
README = """An unfinished copy of a dataset, made by `reelseek reencode`. It is no dataset.

Run the same command again to go on from here, or delete the folder.
"""

README_NAME, JOURNAL, REPORT, LOCK = "README.txt", "journal", "report.json", "lock"
OURS = frozenset({README_NAME, SETTINGS, SPANS, JOURNAL, WORK, DATASET, REPORT, LOCK})
MARKS = frozenset({README_NAME, SETTINGS, LOCK})
"""Of these one at least is there from the start."""


class Partial:
    """The folder ``OUT.partial``, while one run works on it."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.path = out.with_name(out.name + SUFFIX)
        self.dataset = self.path / DATASET
        self.work = self.path / WORK
        self.journal = self.path / JOURNAL
        self._settings = self.path / SETTINGS
        self._report = self.path / REPORT

    @contextmanager
    def opened(self, settings: Mapping[str, Any]) -> Iterator[None]:
        """Make the folder, or take over one that was begun with the same settings.

        Raises:
            OutputError: It was begun with others, another run is at work on it, it is something
                else, or it can't be made.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / LOCK)
        try:
            with told_of_place(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                self._check_is_ours()
                lock.acquire(blocking=False)
        except Timeout as exc:
            raise OutputError(
                "another run is at work on it", remedy="Wait for it, or stop it", path=self.path
            ) from exc
        try:
            with told_of_place(self.path):
                self._begin(_as_json(settings))
            yield
        finally:
            lock.release()

    def finished(self, settings: Mapping[str, Any]) -> ReencodeReport | None:
        """What came of a run with these settings that was killed after its last step but one.

        None where there was none.
        """
        if not self._report.is_file() or not self.out.is_dir() or self.dataset.exists():
            return None
        if self._others(_as_json(settings)):
            return None
        report = ReencodeReport.from_document(json.loads(self._report.read_text()))
        self._delete()
        return report

    def publish(self, report: ReencodeReport) -> None:
        """Make the new dataset of it."""
        write_json(self._report, report.document(), self.work)
        check_is_free(self.out)
        self.dataset.rename(self.out)
        parent = os.open(self.out.parent, os.O_RDONLY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)
        self._delete()

    @property
    def removal(self) -> str:
        """The command that deletes it."""
        return shlex.join(["rm", "-r", str(self.path)])

    def num_bytes(self) -> int:
        """What is there already."""
        return sum(
            os.lstat(os.path.join(folder, name)).st_size
            for folder, _folders, names in os.walk(self.dataset)
            for name in names
        )

    @property
    def token(self) -> str:
        """What tells it from others of that name, before it and after it."""
        return str(self._said()[TOKEN])

    def _check_is_ours(self) -> None:
        """OutputError where somebody else keeps something in the folder."""
        there = {path.name for path in self.path.iterdir()}
        if there and not (there <= OURS and there & MARKS and self._is_marked()):
            raise OutputError(
                "a folder of that name is there, and is no unfinished copy of a dataset",
                remedy=f"Move it away, or name another folder than {self.out.name}",
                path=self.path,
            )

    def _is_marked(self) -> bool:
        """True where the files that tell whose it is are ours, as far as they are there."""
        readme = self.path / README_NAME
        is_ours = not readme.exists() or README.startswith(readme.read_text(errors="replace"))
        return is_ours and (not self._settings.exists() or "options" in self._said())

    def _begin(self, settings: dict[str, Any]) -> None:
        if self._settings.is_file() and (other := self._others(settings)):
            raise OutputError(
                f"an unfinished copy stands there, begun otherwise: {'; '.join(other)}",
                remedy=f"Go on with what it was begun with, or run `{self.removal}`",
                path=self.path,
            )
        shutil.rmtree(self.work, ignore_errors=True)  # what a killed run was writing
        for folder in (self.work, self.dataset):
            folder.mkdir(exist_ok=True)
        if TOKEN not in self._said():
            (self.path / README_NAME).write_text(README)
            begun = {**settings, TOKEN: secrets.token_hex(8)}
            write_json(self._settings, begun, self.work)

    def _others(self, settings: Mapping[str, Any]) -> list[str]:
        """What it was begun with otherwise."""
        before = self._said()
        return [
            f"{name} {before.get(name)}, not {value}"
            for name, value in settings.items()
            if before.get(name) != value
        ]

    def _said(self) -> dict[str, Any]:
        try:
            said = json.loads(self._settings.read_text())
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    def _delete(self) -> None:
        """Delete it, last what tells a run that follows that all is done."""
        last = (REPORT, SETTINGS, LOCK)
        for name in sorted(OURS - set(last)):
            _remove(self.path / name)
        for name in last:
            _remove(self.path / name)
        _remove(self.path)


def _remove(path: Path) -> None:
    """Delete a file or a folder; what can't be deleted is left."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def _as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """As they are read again."""
    read: dict[str, Any] = json.loads(json.dumps(dict(settings)))
    return read


def check_place(root: Path, out: Path) -> None:
    """Check that a dataset can be written beside another.

    Raises:
        OutputError: One folder is in the other, or something stands there already.
    """
    real_root, real_out = Path(os.path.realpath(root)), Path(os.path.realpath(out))
    if real_out == real_root or real_root in real_out.parents or real_out in real_root.parents:
        raise OutputError(
            f"it and the dataset {root} lie in one another",
            remedy="Name a folder beside the dataset: it is never changed in place",
            path=out,
        )
    check_is_free(out)


def check_is_free(out: Path) -> None:
    """OutputError where something of that name exists."""
    if os.path.lexists(out):
        raise OutputError(
            "it exists already", remedy="Name another folder, or delete this one", path=out
        )


def check_room(folder: Path, needed: int) -> None:
    """OutputError where the disk lacks so many bytes, even if it is a poor estimate."""
    free = shutil.disk_usage(folder).free
    if free * POOR_ESTIMATE < needed:
        raise OutputError(
            f"the disk has {free:,} bytes left, and the new dataset takes about {needed:,} more",
            remedy="Free some space, write to another disk, or choose a higher --crf or --gop",
            path=folder,
        )
