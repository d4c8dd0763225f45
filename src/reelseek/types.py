"""The records that readers return: frames, batches of frames, and facts about a video.

Pixels are RGB, uint8, height x width x channel in memory. ``numpy()`` gives that memory as it is;
``torch()`` gives the same memory seen as channels first, which PyTorch calls channels-last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reelseek.errors import DependencyError

if TYPE_CHECKING:
    import torch

Pixels = Any
"""A uint8 array (NumPy), or a tensor where the frames were decoded on a GPU."""


def _torch_tensor(pixels: Pixels) -> torch.Tensor:
    try:
        import torch
    except ImportError as exc:
        raise DependencyError(
            "torch() needs PyTorch, which isn't installed",
            remedy="Run `pip install 'reelseek[torch]'`, or use numpy()",
        ) from exc
    if isinstance(pixels, torch.Tensor):
        return pixels
    return torch.from_numpy(pixels)


def _numpy_array(pixels: Pixels) -> NDArray[np.uint8]:
    if isinstance(pixels, np.ndarray):
        return pixels
    array: NDArray[np.uint8] = pixels.cpu().numpy()
    return array


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Frame:
    """One frame of a video."""

    pixels: Pixels
    """(H, W, 3), RGB, uint8."""
    index: int
    """The frame's number in display order, from 0."""
    pts_seconds: float
    """When the frame appears, in seconds; NaN where the file has no timestamps."""
    duration_seconds: float
    """How long the frame is on display, in seconds."""

    def numpy(self) -> NDArray[np.uint8]:
        """The pixels as an array (H, W, 3), RGB, uint8; no copy on the CPU."""
        return _numpy_array(self.pixels)

    def torch(self) -> torch.Tensor:
        """The pixels as a tensor (3, H, W), RGB, uint8, of the same memory."""
        return _torch_tensor(self.pixels).permute(2, 0, 1)

    def __repr__(self) -> str:
        shape = tuple(self.pixels.shape)
        return f"Frame(index={self.index}, shape={shape}, pts_seconds={self.pts_seconds:.6f})"


# Without slots: what is looked up late is kept among a batch's other attributes.
@dataclass(frozen=True, repr=False, eq=False)
class FrameBatch:
    """Several frames of one video, in the order in which they were asked for."""

    pixels: Pixels
    """(T, H, W, 3), RGB, uint8, contiguous."""
    indices: NDArray[np.int64]
    """(T,) frame numbers in display order."""
    pts_seconds: NDArray[np.float64]
    """(T,) when each frame appears, in seconds; NaN where the file has no timestamps."""
    duration_seconds: NDArray[np.float64]
    """(T,) how long each frame is on display, in seconds."""

    def __post_init__(self) -> None:
        count = len(self.indices)
        if not count == len(self.pixels) == len(self.pts_seconds) == len(self.duration_seconds):
            raise ValueError(f"the fields of a FrameBatch of {count} differ in length")

    def numpy(self) -> NDArray[np.uint8]:
        """The pixels as an array (T, H, W, 3), RGB, uint8, contiguous; no copy on the CPU."""
        return _numpy_array(self.pixels)

    def torch(self) -> torch.Tensor:
        """The pixels as a tensor (T, 3, H, W), RGB, uint8, of the same memory."""
        return _torch_tensor(self.pixels).permute(0, 3, 1, 2)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, position: int) -> Frame:
        return Frame(
            pixels=self.pixels[position],
            index=int(self.indices[position]),
            pts_seconds=float(self.pts_seconds[position]),
            duration_seconds=float(self.duration_seconds[position]),
        )

    def __iter__(self) -> Iterator[Frame]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return f"FrameBatch(indices={self.indices.tolist()}, shape={tuple(self.pixels.shape)})"


