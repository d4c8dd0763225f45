"""An executor without processes, and tiny datasets encoded once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from reelseek.care.jobs._item import do_item
from reelseek.care.jobs._journal import Entry, append
from reelseek.care.jobs._work import Work
from reelseek.care.reencode import Encoding, reencode_dataset
from tests.datasets import makers

INDEX = "meta/reelseek/index.bin"
"""Holds the videos' times of change, which differ."""
KINDS = {"v2.1": makers.make_v21, "v3.0": makers.make_v30, "gr00t": makers.make_gr00t}
AV1 = Encoding("av1", 2, preset="11")


class Inline:
    """Works in this process."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        """What it was asked for."""

    def entries(self, work: Work) -> Iterator[Entry]:
        job = work.job
        for item in work.todo:
            self.keys.append(item.key)
            entry = do_item(job.function, job.arguments, item.key, item.stamp, work.run, "")
            append(work.results("inline"), entry)
            yield entry

    def logs(self, work: Work) -> str:
        return ""


def contents(root: Path) -> dict[str, str]:
    """A digest of each file of a folder, by its path."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and str(path.relative_to(root)) != INDEX
    }


@pytest.fixture
def inline() -> Inline:
    """An executor that works in this process."""
    return Inline()


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A dataset of each kind; not to be changed."""
    folder = tmp_path_factory.mktemp("sources")
    return {kind: make(folder / kind) for kind, make in KINDS.items()}


@pytest.fixture(scope="session")
def encoded(sources: dict[str, Path]) -> dict[str, Path]:
    """The same in AV1, a key frame every other frame; not to be changed."""
    found = {kind: root.with_name(f"{root.name}_av1") for kind, root in sources.items()}
    for kind, root in sources.items():
        reencode_dataset(root, found[kind], AV1, executor=Inline())
    return found
