"""A sound tiny dataset of each version, and handles to damage copies of it."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from tests.datasets import makers
from tests.datasets.makers import TOP, WRIST, Spec

SPEC = Spec(lengths=(12, 10, 12, 8, 12), fps=10)
LAST = 4
"""The episode that is damaged: in v3, too, it has files of its own."""
MIDDLE = 2
"""Another one, with others after it: in v3 its rows are amid a file, its video is its own."""
VERSIONS = ("v2.1", "v3.0")


@dataclass(frozen=True, slots=True)
class Tiny:
    """A tiny dataset to be damaged."""

    root: Path
    version: str
    episode: int = LAST
    """The one to be damaged."""

    @property
    def is_v3(self) -> bool:
        return self.version == "v3.0"

    def video(self, camera: str = TOP, episode: int | None = None) -> Path:
        """The file with an episode's frames."""
        episode = self.episode if episode is None else episode
        if self.is_v3:
            return makers.v3_video(self.root, camera, max(0, episode - 1))
        return makers.v2_video(self.root, camera, episode)

    def data(self, episode: int | None = None) -> Path:
        """The file with an episode's rows."""
        episode = self.episode if episode is None else episode
        if self.is_v3:
            return makers.v3_data(self.root, int(episode == LAST))
        return makers.v2_data(self.root, episode)

    @property
    def tasks(self) -> Path:
        return self.root / "meta" / ("tasks.parquet" if self.is_v3 else "tasks.jsonl")

    @property
    def episodes(self) -> Path:
        """The meta file with the episode."""
        if self.is_v3:
            return makers.v3_episodes(self.root, int(self.episode == LAST))
        return self.root / "meta/episodes.jsonl"

    def write_video(self, data: bytes, camera: str = TOP) -> None:
        self.video(camera).write_bytes(data)

    def change_column(self, name: str, change: Callable[[NDArray[Any]], Any]) -> None:
        """Change a column of the episode's rows."""
        place = self.rows

        def changed(table: pa.Table) -> pa.Table:
            kind = table.schema.field(name).type
            values = table[name].to_pylist()
            values[place] = np.asarray(change(np.array(values[place]))).tolist()
            return makers.with_column(table, name, pa.array(values, kind))

        makers.change_rows(self.data(), changed)

    @property
    def rows(self) -> slice:
        """Where the episode's rows are in their file."""
        first = SPEC.starts[self.episode] if self.is_v3 and self.episode != LAST else 0
        return slice(first, first + SPEC.lengths[self.episode])

    def drop_row(self, number: int) -> None:
        """Take one of the episode's rows away."""

        def without(table: pa.Table) -> pa.Table:
            at = range(table.num_rows)[self.rows][number]
            return pa.concat_tables([table.slice(0, at), table.slice(at + 1)])

        makers.change_rows(self.data(), without)

    def change_episode(self, **values: Any) -> None:
        """Change what meta says of the episode; v2 has no more than the names it knows."""
        if self.is_v3:
            lines = pq.read_table(self.episodes, partitioning=None).to_pylist()
        else:
            lines = makers.read_lines(self.episodes)
        (line,) = (line for line in lines if line["episode_index"] == self.episode)
        line |= {name: value for name, value in values.items() if name in line}
        if self.is_v3:
            pq.write_table(pa.Table.from_pylist(lines), self.episodes)
        else:
            makers.write_lines(self.episodes, lines)

    def write_tasks(self, numbers: list[int], texts: list[str]) -> None:
        if self.is_v3:
            pq.write_table(pa.table({"task_index": numbers, "task": texts}), self.tasks)
        else:
            tasks = zip(numbers, texts, strict=True)
            makers.write_lines(self.tasks, [{"task_index": n, "task": text} for n, text in tasks])

    def change_info(self, change: Callable[[dict[str, Any]], Any]) -> None:
        makers.change_info(self.root, change)


def bars(count: int, first: int = 30) -> list[NDArray[np.uint8]]:
    """Pictures that show successive numbers."""
    return [makers.picture(first + number) for number in range(count)]


def on_grid(count: int, fps: float = SPEC.fps, start: float = 0.0) -> list[float]:
    """Times of evenly spaced frames, in seconds."""
    return [start + number / fps for number in range(count)]


def make_sound(root: Path, version: str) -> Tiny:
    """A dataset in which nothing is wrong."""
    if version == "v3.0":
        makers.make_v30(
            root, SPEC, data_files=((0, 1, 2, 3), (4,)), video_files=((0, 1), (2,), (3,), (4,)),
            meta_files=((0, 1, 2, 3), (4,)),
        )  # fmt: skip
    else:
        makers.make_v21(root, SPEC)
    tiny = Tiny(root, version)
    tiny.write_tasks([0, 1], list(makers.TASKS))
    if version == "v3.0":
        makers.write_tasks_parquet(tiny.tasks)
    for camera in (TOP, WRIST):
        for episode in range(len(SPEC.lengths)):
            again = bars_again(tiny, camera, episode)
            tiny.video(camera, episode).write_bytes(again)
    return tiny


def bars_again(tiny: Tiny, camera: str, episode: int, codec: str = "libx264") -> bytes:
    """The video with an episode's frames, made as the damaged ones are."""
    episodes = [0, 1] if tiny.is_v3 and episode < 2 else [episode]
    count = sum(SPEC.lengths[number] for number in episodes)
    return sound_video(count, makers.shown(camera, SPEC.starts[episodes[0]]), codec)


@functools.cache
def sound_video(count: int, first: int = 30, codec: str = "libx264") -> bytes:
    """Bars on the grid."""
    return makers.pictures_video(bars(count, first), on_grid(count), codec=codec)


@pytest.fixture(scope="session")
def sound_roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A sound dataset of each version; not to be changed."""
    folder = tmp_path_factory.mktemp("sound")
    return {version: make_sound(folder / version, version).root for version in VERSIONS}


@pytest.fixture(params=VERSIONS)
def tiny(request: pytest.FixtureRequest, sound_roots: dict[str, Path], tmp_path: Path) -> Tiny:
    """A sound dataset of each version in turn, to be damaged."""
    root = tmp_path / "dataset"
    shutil.copytree(sound_roots[request.param], root)
    return Tiny(root, request.param)


@pytest.fixture
def tiny_v3(sound_roots: dict[str, Path], tmp_path: Path) -> Tiny:
    """A sound v3.0 dataset, to be damaged."""
    root = tmp_path / "dataset"
    shutil.copytree(sound_roots["v3.0"], root)
    return Tiny(root, "v3.0")