@dataclass(frozen=True, slots=True)
class Orientation:
    """How a coded picture is turned for display: first swapped, then flipped.

    Source: ISO/IEC 14496-12 6.2.2 (the transformation matrix of a track).
    """

    swaps_axes: bool = False
    """True where rows become columns."""
    flips_x: bool = False
    """True where left and right change places."""
    flips_y: bool = False
    """True where top and bottom change places."""

    @classmethod
    def from_display_matrix(cls, matrix: tuple[int, ...]) -> Orientation:
        """From nine numbers in row order; ValueError for a turn that isn't by a right angle."""
        a, b, _u, c, d, *_rest = matrix
        if a and d and not b and not c:
            return cls(flips_x=a < 0, flips_y=d < 0)
        if b and c and not a and not d:
            return cls(swaps_axes=True, flips_x=c < 0, flips_y=b < 0)
        raise ValueError(f"a display matrix that is no turn by a right angle: {matrix}")

    @property
    def is_identity(self) -> bool:
        """True where the picture is displayed as it is coded."""
        return not (self.swaps_axes or self.flips_x or self.flips_y)

    @property
    def is_mirrored(self) -> bool:
        """True where no rotation alone gives the displayed picture."""
        return self.swaps_axes ^ self.flips_x ^ self.flips_y

    def apply(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A view of a coded picture (H, W, ...) as it is displayed."""
        if self.is_identity:
            return picture
        if self.swaps_axes:
            picture = picture.swapaxes(0, 1)
        return picture[:: -1 if self.flips_y else 1, :: -1 if self.flips_x else 1]

    def __str__(self) -> str:
        names = (("swapped", self.swaps_axes), ("mirrored x", self.flips_x),
                 ("mirrored y", self.flips_y))  # fmt: skip
        return ", ".join(name for name, holds in names if holds) or "upright"


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What a file says about its video stream."""

    container: str
    """The container's short names, as FFmpeg writes them (``mov,mp4,m4a,3gp,3g2,mj2``)."""
    codec: str
    """The codec's name (``av1``, ``h264``, ``hevc``, ``vp9``)."""
    width: int
    """Width as displayed, in pixels: after rotation."""
    height: int
    """Height as displayed, in pixels: after rotation."""
    pixel_format: str
    """FFmpeg's name of the coded pixel format (``yuv420p``, ``yuv420p10le``)."""
    color_matrix: int
    """Which YUV this is, as ITU-T H.273 table 4 numbers it: 1 BT.709, 5 and 6 BT.601, 9 BT.2020,
    2 where the file doesn't say, which is read as BT.601."""
    orientation: Orientation
    """How the coded picture is turned for display."""
    time_base: Fraction
    """Seconds per tick of the stream's clock."""
    average_fps: Fraction | None
    """Frames a second on average, from the header; None where it doesn't say."""
    num_frames_from_header: int | None
    """The number of frames that the header lists; None where it doesn't say."""


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """What is known of an open video."""

    path: str
    """The file."""
    stream: StreamInfo
    """What the file says of its video stream."""
    num_frames: int
    """The number of frames that can be read."""
    duration_seconds: float
    """From the first frame's start to the last frame's end, in seconds."""
    key_frames: NDArray[np.int64]
    """Numbers of the frames that are key frames."""
    backend: str
    """The backend that reads this video."""
    backend_reason: str
    """Why this backend, and why not the ones before it."""
    notes: tuple[str, ...]
    """What is unusual in the file and how it is handled."""

    @property
    def codec(self) -> str:
        """The codec's name."""
        return self.stream.codec

    @property
    def width(self) -> int:
        """Width as displayed, in pixels."""
        return self.stream.width

    @property
    def height(self) -> int:
        """Height as displayed, in pixels."""
        return self.stream.height

    @property
    def time_base(self) -> Fraction:
        """Seconds per tick of the stream's clock."""
        return self.stream.time_base

    @property
    def mean_gop(self) -> float:
        """Frames per key frame."""
        return self.num_frames / max(1, len(self.key_frames))
