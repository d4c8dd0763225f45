"""The dataset: samples by number, batches of them, and where their frames are."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._deltas import Deltas
from reelseek.datasets._episode_videos import EpisodeVideos, VideoOptions
from reelseek.datasets._frames import KeptFrames
from reelseek.datasets._images import read_images
from reelseek.datasets._keys import CameraKey, Keys, selected
from reelseek.datasets._memory import NewPixels, new_pixels
from reelseek.datasets._modality import Modality
from reelseek.datasets._pool import DecodePool, Task
from reelseek.datasets._records import DatasetInfo, Episode, Episodes, Feature, Layout, Location
from reelseek.datasets._rows import Rows, RowStore
from reelseek.datasets._statistics import QUANTILES, Statistics, statistics_of
from reelseek.datasets._values import Place, read_values, window_rows
from reelseek.errors import DependencyError, FeatureNotFoundError, SampleIndexError
from reelseek.index import DatasetIndex
from reelseek.types import Pixels
from reelseek.video import Video

Output = Literal["torch", "numpy"]
Sample = dict[str, Any]

OWN_ROW = np.zeros(1, np.int64)
"""The offsets of a camera that has none."""


@dataclass(frozen=True, slots=True)
class Options:
    """How samples are made."""

    threads: int
    """Files that are decoded at once."""
    output: Output
    """What samples hold."""
    videos: VideoOptions
    """How videos are read."""


class Dataset:
    """A robot dataset as a PyTorch map-style dataset: ``len``, ``ds[i]`` and ``__getitems__``.

    Threads: safe. Fork, forkserver and spawn: works in DataLoader workers, whether or not it was
    read before; each process opens its own decoders. Pickling: metadata and options go along,
    open files don't. Nothing in it needs torch but the tensors that it returns.
    """

    def __init__(
        self,
        root: Path,
        info: DatasetInfo,
        layout: Layout,
        modality: Modality | None,
        every_key: Keys,
        sample_keys: Keys,
        deltas: Deltas,
        positions: NDArray[np.int64],
        options: Options,
    ) -> None:
        self.root = root
        self.info = info
        self.modality = modality
        self.layout = layout
        self.every_key = every_key
        self.sample_keys = sample_keys
        self._deltas = deltas
        self.positions = positions
        """(E,) the places of the episodes that samples come from, among all episodes."""
        self._options = options
        self._ends = np.cumsum(layout.episodes.lengths[positions])
        unused = {name for name, f in info.features.items() if f.dtype == "image"}
        unused -= {camera.camera for camera in sample_keys.cameras}
        self._rows = RowStore(layout, frozenset(unused))
        self.index = DatasetIndex(str(root))
        self._videos = EpisodeVideos(layout, self.index, info.fps, options.videos)
        self._pool = DecodePool(options.threads)

    @property
    def fps(self) -> float:
        """Frames a second."""
        return self.info.fps

    @property
    def device(self) -> str:
        """Where frames are decoded, and where cameras' tensors are."""
        return self._options.videos.device

    @property
    def output(self) -> Output:
        """What samples hold: ``torch`` tensors or ``numpy`` arrays."""
        return self._options.output

    @property
    def features(self) -> dict[str, Feature]:
        """Columns and cameras as ``meta/info.json`` lists them, by name."""
        return self.info.features

    @property
    def cameras(self) -> tuple[str, ...]:
        """The keys of the cameras that samples hold."""
        return tuple(camera.key for camera in self.sample_keys.cameras)

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key of a sample."""
        pads = [f"{key}_is_pad" for key in self.sample_keys.names if key in self._deltas]
        return (*self.sample_keys.names, *pads)

    @functools.cached_property
    def episodes(self) -> Episodes:
        """The episodes that samples come from, in the order of the samples."""
        every = self.layout.episodes
        if len(self.positions) == len(every):
            return every
        tasks = [every[int(position)].tasks for position in self.positions]
        return Episodes(every.indices[self.positions], every.lengths[self.positions], tasks)

    @property
    def tasks(self) -> dict[int, str]:
        """Task texts by task_index."""
        return self.layout.tasks

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> Sample:
        """The sample of this number.

        Returns:
            A dict of the dataset's keys. Cameras: (C, H, W) RGB uint8, or (T, C, H, W) for a key
            with deltas. Other keys: (D,) or (T, D), shape-[1] features 0-d; floats are float32.
            ``task``: str. For each key with deltas ``<key>_is_pad``: (T,) bool.

        Raises:
            SampleIndexError: There is no such sample.
            DatasetError: A file of the dataset is missing, damaged or disagrees with another.
            VideoError: A video can't be read.
        """
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several samples; PyTorch's DataLoader calls it with a whole batch."""
        if len(indices) == 0:
            return []
        batch = self.get_batch(indices)
        return [{key: values[b] for key, values in batch.items()} for b in range(len(indices))]

    def get_batch(self, indices: Sequence[int]) -> Sample:
        """Several samples stacked: each value has a batch dimension in front, texts are lists.

        Frames of one file are decoded in one pass, straight into the batch.

        Args:
            indices: (B,) numbers of samples; at least one. Negative ones count from the end.
        """
        return self.read_batch(indices, new_pixels=self._new_pixels)

    def read_batch(
        self,
        indices: Sequence[int] | NDArray[np.int64],
        *,
        new_pixels: NewPixels,
        kept: KeptFrames | None = None,
    ) -> Sample:
        """``get_batch`` for a loader, which has memory and frames of its own.

        Args:
            indices: (B,) numbers of samples; at least one.
            new_pixels: Makes the memory that frames are decoded into.
            kept: Frames that were decoded before; what isn't among them is decoded.
        """
        places = self._places(indices)
        if not places:
            raise ValueError("a batch needs at least one index")
        batch: Sample = {}
        tasks: list[Task] = []
        for camera in self.sample_keys.cameras:
            pixels, reads = self._pictures(camera, places, new_pixels, kept)
            batch[camera.key] = self._channels_first(pixels, camera.key)
            tasks += reads
        self._pool.run(tasks)
        for key in self.sample_keys.values:
            values = read_values(key, places, self._deltas, self.layout.tasks)
            batch[key.key] = self._converted(values)
        for name, offsets in self._deltas.items():
            batch[f"{name}_is_pad"] = self._converted(window_rows(places, offsets)[1])
        return batch

    def locate(self, index: int, camera: str, offsets: Iterable[int] = (0,)) -> Location:
        """Where a camera's frames around a sample are; offsets past the episode's end are clamped.

        Args:
            index: A sample's number.
            camera: A camera's key.
            offsets: Rows from the sample's own.

        Raises:
            FeatureNotFoundError: There is no such camera, or it isn't kept as video.
            DatasetError: A file of the dataset is missing, damaged or disagrees with another.
            VideoError: The video can't be read.
        """
        key = selected(self.sample_keys, [camera]).cameras[0]
        if not key.is_video:
            raise FeatureNotFoundError(
                f"the pictures of {camera} are in parquet files, not in a video",
                remedy="Read them with the dataset itself",
                path=self.root,
            )
        place = self._places([index])[0]
        rows = place.window(np.fromiter(offsets, np.int64))[0]
        video, frames = self._videos.frames(key, place, rows)
        seconds = video.pts_seconds[frames]
        return Location(video.path, tuple(map(int, frames)), tuple(map(float, seconds)))

    @property
    def video_cameras(self) -> tuple[str, ...]:
        """The keys of the cameras that samples hold and that are kept as video."""
        return tuple(camera.key for camera in self.sample_keys.cameras if camera.is_video)

    def frames_of(
        self, camera: str, indices: Sequence[int] | NDArray[np.int64]
    ) -> tuple[Video, NDArray[np.int64]]:
        """The frames of samples of one episode.

        Args:
            camera: A camera's key, kept as video.
            indices: (B,) numbers of samples.

        Returns:
            The video, and (B, T) the numbers of the frames in it.
        """
        key = next(key for key in self.sample_keys.cameras if key.key == camera)
        places = self._places(indices)
        rows = window_rows(places, self._deltas.get(camera, OWN_ROW))[0]
        video, frames = self._videos.frames(key, places[0], rows.ravel())
        return video, frames.reshape(rows.shape)

    def frame_bytes(self, camera: str) -> int:
        """The bytes of one decoded frame of a camera, as its first video says."""
        video, _numbers = self.frames_of(camera, [0])
        return video.table.stream.height * video.table.stream.width * 3

    def key_samples(self, index: int) -> NDArray[np.int64]:
        """The samples of an episode whose frames are key frames of its first camera kept as video.

        Args:
            index: A sample of the episode.
        """
        episode, row = self.place_of(index)
        samples = np.arange(index - row, index - row + episode.length)
        key = next((key for key in self.sample_keys.cameras if key.is_video), None)
        if key is None:
            return samples[:0]
        place = self._places([index])[0]
        video, frames = self._videos.frames(key, place, np.arange(episode.length))
        return samples[video.table.is_key[frames]]

    def place_of(self, index: int) -> tuple[Episode, int]:
        """The episode that a sample belongs to, and its row there.

        Raises:
            SampleIndexError: There is no such sample.
        """
        position, row = self._find(index)
        return self.layout.episodes[position], row

    def offsets_of(self, key: str) -> tuple[int, ...]:
        """The rows, from the sample's own, that a key holds: ``(0,)`` for a key without deltas."""
        return tuple(map(int, self._deltas.get(key, (0,))))

    def read_rows_ahead(self) -> None:
        """Read states and actions now, of as many episodes as are kept in memory.

        Forked workers have them too. Otherwise each episode's are read with its first sample.
        """
        for position in self.positions.tolist():
            if not self._rows.has_room():
                return
            self._rows.rows_of(position)

    def use_threads(self, threads: int) -> None:
        """Decode this many files at once in this process, whatever the dataset was opened with."""
        self._pool.close()
        self._pool = DecodePool(threads)

    def statistics(
        self, keys: Sequence[str] | None = None, *, quantiles: Sequence[float] = QUANTILES
    ) -> dict[str, Statistics]:
        """Mean, deviation, extremes and quantiles of states and actions, over all rows.

        Only the columns needed are read, file by file; no video is opened. All values of these
        keys are in memory meanwhile.

        Args:
            keys: Keys of samples that hold floating-point numbers; None for all of them, without
                the timestamp.
            quantiles: Parts of the rows, from 0 to 1; ``()`` for none.

        Raises:
            FeatureNotFoundError: There is no such key.
            DatasetError: A file is missing, damaged or disagrees with another.

        Example:
            >>> import reelseek
            >>> ds = reelseek.open_dataset(sample_dataset, cameras=())
            >>> ds.statistics(["action"])["action"].mean.shape
            (14,)
        """
        return statistics_of(self, keys, quantiles)

    def close(self) -> None:
        """Close the open videos; the next read opens them again."""
        self._videos.close()
        self._pool.close()

    def __repr__(self) -> str:
        return (
            f"Dataset({str(self.root)!r}, {self.info.version}, {len(self.positions)} episodes, "
            f"{len(self)} samples, cameras: {', '.join(self.cameras) or 'none'})"
        )

    def _new_pixels(self, shape: tuple[int, ...]) -> Pixels:
        return new_pixels(shape, self._options.videos.device)

    def _places(self, indices: Sequence[int] | NDArray[np.int64]) -> list[Place]:
        found = [self._find(index) for index in indices]
        rows: dict[int, Rows] = {}
        for position, _row in found:
            if position not in rows:
                rows[position] = self._rows.rows_of(position)
        lengths = self.layout.episodes.lengths
        return [Place(rows[position], row, int(lengths[position])) for position, row in found]

    def _find(self, index: int) -> tuple[int, int]:
        """The place of a sample's episode among all episodes, and its row there."""
        number, count = operator.index(index), len(self)
        if not -count <= number < count:
            raise SampleIndexError(
                f"no sample {number}",
                remedy=f"The {count} samples are 0 to {count - 1}" if count else "It has none",
                path=self.root,
            )
        number %= count
        chosen = int(np.searchsorted(self._ends, number, side="right"))
        position = int(self.positions[chosen])
        start = int(self._ends[chosen]) - int(self.layout.episodes.lengths[position])
        return position, number - start

    def _pictures(
        self,
        camera: CameraKey,
        places: list[Place],
        new_pixels: NewPixels,
        kept: KeptFrames | None,
    ) -> tuple[Pixels, list[Task]]:
        """(B, T, H, W, 3) pictures of one camera, and the tasks that put them there."""
        offsets = self._deltas.get(camera.key, OWN_ROW)
        windows = window_rows(places, offsets)[0]
        if not camera.is_video:
            return read_images(camera.camera, camera.key, places, windows, self.root), []
        return self._videos.plan(camera, places, windows, new_pixels, kept)

    def _channels_first(self, pixels: Pixels, key: str) -> Any:
        """(B, T, H, W, C) as (B, T, C, H, W) of the same memory; without T for a plain key."""
        if key not in self._deltas:
            pixels = pixels[:, 0]
        if not isinstance(pixels, np.ndarray):
            return pixels.movedim(-1, -3)
        return self._converted(np.moveaxis(pixels, -1, -3))

    def _converted(self, values: Any) -> Any:
        if self._options.output == "numpy" or isinstance(values, list):
            return values
        return _tensor(values)


def _tensor(values: NDArray[Any]) -> Any:
    try:
        import torch
    except ImportError as exc:
        raise DependencyError(
            "samples are tensors, and PyTorch isn't installed",
            remedy="Run `pip install 'reelseek[torch]'`, or open the dataset with output='numpy'",
        ) from exc
    return torch.from_numpy(values)
