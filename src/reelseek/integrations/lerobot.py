"""LeRobot's own datasets, reading their videos through reelseek.

::

    import reelseek.integrations.lerobot

    reelseek.integrations.lerobot.enable()    # LeRobotDataset and decode_video_frames, from here on
    reelseek.integrations.lerobot.disable()   # and back

LeRobot's ``decode_video_frames`` is replaced wherever it was imported to, with the same arguments,
results and errors. What differs is which frame a timestamp means: LeRobot's torchcodec path takes
frame ``round(timestamp * average_fps)``, which is another one where frames aren't evenly spaced;
here it is the frame whose own time is nearest.

LeRobot 0.1, 0.3, 0.4, 0.5 and 0.6 are known; another version is refused.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reelseek.errors import DependencyError, TimestampToleranceError
from reelseek.integrations._patch import Function, Patch
from reelseek.integrations._switch import Enabled, Switch
from reelseek.integrations._videos import VideoFiles

if TYPE_CHECKING:
    import torch

KNOWN_VERSIONS = ("0.1", "0.3", "0.4", "0.5", "0.6")
"""Releases whose functions are known, by major and minor number."""
FIRST_WITH_ITS_OWN_ERROR = (0, 4, 4)
"""From here on a tolerance that isn't kept is a FrameTimestampError; before, an AssertionError."""
HOMES = ("lerobot.datasets", "lerobot.common.datasets")
"""Where LeRobot keeps its datasets: since 0.3, and before."""
BACKENDS = (None, "torchcodec", "pyav", "video_reader")
"""The backends that LeRobot knows; reelseek's frames are those that all of them should give."""

logger = logging.getLogger(__name__)
_files = VideoFiles()


@dataclass(frozen=True, slots=True)
class Options:
    """How ``enable`` was called."""

    backend: str = "auto"
    max_open_videos: int | None = None


def enable(*, backend: str = "auto", max_open_videos: int | None = None) -> Enabled[Options]:
    """Let the installed LeRobot read its videos through reelseek.

    It lasts until ``disable``, or to the end of a ``with`` statement. DataLoader workers have it
    too: forked ones inherit it, spawned ones are brought it by the LeRobotDataset that they read.
    A spawned worker whose dataset calls ``decode_video_frames`` without holding a LeRobotDataset
    needs ``worker_init_fn=reelseek.integrations.lerobot.worker_init``.

    Args:
        backend: Which of reelseek's backends, as for ``open_video``. The one that LeRobot is asked
            for (``torchcodec``, ``pyav``) only has to be one that it knows.
        max_open_videos: Videos to keep open in each process; None for 32, fewer where the limit on
            file descriptors is low.

    Raises:
        DependencyError: LeRobot isn't installed, or it is of a version that isn't known.
    """
    return _switch.set(Options(backend, max_open_videos))


def disable() -> None:
    """Let LeRobot read its videos itself again; nothing happens where it does already."""
    _switch.set(None)


def is_enabled() -> bool:
    """True between ``enable`` and ``disable``."""
    return _switch.options is not None


def worker_init(_worker_id: int = 0) -> None:
    """``enable()`` as a DataLoader's ``worker_init_fn``; see there for who needs it."""
    if not is_enabled():
        enable()


def decode_video_frames(
    video_path: str | os.PathLike[str],
    timestamps: list[float],
    tolerance_s: float,
    backend: str | None = None,
    return_uint8: bool = False,
) -> torch.Tensor:
    """Frames at these times: what LeRobot's function of this name does, without LeRobot.

    Args:
        video_path: A local file. The index of the dataset around it is used where there is one.
        timestamps: (T,) times on the file's clock, in seconds.
        tolerance_s: How far a frame's own time may be from the time asked for.
        backend: One that LeRobot knows, or None; it makes no difference.
        return_uint8: True for uint8 from 0 to 255, as LeRobot 0.6 has it.

    Returns:
        (T, 3, H, W) RGB, float32 from 0 to 1, contiguous.

    Raises:
        TimestampToleranceError: The nearest frame is too far away. Where ``enable`` has put this in
            LeRobot's place: FrameTimestampError, before LeRobot 0.4.4 AssertionError.
        VideoError: The video isn't there, or can't be read.
    """
    _check_backend(backend)
    return _decoded(_files, video_path, timestamps, tolerance_s, TimestampToleranceError,
                    return_uint8=return_uint8)  # fmt: skip


