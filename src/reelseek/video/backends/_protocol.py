"""What a backend is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from reelseek.errors import DecodeError
from reelseek.index import FrameTable
from reelseek.index._stamp import Stamp
from reelseek.index._units import UnitTable
from reelseek.types import Pixels


class OpenRequest(NamedTuple):
    """What a backend is asked to open; a tuple, as one is made for each video, and soon."""

    path: str
    """An absolute path of a local file."""
    table: FrameTable
    """What frame numbers mean for this file."""
    device: str
    """``cpu``, ``cuda`` or ``cuda:N``."""
    threads: int
    """Threads that one decode may use; 0 lets FFmpeg choose."""
    units: UnitTable | str | None = None
    """The file's units, or why it can't be read by them; None where that isn't known yet."""
    stamp: Stamp | None = None
    """The file's when the table was made; None where that isn't known."""
    keeps_decoder: bool = False
    """True for a reader that goes through the file while others are read in turn: what decoders of
    one process share otherwise is its own."""


Targets = Sequence[Pixels] | Pixels
"""Where frames are written: indexed by their position in the request."""


class Decoder(Protocol):
    """Reads frames of one file by number.

    Threads: one call at a time; the caller locks. Fork: used only in the process that made it;
    the caller makes a new one in a child and never touches the parent's. Pickling: none.
    Errors: ``read`` raises CorruptVideoError or DecodeError and nothing of the native library's;
    after any error the caller drops the decoder.
    """

    def read(self, frames: Sequence[int], out: Targets) -> None:
        """Decode frames by number into memory that the caller owns.

        Args:
            frames: Numbers in display order, each in ``range(len(table))``; in any order,
                repeated or not.
            out: One (H, W, 3) uint8 array for each of ``frames``, or one (T, H, W, 3) array; on
                a GPU, tensors on that device.
        """
        ...

    def close(self) -> None:
        """Give back memory and file descriptors; no further reads."""
        ...


class Backend(Protocol):
    """A module that makes decoders."""

    def version(self) -> str:
        """The version of the package behind it.

        Raises:
            BackendUnavailableError: It isn't installed, or doesn't load; with the remedy.
        """
        ...

    def open_decoder(self, request: OpenRequest) -> Decoder:
        """Open one file.

        Raises:
            UnsupportedVideoError: It can't return this file's frames by number; with the reason.
            BackendUnavailableError: It isn't installed, or doesn't load.
            DeviceUnavailableError: It can't decode on the device asked for.
        """
        ...


def visits(frames: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Each distinct frame in ascending order, with the positions at which it was asked for."""
    places: dict[int, list[int]] = {}
    for position, frame in enumerate(frames):
        places.setdefault(frame, []).append(position)
    return iter(sorted(places.items()))


def check_size(request: OpenRequest, backend: str, frame: int, shape: Sequence[int]) -> None:
    """Refuse a decoded picture that isn't (H, W, 3) of the file's size.

    Raises:
        DecodeError: It is of another size, so the picture size changes within the file.
    """
    stream = request.table.stream
    if tuple(shape) != (stream.height, stream.width, 3):
        raise DecodeError(
            f"the decoder gave {shape[1]}x{shape[0]} pixels where the file's first frame has "
            f"{stream.width}x{stream.height}",
            remedy="Re-encode the file to one size, or pass backend='pyav'",
            path=request.path,
            frame=frame,
            backend=backend,
        )
