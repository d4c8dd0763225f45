"""The dataset: samples by number, batches of them, and where their frames are."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._deltas import Deltas, padded
from reelseek.datasets._frames import FrameRequest, read_frames
from reelseek.datasets._images import decode_image
from reelseek.datasets._keys import CameraKey, Keys, ValueKey
from reelseek.datasets._modality import Modality
from reelseek.datasets._records import DatasetInfo, Episode, Episodes, Feature, Layout, Location
from reelseek.datasets._rows import Columns, RowStore
from reelseek.datasets._video_cache import VideoCache, max_open_videos
from reelseek.errors import DatasetFormatError, DependencyError, SampleIndexError
from reelseek.video import Video, open_video

Output = Literal["torch", "numpy"]
Sample = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """How samples are made."""

    backend: str
    threads: int
    output: Output
    tolerance_seconds: float
    max_open: int | None


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
        self._positions = positions
        self._options = options
        self._ends = np.cumsum(layout.episodes.lengths[positions])
        unused = {name for name, f in info.features.items() if f.dtype == "image"}
        unused -= {camera.camera for camera in sample_keys.cameras}
        self._rows = RowStore(layout, frozenset(unused))
        self._videos = self._new_cache()

    @property
    def fps(self) -> float:
        """Frames a second."""
        return self.info.fps

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
        if len(self._positions) == len(every):
            return every
        tasks = [every[int(position)].tasks for position in self._positions]
        return Episodes(every.indices[self._positions], every.lengths[self._positions], tasks)

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
        places = [self._place(index) for index in indices]
        if not places:
            raise ValueError("a batch needs at least one index")
        columns = {position: self._rows.rows_of(position) for position, _row in places}
        batch: Sample = {}
        for camera in self.sample_keys.cameras:
            pixels = self._pictures(camera, places, columns)
            batch[camera.key] = self._channels_first(pixels, camera.key)
        for key in self.sample_keys.values:
            batch[key.key] = self._converted(self._values(key, places, columns))
        for name in self._deltas:
            pads = [self._window(name, position, row)[1] for position, row in places]
            batch[f"{name}_is_pad"] = self._converted(np.stack(pads))
        return batch

    def locate(self, index: int, camera: str, offsets: Iterable[int] = (0,)) -> Location:
        """Where a camera's frames around a sample are; offsets past the episode's end are clamped.

        Args:
            index: A sample's number.
            camera: A camera's key.
            offsets: Rows from the sample's own.

        Raises:
            FeatureNotFoundError: There is no such camera.
        """
        position, row = self._place(index)
        key = self._camera(camera)
        length = int(self.layout.episodes.lengths[position])
        rows, _is_pad = padded(row, length, np.fromiter(offsets, np.int64))
        request = self._request(key, position, rows, self._rows.rows_of(position))
        times = request.span.from_seconds + request.seconds
        return Location(str(request.span.path), tuple(map(float, times)))

    def place_of(self, index: int) -> tuple[Episode, int]:
        """The episode that a sample belongs to, and its row there.

        Raises:
            SampleIndexError: There is no such sample.
        """
        position, row = self._place(index)
        return self.layout.episodes[position], row

    def offsets_of(self, key: str) -> tuple[int, ...]:
        """The rows, from the sample's own, that a key holds: ``(0,)`` for a key without deltas."""
        return tuple(map(int, self._deltas.get(key, (0,))))

    def close(self) -> None:
        """Close the open videos; the next read opens them again."""
        self._videos.close()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_videos"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._videos = self._new_cache()

    def __repr__(self) -> str:
        return (
            f"Dataset({str(self.root)!r}, {self.info.version}, {len(self._positions)} episodes, "
            f"{len(self)} samples, cameras: {', '.join(self.cameras) or 'none'})"
        )

    def _new_cache(self) -> VideoCache:
        options = self._options
        return VideoCache(
            functools.partial(_open, backend=options.backend, threads=options.threads),
            max_open_videos(options.max_open),
        )

    def _place(self, index: int) -> tuple[int, int]:
        """The place of a sample's episode among all episodes, and its row there."""
        number, count = int(index), len(self)
        if number != index or not -count <= number < count:
            raise SampleIndexError(
                f"no sample {index}",
                remedy=f"The {count} samples are 0 to {count - 1}" if count else "It has none",
                path=self.root,
            )
        number %= count
        chosen = int(np.searchsorted(self._ends, number, side="right"))
        position = int(self._positions[chosen])
        start = int(self._ends[chosen]) - int(self.layout.episodes.lengths[position])
        return position, number - start

    def _window(
        self, key: str, position: int, row: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        length = int(self.layout.episodes.lengths[position])
        return padded(row, length, self._deltas.get(key, np.zeros(1, np.int64)))

    def _values(
        self, key: ValueKey, places: list[tuple[int, int]], columns: dict[int, Columns]
    ) -> Any:
        """(B, ...) or (B, T, ...) values of one key; a list of texts for a task."""
        if key.is_task:
            return [self._task(columns[position][key.column][row]) for position, row in places]
        parts = []
        for position, row in places:
            values = columns[position][key.column]
            rows: Any = self._window(key.key, position, row)[0] if key.key in self._deltas else row
            part = values[rows]
            parts.append(part if key.part is None else part[..., slice(*key.part)])
        return _stacked(parts, key.key, self.root)

    def _task(self, number: Any) -> str:
        try:
            return self.layout.tasks[int(number)]
        except KeyError:
            raise DatasetFormatError(
                f"no task {int(number)} among the {len(self.layout.tasks)} in meta",
                path=self.root,
            ) from None

    def _pictures(
        self, camera: CameraKey, places: list[tuple[int, int]], columns: dict[int, Columns]
    ) -> NDArray[np.uint8]:
        """(B, T, H, W, 3) pictures of one camera."""
        windows = [self._window(camera.key, position, row)[0] for position, row in places]
        if camera.is_video:
            requests = [
                self._request(camera, position, rows, columns[position])
                for (position, _row), rows in zip(places, windows, strict=True)
            ]
            tolerance = self._options.tolerance_seconds
            return read_frames(self._videos, requests, tolerance, camera.key)
        pictures = []
        for (position, _row), rows in zip(places, windows, strict=True):
            source = self.layout.rows_of(position).path
            cells = columns[position][camera.camera][rows]
            pictures.append([decode_image(cell, self.root, camera.key, source) for cell in cells])
        return np.stack(_stacked_all(pictures, camera.key, self.root))

    def _request(
        self, camera: CameraKey, position: int, rows: NDArray[np.int64], columns: Columns
    ) -> FrameRequest:
        seconds, slack = _times(columns, rows, self.fps)
        return FrameRequest(
            span=self.layout.video_of(position, camera.camera),
            episode=int(self.layout.episodes.indices[position]),
            length=int(self.layout.episodes.lengths[position]),
            rows=rows,
            seconds=seconds,
            slack_seconds=slack,
        )

    def _camera(self, name: str) -> CameraKey:
        from reelseek.datasets._keys import selected

        return selected(self.sample_keys, [name]).cameras[0]

    def _channels_first(self, pixels: NDArray[np.uint8], key: str) -> Any:
        """(B, T, H, W, C) as (B, T, C, H, W) of the same memory; without T for a plain key."""
        if key not in self._deltas:
            pixels = pixels[:, 0]
        return self._converted(np.moveaxis(pixels, -1, -3))

    def _converted(self, values: Any) -> Any:
        if self._options.output == "numpy" or isinstance(values, list):
            return values
        return _tensor(values)


def _open(path: str, *, backend: str, threads: int) -> Video:
    return open_video(path, backend=backend, threads=threads)


def _times(
    columns: Columns, rows: NDArray[np.int64], fps: float
) -> tuple[NDArray[np.float64], float]:
    """Times of rows since the episode's start, and how much of an error their storage makes."""
    stored = columns.get("timestamp")
    if stored is None:
        return rows / fps, 0.0
    seconds = stored[rows].astype(np.float64)
    slack = 0.0
    if stored.dtype == np.float32:
        slack = float(np.spacing(np.abs(stored[rows]).max()))
    return seconds, slack


def _stacked(parts: list[Any], key: str, root: Path) -> Any:
    """Samples' values as one array; float32 for floats, as LeRobot's tensors are."""
    try:
        values = np.stack(parts)
    except ValueError as exc:
        raise DatasetFormatError(
            f"values of {key!r} differ in shape between samples: "
            f"{sorted({np.shape(part) for part in parts})}",
            remedy="Read the samples one at a time",
            path=root,
        ) from exc
    if values.dtype == np.float64 or values.dtype == np.float16:
        return values.astype(np.float32)
    return values.tolist() if values.dtype == object else values


def _stacked_all(
    pictures: list[list[NDArray[np.uint8]]], key: str, root: Path
) -> list[NDArray[np.uint8]]:
    sizes = {picture.shape for row in pictures for picture in row}
    if len(sizes) > 1:
        raise DatasetFormatError(f"pictures of {key} differ in size: {sorted(sizes)}", path=root)
    return [np.stack(row) for row in pictures]


def _tensor(values: NDArray[Any]) -> Any:
    try:
        import torch
    except ImportError as exc:
        raise DependencyError(
            "samples are tensors, and PyTorch isn't installed",
            remedy="Run `pip install 'reelseek[torch]'`, or open the dataset with output='numpy'",
        ) from exc
    return torch.from_numpy(values)
