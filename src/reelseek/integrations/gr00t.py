"""GR00T's video functions, with its signatures and return types, reading through reelseek.

The same calls as ``gr00t.utils.video`` (Isaac-GR00T N1 and N1.5, GR00T-Dreams) and
``gr00t.utils.video_utils`` (N1.6 and later) have::

    from reelseek.integrations.gr00t import get_frames_by_timestamps

    get_frames_by_timestamps(path, [0.0, 0.8], video_backend="decord")    # (2, H, W, 3) uint8

or, in GR00T's own code, one call before its datasets are made::

    reelseek.integrations.gr00t.enable()

Which frame is meant is the same with every ``video_backend``: by number the frame of that number,
by time the frame whose own time is nearest. GR00T's own answer depends on the backend:
``torchvision_av`` returns the first frames after the key frame whatever times are asked for,
``torchcodec`` the frame before the one meant where a time is rounded down, ``ffmpeg`` a black
picture where there is no frame.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.errors import DependencyError, TimestampToleranceError
from reelseek.integrations._patch import Function, Patch
from reelseek.integrations._switch import Enabled, Switch
from reelseek.integrations._videos import VideoFiles
from reelseek.video import Video

Frames = NDArray[np.uint8]
"""(T, H, W, 3); RGB, but BGR for ``video_backend="opencv"``, as OpenCV's and so GR00T's are."""

HOMES = ("gr00t.utils.video", "gr00t.utils.video_utils")
"""The modules that have the functions, in one release of GR00T or another."""
NAMES = ("get_frames_by_indices", "get_frames_by_timestamps", "get_all_frames",
         "get_all_frames_and_timestamps")  # fmt: skip
ARGUMENTS = frozenset({
    "video_path", "indices", "timestamps", "video_backend", "video_backend_kwargs", "resize_size",
})  # fmt: skip
"""What these functions are called with in the releases that are known."""
CARRIERS = (
    ("gr00t.data.dataset", "LeRobotSingleDataset"),
    ("gr00t.data.dataset", "LeRobotMixtureDataset"),
    ("gr00t.data.dataset.lerobot_episode_loader", "LeRobotEpisodeLoader"),
)
"""GR00T's datasets, which take the replacement along to spawned workers."""
BACKENDS = ("decord", "torchcodec", "torchvision_av", "pyav", "opencv", "ffmpeg")
"""The backends that GR00T knows in one release or another."""
WITHOUT_EFFECT = frozenset({
    "ctx", "num_threads", "num_ffmpeg_threads", "device", "dimension_order", "seek_mode",
    "apiPreference",
})  # fmt: skip
"""Arguments of the backends that don't change what GR00T gets from them."""


@dataclass(frozen=True, slots=True)
class Options:
    """How ``enable`` was called."""

    backend: str = "auto"
    max_open_videos: int | None = None
    tolerance_s: float | None = None