def _decoded(
    files: VideoFiles,
    path: str | os.PathLike[str],
    timestamps: list[float],
    tolerance_s: float,
    error: type[Exception],
    *,
    return_uint8: bool,
) -> torch.Tensor:
    import torch

    video = files.get(path)
    wanted = np.asarray(timestamps, np.float64)
    numbers = video.indices_nearest(wanted)
    found = video.pts_seconds[numbers]
    off = np.abs(found - wanted)
    if not np.all(off < tolerance_s):
        worst = int(np.argmax(off))
        raise error(
            f"{video.path}: no frame within {tolerance_s=} of {wanted[worst]:.6f} s: the nearest, "
            f"frame {numbers[worst]}, is at {found[worst]:.6f} s. Either the timestamps or the "
            "video's own times are off: look at the episode with `reelseek info`, leave it out, or "
            "pass a larger tolerance_s if the recording is meant to be that uneven"
        )
    # LeRobot's frames are contiguous, and model code calls .view() on them. Dividing comes last:
    # bytes are put in another order three times as fast as floats.
    frames = video.get_frames_at(numbers).torch().contiguous()
    return frames if return_uint8 else (frames / 255).to(torch.float32)


def _check_backend(backend: str | None) -> None:
    if backend not in BACKENDS:  # in LeRobot's words
        raise ValueError(f"Unsupported video backend: {backend}")


def _patch_for(options: Options) -> Patch:
    version = _known_version()
    home = _home(version)
    video_utils = importlib.import_module(f"{home}.video_utils")
    datasets = importlib.import_module(f"{home}.lerobot_dataset")
    files = VideoFiles(options.backend, options.max_open_videos)
    has_own_error = version >= FIRST_WITH_ITS_OWN_ERROR
    error = video_utils.FrameTimestampError if has_own_error else AssertionError
    own, torchcodecs = video_utils.decode_video_frames, video_utils.decode_video_frames_torchcodec
    return Patch(
        {
            own: _in_place_of(own, files, error),
            torchcodecs: _in_place_of(torchcodecs, files, error),
        },
        carriers=[datasets.LeRobotDataset],
        start_in_worker=functools.partial(enable, **dataclasses.asdict(options)),
    )


def _in_place_of(own: Function, files: VideoFiles, error: type[Exception]) -> Function:
    """A function with the same arguments; what only LeRobot's own can do is left to it."""
    signature = inspect.signature(own)

    @functools.wraps(own)
    def decode(*positional: Any, **named: Any) -> Any:
        bound = signature.bind(*positional, **named)
        given = bound.arguments
        path = given["video_path"]
        # Depth maps have 12 bits, and a URL isn't a file.
        if given.get("is_depth") or given.get("device", "cpu") != "cpu" or "://" in str(path):
            return own(*positional, **named)
        _check_backend(given.get("backend"))
        if given.get("log_loaded_timestamps"):
            logger.info("frames nearest to %s s of %s", given["timestamps"], path)
        return _decoded(files, path, given["timestamps"], given["tolerance_s"], error,
                        return_uint8=bool(given.get("return_uint8")))  # fmt: skip

    return decode


def _known_version() -> tuple[int, ...]:
    """The installed LeRobot's version.

    Raises:
        DependencyError: None is installed, or it isn't one of KNOWN_VERSIONS.
    """
    if importlib.util.find_spec("lerobot") is None:
        raise DependencyError(
            "LeRobot isn't installed",
            remedy="Install it, or read its datasets without it: `reelseek.open_dataset(root)`",
        )
    try:
        version = importlib.metadata.version("lerobot")
    except importlib.metadata.PackageNotFoundError:
        version = "of no version"
    if ".".join(version.split(".")[:2]) not in KNOWN_VERSIONS:
        raise DependencyError(
            f"the installed LeRobot is {version}, whose video functions aren't known here",
            remedy=f"Use one of the releases {', '.join(KNOWN_VERSIONS)}, or read the dataset "
            "without LeRobot: `reelseek.open_dataset(root)`",
        )
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())


def _home(version: tuple[int, ...]) -> str:
    return HOMES[0] if version >= (0, 3) else HOMES[1]


_switch = Switch(_patch_for)
