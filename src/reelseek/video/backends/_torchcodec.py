"""The ``torchcodec`` backend: PyTorch's decoder, on the CPU or on a GPU.

Exact seek mode, one FFmpeg thread by default: on small frames more threads cost more than they
give. Its own scan must agree with the frame table, and every frame's time is compared with the
table's, so that a neighbour is never returned.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

import numpy as np

from reelseek.errors import (
    BackendUnavailableError,
    CorruptVideoError,
    DecodeError,
    DeviceUnavailableError,
    UnsupportedVideoError,
)
from reelseek.index import FrameTable
from reelseek.native import activate
from reelseek.native._activate import SWITCH, is_switched_off
from reelseek.native._printable import printable
from reelseek.native._prove import first_reason
from reelseek.video.backends._protocol import OpenRequest, Targets, check_size, visits

NAME = "torchcodec"


def version() -> str:
    """torchcodec's version."""
    _decoder_class()
    return importlib.metadata.version("torchcodec")


def open_decoder(request: OpenRequest) -> TorchcodecDecoder:
    """Open one file with torchcodec."""
    decoder_class = _decoder_class()
    _check_device(request.device)
    _refuse_what_it_gets_wrong(request)
    return TorchcodecDecoder(request, decoder_class)


def _decoder_class() -> Any:
    activate()
    try:
        from torchcodec.decoders import VideoDecoder
    except Exception as exc:  # a foreign package's import may raise anything
        raise _does_not_load(exc) from exc
    return VideoDecoder


def _does_not_load(exc: Exception) -> BackendUnavailableError:
    what = "torchcodec is installed and does not load"
    remedy = "Run `reelseek doctor` for the cause, or pass backend='pyav' meanwhile"
    if is_switched_off():
        what += f", and {SWITCH}=0 turns off what may mend it in this process"
        remedy = f"Unset {SWITCH}, or start it with `reelseek run -- python your_script.py`"
    detail = first_reason(str(exc)) or _last_line(exc)
    return BackendUnavailableError(what, remedy=remedy, backend=NAME, detail=printable(detail))


def _check_device(device: str) -> None:
    import torch

    if device == "cpu":
        return
    if not device.startswith("cuda"):
        raise DeviceUnavailableError(
            f"no device {device!r}", remedy="Use 'cpu', 'cuda' or 'cuda:N'", backend=NAME
        )
    if not torch.cuda.is_available():
        is_cpu_build = torch.version.cuda is None
        why = "this torch is built for the CPU" if is_cpu_build else "torch sees no GPU"
        raise DeviceUnavailableError(
            f"can't decode on {device!r}: {why}",
            remedy="Pass device='cpu', or install a CUDA build of torch on a machine with a GPU",
            backend=NAME,
        )


def _refuse_what_it_gets_wrong(request: OpenRequest) -> None:
    table = request.table
    reason = ""
    if not table.is_seekable:
        reason = "it finds frames by timestamp, and this file's don't tell its frames apart"
    elif table.has_partial_keys:
        reason = "it starts decoding at key frames, and some of this file's are no clean start"
    elif table.stream.orientation.is_mirrored:
        reason = "it turns frames for display and doesn't mirror them, as this file asks"
    if reason:
        raise UnsupportedVideoError(
            reason, remedy="Pass backend='pyav'", path=request.path, backend=NAME
        )


def _starts_in_hidden_frames(table: FrameTable) -> bool:
    """True for a trimmed file, whose first frame is decoded from one that isn't displayed."""
    return bool(table.entry[0] >= 0 and table.packet_pts[table.entry[0]] not in table.pts)


