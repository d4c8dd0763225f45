"""Opening a dataset: which version it is, what its samples hold."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reelseek.datasets._dataset import Dataset, Options, Output
from reelseek.datasets._deltas import resolve_deltas
from reelseek.datasets._episode_videos import VideoOptions
from reelseek.datasets._files import MAX_COUNT
from reelseek.datasets._info import read_info
from reelseek.datasets._keys import Keys, Naming, gr00t_keys, lerobot_keys, selected
from reelseek.datasets._layout_v2 import LayoutV2
from reelseek.datasets._layout_v3 import LayoutV3
from reelseek.datasets._modality import Modality, read_modality
from reelseek.datasets._records import DatasetInfo, Layout
from reelseek.errors import (
    DatasetFormatError,
    DatasetNotFoundError,
    FeatureNotFoundError,
    ReelseekError,
    UnknownBackendError,
)
from reelseek.video.backends import backend_names

EPISODES_LOOKED_AT = 8
"""Episodes in which a camera's file is looked for before the camera counts as absent."""


def open_dataset(
    root: str | os.PathLike[str],
    *,
    delta_indices: Mapping[str, Iterable[int]] | None = None,
    delta_timestamps: Mapping[str, Iterable[float]] | None = None,
    cameras: Sequence[str] | None = None,
    episodes: Sequence[int] | None = None,
    keys: Naming = "lerobot",
    output: Output = "torch",
    backend: str = "auto",
    threads: int = 1,
    device: str = "cpu",
    tolerance_s: float = 1e-4,
    max_open_videos: int | None = None,
) -> Dataset:
    """Open a LeRobot (v2.0, v2.1, v3.0) or GR00T dataset.

    Args:
        root: The folder that holds ``meta``, ``data`` and ``videos``.
        delta_indices: Offsets in frames by key, such as ``{"observation.images.*": [0, 16],
            "action": range(16)}``. A key may be a pattern. Past an episode's end the last frame
            is repeated and ``<key>_is_pad`` is True.
        delta_timestamps: The same in seconds, as LeRobot takes them.
        cameras: Keys or patterns of the cameras to decode; None takes all, ``()`` none.
        episodes: Numbers of the episodes to read, in this order; None takes all.
        keys: ``lerobot``, or ``gr00t`` for the names in ``meta/modality.json``.
        output: ``torch`` tensors, or ``numpy`` arrays, which need no PyTorch.
        backend: Which decoder, as for ``open_video``.
        threads: Files decoded at once for a batch in this process, each on one thread. One is
            right in DataLoader workers, which are processes already.
        device: Where frames are decoded: ``cpu``, ``cuda`` or ``cuda:N``. On a GPU cameras come
            as its tensors, and DataLoader workers have to be spawned.
        tolerance_s: How far a frame may be from its row's timestamp, in seconds.
        max_open_videos: Videos to keep open in each process; None for 32, fewer where the limit
            on file descriptors is low.

    Raises:
        DatasetNotFoundError: The folder has no ``meta/info.json``, or a file is missing.
        UnsupportedDatasetError: Its version is not known.
        DatasetFormatError: A file is damaged or disagrees with another.
        FeatureNotFoundError: There is no such camera, key or episode; lists those that exist.
        UnsafePathError: A path template leaves the dataset.

    Example:
        >>> import reelseek
        >>> ds = reelseek.open_dataset(sample_dataset, output="numpy",
        ...     delta_indices={"observation.images.*": [0, 16], "action": range(16)})
        >>> ds[0]["observation.images.top"].shape, ds[0]["action"].shape
        ((2, 3, 128, 128), (16, 14))
    """
    folder = Path(os.path.abspath(os.fspath(root)))
    _check_options(keys, output, backend)
    if device != "cpu" and output != "torch":
        raise ValueError(f"device={device!r} gives tensors: pass output='torch'")
    info = read_info(folder)
    try:
        layout = LayoutV3(folder, info) if info.version == "v3.0" else LayoutV2(folder, info)
        modality = read_modality(folder)
        _check_total(layout)
        positions = _positions(layout, episodes)
        found = cameras_with_files(info, layout, positions)
        every = _keys(_columns(info, layout, positions), found, modality, keys)
        if cameras is None:
            _check_some_video(info, layout, positions, found)
        chosen = selected(every, cameras)
        left_out = {camera.key for camera in every.cameras} - {c.key for c in chosen.cameras}
        deltas = resolve_deltas(every.names, info.fps, delta_indices, delta_timestamps, tolerance_s)
    except ReelseekError as exc:
        exc.path = exc.path or str(folder)
        raise
    return Dataset(
        root=folder,
        info=info,
        layout=layout,
        modality=modality,
        every_key=every,
        sample_keys=chosen,
        deltas={key: value for key, value in deltas.items() if key not in left_out},
        positions=positions,
        options=Options(
            threads, output, VideoOptions(backend, device, tolerance_s, max_open_videos)
        ),
    )


