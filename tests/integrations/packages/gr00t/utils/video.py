"""Behaves as GR00T-Dreams' module of this name does, its wrong answers included.

Written for these tests from what the functions are documented and known to do. The ``decord``
backend reads with decord, ``opencv`` with OpenCV, ``torchvision_av`` does with PyAV what its loop
over torchvision's reader does.
"""

from __future__ import annotations

from typing import Any

import av
import numpy as np

NO_OPTIONS: dict[str, Any] = {}


def get_frames_by_indices(
    video_path: str,
    indices: Any,
    video_backend: str = "decord",
    video_backend_kwargs: dict[str, Any] = NO_OPTIONS,
) -> Any:
    """Frames by number, (T, H, W, 3) uint8."""
    if video_backend == "decord":
        return _decord(video_path).get_batch(indices).asnumpy()
    if video_backend == "opencv":
        return _opencv(video_path, indices)
    raise NotImplementedError


def get_frames_by_timestamps(
    video_path: str,
    timestamps: Any,
    video_backend: str = "decord",
    video_backend_kwargs: dict[str, Any] = NO_OPTIONS,
) -> Any:
    """Frames by time, (T, H, W, 3) uint8."""
    if video_backend == "decord":
        reader = _decord(video_path)
        starts = reader.get_frame_timestamp(range(len(reader)))[:, 0]
        nearest = np.abs(starts[:, None] - np.asarray(timestamps)).argmin(axis=0)
        return reader.get_batch(nearest).asnumpy()
    if video_backend == "torchvision_av":
        return _first_after_the_key_frame(video_path, timestamps)
    raise NotImplementedError


def get_all_frames(
    video_path: str,
    video_backend: str = "decord",
    video_backend_kwargs: dict[str, Any] = NO_OPTIONS,
    resize_size: tuple[int, int] | None = None,
) -> Any:
    """Every frame, (N, H, W, 3) uint8."""
    if video_backend != "pyav":
        raise NotImplementedError
    frames = _all(video_path)
    if resize_size is not None:
        import cv2

        frames = np.array([cv2.resize(frame, resize_size) for frame in frames])
    return frames


def _decord(path: str) -> Any:
    import decord

    return decord.VideoReader(path)


def _opencv(path: str, indices: Any) -> Any:
    import cv2

    capture = cv2.VideoCapture(path)
    frames = []
    for index in indices:
        capture.set(cv2.CAP_PROP_POS_FRAMES, index)
        found, frame = capture.read()
        if not found:
            raise ValueError(f"Unable to read frame at index {index}")
        frames.append(frame)
    return np.array(frames)


def _all(path: str) -> Any:
    with av.open(path) as container:
        decoded = container.decode(video=0)
        return np.array([frame.to_ndarray(format="rgb24") for frame in decoded])


def _first_after_the_key_frame(path: str, timestamps: Any) -> Any:
    """As many frames as there are times, from the key frame before the first of them on."""
    frames: list[Any] = []
    with av.open(path) as container:
        stream = container.streams.video[0]
        assert stream.time_base is not None
        container.seek(int(timestamps[0] / stream.time_base), stream=stream)
        for frame in container.decode(stream):
            frames.append(frame.to_ndarray(format="rgb24"))
            assert frame.time is not None
            if frame.time >= timestamps[-1] or len(frames) >= len(timestamps):
                break
    return np.array(frames)
