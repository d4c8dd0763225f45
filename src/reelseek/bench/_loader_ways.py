"""Ways to feed a training: reelseek's loader, LeRobot's dataset, and GR00T's calls.

The others are what people run, with the best settings that their documentation names: workers that
stay, one thread each, LeRobot's cache of decoders. Nothing in them checks which frame came.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.errors import DependencyError

NMS = (
    ("nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
    ("qnms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
)
"""Operators that torchvision asks for by name, and can't register beside another torch."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is read."""

    root: str
    """The dataset's folder."""
    lerobot_root: str
    """The same data in the version that LeRobot reads."""
    offsets: tuple[int, ...]
    """Frames of a sample, from its own row."""
    action_steps: int
    """Actions of a sample, from its own row on."""
    batch_size: int
    """Samples in a batch."""
    num_workers: int
    """Worker processes."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to read batches."""

    usage: str
    """The call, in short."""
    packages: tuple[str, ...]
    """What it needs installed."""
    make: Callable[[Job, Sequence[int]], Any]
    """A DataLoader of these samples, in this order."""
    is_whole_epoch: bool = False
    """True where its cost is that of an epoch: it starts with more work than it ends."""


def open_ours(job: Job, **options: Any) -> Any:
    """The dataset as reelseek opens it."""
    from reelseek.datasets import open_dataset

    deltas: dict[str, Any] = {"action": range(job.action_steps)}
    if options.get("cameras") != ():
        cameras = open_dataset(job.root, output="numpy").cameras
        deltas |= dict.fromkeys(cameras, job.offsets)
    return open_dataset(job.root, delta_indices=deltas, **options)


def versions_of(way: Way) -> str:
    """The versions of the packages behind it.

    Raises:
        DependencyError: One isn't installed.
    """
    found = []
    for package in way.packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError as exc:
            raise DependencyError(f"{package} isn't installed") from exc
    return ", ".join(found)


def _ours(job: Job, samples: Sequence[int]) -> Any:
    from reelseek.loader import Sequential, make_loader

    return make_loader(
        open_ours(job), job.batch_size, num_workers=job.num_workers, sampler=Sequential(samples)
    )


def _ours_by_gop(job: Job, samples: Sequence[int]) -> Any:
    from reelseek.loader import GopShuffle, make_loader

    return make_loader(
        open_ours(job), job.batch_size, num_workers=job.num_workers, sampler=GopShuffle(samples)
    )


def _lerobot(backend: str, job: Job, samples: Sequence[int]) -> Any:
    prepare_lerobot()
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    ours = open_ours(job, output="numpy")
    seconds = {camera: [n / ours.fps for n in job.offsets] for camera in ours.cameras}
    seconds["action"] = [n / ours.fps for n in range(job.action_steps)]
    dataset = LeRobotDataset(
        "local/dataset", root=job.lerobot_root, delta_timestamps=seconds, video_backend=backend
    )
    return _data_loader(dataset, job, samples)


def _gr00t(read: str, job: Job, samples: Sequence[int]) -> Any:
    return _data_loader(PerCallDataset(job, sorted(set(samples)), read), job, samples)


def _data_loader(dataset: Any, job: Job, samples: Sequence[int]) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(
        dataset,
        batch_size=job.batch_size,
        sampler=list(samples),
        num_workers=job.num_workers,
        persistent_workers=job.num_workers > 0,
    )


@functools.cache
def prepare_lerobot() -> None:
    """Let LeRobot's dataset code be imported beside a torch without CUDA, and stay offline."""
    import os
    import warnings

    import torch

    from reelseek.native import activate

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    warnings.simplefilter("ignore")  # of LeRobot's dependencies, in a process of its own
    activate()
    if torch.version.cuda is None and importlib.util.find_spec("torchvision"):
        for name, signature in NMS:
            torch.library.define(f"torchvision::{name}", signature)


class PerCallDataset:
    """GR00T's pattern: each ``__getitem__`` opens each camera's file, and finds frames by time.

    Where the frames are is worked out before; states and actions come from memory.
    """

    def __init__(self, job: Job, samples: Sequence[int], read: str) -> None:
        ours = open_ours(job, output="numpy")
        self._values = open_ours(job, cameras=())
        self._read = read
        self._places = {
            sample: {camera: ours.locate(sample, camera, job.offsets) for camera in ours.cameras}
            for sample in samples
        }
        ours.close()

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> dict[str, Any]:
        import torch

        sample: dict[str, Any] = self._values[index]
        read = PER_CALL[self._read]
        for camera, place in self._places[index].items():
            frames = read(place.path, np.array(place.seconds))
            sample[camera] = torch.from_numpy(frames).permute(0, 3, 1, 2)
        return sample


def frames_with_decord(path: str, seconds: NDArray[np.float64]) -> NDArray[np.uint8]:
    """GR00T's ``get_frames_by_timestamps`` with decord: open, ask for all times, take the nearest.

    Returns:
        (T, H, W, 3) RGB uint8.
    """
    import decord

    reader = decord.VideoReader(path, num_threads=1)
    times = reader.get_frame_timestamp(range(len(reader)))[:, :1]
    nearest = np.abs(times - seconds).argmin(axis=0)
    frames: NDArray[np.uint8] = reader.get_batch(nearest).asnumpy()
    return frames


def frames_with_pyav(
    path: str, seconds: NDArray[np.float64], threads: int | None = None
) -> NDArray[np.uint8]:
    """The same with PyAV: open, seek to the first time, decode on to the last.

    Args:
        path: The video file.
        seconds: (T,) ascending times of frames.
        threads: The decoder's ``thread_count``; None leaves what PyAV's default is.
    """
    import av

    found: list[NDArray[np.uint8]] = []
    with av.open(path) as container:
        stream = container.streams.video[0]
        if threads is not None:
            stream.codec_context.thread_count = threads
            stream.thread_type = "AUTO"
        base = float(stream.time_base or 1)
        container.seek(int(seconds[0] / base), stream=stream)
        for picture in container.decode(stream):
            if picture.pts is None:
                continue
            while (
                len(found) < len(seconds) and picture.pts * base >= seconds[len(found)] - base / 2
            ):
                found.append(picture.to_ndarray(format="rgb24"))
            if len(found) == len(seconds):
                break
    return np.stack(found)


PER_CALL: dict[str, Callable[[str, NDArray[np.float64]], NDArray[np.uint8]]] = {
    "decord": frames_with_decord,
    "pyav": frames_with_pyav,
}
"""How a call reads, by name."""

OURS, OURS_BY_GOP = "reelseek", "reelseek, GopShuffle"
WAYS = {
    OURS: Way("make_loader(ds, ...), plain random order", ("torch", "av"), _ours),
    OURS_BY_GOP: Way("make_loader(ds, sampler=GopShuffle())", ("torch", "av"), _ours_by_gop, True),
    "LeRobot, torchcodec": Way(
        "LeRobotDataset(video_backend='torchcodec'), DataLoader",
        ("lerobot", "torchcodec"),
        functools.partial(_lerobot, "torchcodec"),
    ),
    "LeRobot, PyAV": Way(
        "LeRobotDataset(video_backend='pyav'), DataLoader",
        ("lerobot", "av"),
        functools.partial(_lerobot, "pyav"),
    ),
    "GR00T's call, PyAV": Way(
        "av.open, seek, decode in each call, DataLoader",
        ("av",),
        functools.partial(_gr00t, "pyav"),
    ),
    "GR00T's call, decord": Way(
        "decord.VideoReader in each call, DataLoader",
        ("decord",),
        functools.partial(_gr00t, "decord"),
    ),
}
"""All ways by name."""