def _check_options(keys: str, output: str, backend: str) -> None:
    for name, value, allowed in (
        ("keys", keys, ("lerobot", "gr00t")),
        ("output", output, ("torch", "numpy")),
    ):
        if value not in allowed:
            raise ValueError(f"{name}={value!r}: choose one of {', '.join(allowed)}")
    if backend not in (known := ("auto", *backend_names())):
        raise UnknownBackendError(
            f"no backend {backend!r}", remedy=f"Choose one of: {', '.join(known)}"
        )


def _check_total(layout: Layout) -> None:
    lengths = layout.episodes.lengths
    if float(lengths.sum(dtype=np.float64)) > MAX_COUNT:
        raise DatasetFormatError(
            f"the lengths of its {len(lengths)} episodes add up to more than {MAX_COUNT}",
            remedy="Copy the dataset's meta folder again",
        )


def _keys(
    columns: Sequence[str], cameras: dict[str, bool], modality: Modality | None, naming: Naming
) -> Keys:
    if naming == "lerobot":
        return lerobot_keys(columns, cameras)
    if modality is None:
        raise DatasetFormatError(
            "keys='gr00t' needs meta/modality.json, which isn't there",
            remedy="Pass keys='lerobot', or add the file",
        )
    return gr00t_keys(columns, cameras, modality)


def _columns(info: DatasetInfo, layout: Layout, positions: NDArray[np.int64]) -> list[str]:
    """The columns that a sample holds: those of the first parquet file, without pictures."""
    from reelseek.datasets._parquet import column_names

    pictures = {name for name, feature in info.features.items() if feature.is_camera}
    every = list(info.features)
    if len(positions):
        every = column_names(layout.rows_of(int(positions[0])).path)
    return [name for name in every if name not in pictures]


def cameras_with_files(
    info: DatasetInfo, layout: Layout, positions: NDArray[np.int64]
) -> dict[str, bool]:
    """Cameras that have pictures, True for video; ``info.json`` may list others."""
    found = {}
    for name, feature in info.features.items():
        if feature.dtype == "image":
            found[name] = False
        elif feature.dtype == "video" and _has_a_file(layout, name, positions):
            found[name] = True
    return found


def _has_a_file(layout: Layout, camera: str, positions: NDArray[np.int64]) -> bool:
    looked_at = [*positions[:EPISODES_LOOKED_AT], *positions[-1:]]
    try:
        paths = [layout.video_of(int(position), camera).path for position in looked_at]
    except FeatureNotFoundError:
        return False
    return not paths or any(map(os.path.lexists, paths))


def _check_some_video(
    info: DatasetInfo,
    layout: Layout,
    positions: NDArray[np.int64],
    found: dict[str, bool],
) -> None:
    """A listed camera may have no files, but not all of them."""
    listed = [name for name, feature in info.features.items() if feature.dtype == "video"]
    if listed and not any(found.get(name) for name in listed):
        raise DatasetNotFoundError(
            f"no video of {', '.join(listed)} exists, such as "
            f"{layout.video_of(int(positions[0]), listed[0]).path}",
            remedy="Copy or download the dataset's videos folder, or pass cameras=() to read "
            "the other columns",
        )


def _positions(layout: Layout, episodes: Sequence[int] | None) -> NDArray[np.int64]:
    if episodes is None:
        return np.arange(len(layout.episodes))
    positions: dict[int, None] = {}
    for index in episodes:
        position = layout.episodes.position_of(operator.index(index))
        if position is None:
            known = layout.episodes.indices
            span = f"{known.min()} to {known.max()}" if len(known) else "none"
            raise FeatureNotFoundError(
                f"no episode {index}", remedy=f"The {len(known)} episodes are numbered {span}"
            )
        if position in positions:
            raise DatasetFormatError(
                f"`episodes` names episode {index} twice", remedy="Name each once"
            )
        positions[position] = None
    return np.array(list(positions), np.int64)