class TorchcodecDecoder:
    """Reads frames by number with one torchcodec VideoDecoder."""

    def __init__(self, request: OpenRequest, decoder_class: Any) -> None:
        self._request = request
        self._on_cpu = request.device == "cpu"
        table = request.table
        try:
            self._decoder = decoder_class(
                request.path,
                dimension_order="NHWC",
                num_ffmpeg_threads=request.threads,
                device=request.device,
                seek_mode="exact",
            )
        except (RuntimeError, ValueError) as exc:
            raise UnsupportedVideoError(
                "torchcodec can't open it",
                remedy="Pass backend='pyav'",
                path=request.path,
                backend=NAME,
                detail=_last_line(exc),
            ) from exc
        self._pts_seconds = table.pts_seconds()
        self._half_tick = float(table.stream.time_base) / 2
        reason = self._why_not()
        if reason:
            self.close()
            raise UnsupportedVideoError(
                reason, remedy="Pass backend='pyav'", path=request.path, backend=NAME
            )

    def _why_not(self) -> str:
        """Why what it found in the file differs from the frame table; empty where it doesn't."""
        table = self._request.table
        metadata = self._decoder.metadata
        counted = len(self._decoder)
        if counted != len(table) and not (table.is_cut_short and counted > len(table)):
            return f"it counts {counted} frames where FFmpeg displays {len(table)}"
        # Either may stand for the height: it is the coded picture's, turned or not.
        if {metadata.width, metadata.height} != {table.stream.width, table.stream.height}:
            return (
                f"it expects frames of {metadata.width}x{metadata.height} from the header, and "
                f"they are {table.stream.width}x{table.stream.height}"
            )
        if _starts_in_hidden_frames(table) and not self._finds_first_frame_again():
            return "it can't find the frames before the first key frame that is displayed"
        return ""

    def _finds_first_frame_again(self) -> bool:
        """True where frame 0 can be read after a seek away from it."""
        try:
            for frame in (len(self._pts_seconds) - 1, 0):
                returned = self._decoder.get_frame_at(frame).pts_seconds
                self._check_times([frame], np.array([returned]))
        except (RuntimeError, IndexError, ValueError):  # DecodeError is a RuntimeError
            return False
        return True

    def read(self, frames: Sequence[int], out: Targets) -> None:
        """Decode frames by number into ``out``."""
        if self._on_cpu:
            # One at a time, at the same cost: a batch copies frames on torch's OpenMP threads,
            # which don't exist in a forked process, and it would wait for them for ever.
            for frame, positions in visits(frames):
                decoded = self._decoded([frame], self._decoder.get_frame_at, frame)
                self._check_times([frame], np.array([decoded.pts_seconds]))
                self._write(decoded.data.numpy(), frame, [out[place] for place in positions])
        else:
            batch = self._decoded(frames, self._decoder.get_frames_at, list(frames))
            self._check_times(frames, batch.pts_seconds.numpy())
            for place, frame in enumerate(frames):
                self._write(batch.data[place], frame, [out[place]])

    def _decoded(self, frames: Sequence[int], method: Any, argument: Any) -> Any:
        try:
            return method(argument)
        except (RuntimeError, IndexError, ValueError) as exc:
            raise CorruptVideoError(
                f"torchcodec can't decode the way to {_few(frames)}",
                remedy="Copy the file again from its source, or leave the episode out",
                path=self._request.path,
                frame=frames[0] if len(frames) == 1 else None,
                backend=NAME,
                detail=_last_line(exc),
            ) from exc

    def _write(self, picture: Any, frame: int, targets: Sequence[Any]) -> None:
        check_size(self._request, NAME, frame, picture.shape)
        for target in targets:
            target[...] = picture

    def close(self) -> None:
        """Drop the decoder, which closes its file."""
        del self._decoder

    def _check_times(self, frames: Sequence[int], returned: Any) -> None:
        expected = self._pts_seconds[np.asarray(frames)]
        wrong = np.flatnonzero(np.abs(returned - expected) > self._half_tick)
        if len(wrong):
            first = int(wrong[0])
            raise DecodeError(
                f"torchcodec returned the frame at {returned[first]:.6f} s instead of the one at "
                f"{expected[first]:.6f} s",
                remedy="Pass backend='pyav' for this file",
                path=self._request.path,
                frame=frames[first],
                backend=NAME,
            )


def _few(frames: Sequence[int]) -> str:
    if len(frames) == 1:
        return "this frame"
    listed = ", ".join(map(str, frames[:4]))
    return f"one of the frames {listed}" + (f", ... ({len(frames)} in all)" * (len(frames) > 4))


def _last_line(exc: BaseException) -> str:
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return lines[-1] if lines else type(exc).__name__