class Functions:
    """The functions, with some options; those of this module have none.

    Their arguments are GR00T's own, in its order and by its names.
    """

    def __init__(self, options: Options) -> None:
        self._files = VideoFiles(options.backend, options.max_open_videos)
        self._tolerance_s = options.tolerance_s

    def get_frames_by_indices(
        self,
        video_path: str,
        indices: Sequence[int] | NDArray[Any],
        video_backend: str = "decord",
        video_backend_kwargs: Mapping[str, Any] | None = None,
    ) -> Frames:
        """Frames by number: (T, H, W, 3) uint8.

        Raises:
            FrameIndexError: There is no such frame.
            VideoError: The video isn't there, or can't be read.
            NotImplementedError: GR00T knows no such backend.
        """
        _check(video_backend, video_backend_kwargs)
        video = self._files.get(video_path)
        return _colours(video.get_frames_at(list(indices)).numpy(), video_backend)

    def get_frames_by_timestamps(
        self,
        video_path: str,
        timestamps: Sequence[float] | NDArray[Any],
        video_backend: str = "decord",
        video_backend_kwargs: Mapping[str, Any] | None = None,
    ) -> Frames:
        """The frames whose own times are nearest: (T, H, W, 3) uint8.

        Raises:
            TimestampToleranceError: ``enable`` was given a tolerance, and a frame is further away.
            VideoError: The video isn't there, or can't be read.
            NotImplementedError: GR00T knows no such backend.
        """
        _check(video_backend, video_backend_kwargs)
        video = self._files.get(video_path)
        wanted = np.asarray(timestamps, np.float64).reshape(-1)
        numbers = video.indices_nearest(wanted)
        if self._tolerance_s is not None:
            _check_tolerance(video, wanted, numbers, self._tolerance_s)
        return _colours(video.get_frames_at(numbers).numpy(), video_backend)

    def get_all_frames(
        self,
        video_path: str,
        video_backend: str = "decord",
        video_backend_kwargs: Mapping[str, Any] | None = None,
        resize_size: tuple[int, int] | None = None,
    ) -> Frames:
        """Every frame: (N, H, W, 3) uint8; by OpenCV in another (width, height) where given.

        Raises:
            DependencyError: A size is given, and OpenCV isn't installed.
            VideoError: The video isn't there, or can't be read.
            NotImplementedError: GR00T knows no such backend.
        """
        _check(video_backend, video_backend_kwargs)
        video = self._files.get(video_path)
        frames = video.get_frames_in_range(0, len(video)).numpy()
        return frames if resize_size is None else _resized(frames, resize_size)

    def get_all_frames_and_timestamps(
        self,
        video_path: str,
        video_backend: str = "decord",
        video_backend_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[Frames, NDArray[np.float64]]:
        """``get_all_frames``, and the time of each in seconds (GR00T-Dreams)."""
        frames = self.get_all_frames(video_path, video_backend, video_backend_kwargs)
        return frames, self._files.get(video_path).pts_seconds.copy()


_direct = Functions(Options())
get_frames_by_indices = _direct.get_frames_by_indices
get_frames_by_timestamps = _direct.get_frames_by_timestamps
get_all_frames = _direct.get_all_frames
get_all_frames_and_timestamps = _direct.get_all_frames_and_timestamps


def enable(
    *,
    backend: str = "auto",
    max_open_videos: int | None = None,
    tolerance_s: float | None = None,
) -> Enabled[Options]:
    """Let the installed GR00T read its videos through reelseek.

    It lasts until ``disable``, or to the end of a ``with`` statement. Forked DataLoader workers
    inherit it, GR00T's own datasets take it along to spawned ones; for others there is
    ``worker_init_fn=reelseek.integrations.gr00t.worker_init``.

    Args:
        backend: Which of reelseek's backends, as for ``open_video``.
        max_open_videos: Videos to keep open in each process; None for 32, fewer where the limit on
            file descriptors is low.
        tolerance_s: How far a frame's own time may be from the time asked for; None takes the
            nearest however far it is, as GR00T does.

    Raises:
        DependencyError: GR00T isn't installed, or its functions aren't those that are known.
    """
    return _switch.set(Options(backend, max_open_videos, tolerance_s))


def disable() -> None:
    """Let GR00T read its videos itself again; nothing happens where it does already."""
    _switch.set(None)


def is_enabled() -> bool:
    """True between ``enable`` and ``disable``."""
    return _switch.options is not None


def worker_init(_worker_id: int = 0) -> None:
    """``enable()`` as a DataLoader's ``worker_init_fn``; see there for who needs it."""
    if not is_enabled():
        enable()


def _check(backend: str, arguments: Mapping[str, Any] | None) -> None:
    if backend not in BACKENDS:
        raise NotImplementedError(
            f"GR00T knows no video_backend={backend!r}; it knows: {', '.join(BACKENDS)}"
        )
    others = sorted(set(arguments or ()) - WITHOUT_EFFECT)
    if others:
        raise ValueError(
            f"video_backend_kwargs {', '.join(others)} would change the frames, and reelseek "
            "returns them as they are: leave them out, and resize what comes back"
        )


def _check_tolerance(
    video: Video, wanted: NDArray[np.float64], numbers: NDArray[np.int64], tolerance_s: float
) -> None:
    off = np.abs(video.pts_seconds[numbers] - wanted)
    if np.any(off > tolerance_s):
        worst = int(np.argmax(off))
        raise TimestampToleranceError(
            f"no frame is within {tolerance_s:g} s of {wanted[worst]:.6f} s: the nearest is "
            f"{off[worst]:.6f} s away",
            remedy="Look at the episode with `reelseek info`, or pass a larger tolerance_s",
            path=video.path,
            frame=int(numbers[worst]),
        )


def _colours(frames: Frames, backend: str) -> Frames:
    return np.ascontiguousarray(frames[..., ::-1]) if backend == "opencv" else frames


def _resized(frames: Frames, size: tuple[int, int]) -> Frames:
    try:
        import cv2
    except ImportError as exc:
        raise DependencyError(
            "resize_size is OpenCV's, which isn't installed",
            remedy="Run `pip install opencv-python-headless`, or resize the frames yourself",
        ) from exc
    return np.stack([cv2.resize(frame, size) for frame in frames])


def _patch_for(options: Options) -> Patch:
    functions = Functions(options)
    return Patch(
        {own: _in_place_of(own, functions) for own in _own_functions()},
        carriers=_carriers(),
        start_in_worker=functools.partial(enable, **dataclasses.asdict(options)),
    )


def _in_place_of(own: Function, functions: Functions) -> Function:
    """A function with the same arguments and result as this one of GR00T's."""
    name = own.__name__
    if name == "get_all_frames" and "resize_size" not in inspect.signature(own).parameters:
        name = "get_all_frames_and_timestamps"  # which is what it returns since N1.6
    ours: Function = getattr(functions, name)

    @functools.wraps(own)
    def read(*positional: Any, **named: Any) -> Any:
        return ours(*positional, **named)

    return read


def _own_functions() -> list[Function]:
    """The functions of the installed GR00T that are known here.

    Raises:
        DependencyError: There is no GR00T, or none of them in it.
    """
    homes = [home for name in HOMES if (home := _module(name)) is not None]
    found = [
        own for home in homes for name in NAMES if (own := getattr(home, name, None)) is not None
    ]
    for own in found:
        others = set(inspect.signature(own).parameters) - ARGUMENTS
        if others:
            raise DependencyError(
                f"{own.__module__}.{own.__name__} of the installed GR00T takes "
                f"{', '.join(sorted(others))}, which isn't known here",
                remedy="Import the functions of reelseek.integrations.gr00t where it is called",
            )
    if not found:
        raise DependencyError(
            f"GR00T isn't installed, or has none of its video functions: {' and '.join(HOMES)} "
            "were looked for",
            remedy="Import the functions of reelseek.integrations.gr00t where they are called",
        )
    return found


def _carriers() -> list[type]:
    modules = ((_module(module), name) for module, name in CARRIERS)
    found = (getattr(module, name, None) for module, name in modules)
    return [carrier for carrier in found if isinstance(carrier, type)]


def _module(name: str) -> types.ModuleType | None:
    """A module of GR00T; None where this release has none of that name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] != "gr00t":
            raise
        return None


_switch = Switch(_patch_for)
