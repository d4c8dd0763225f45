"""Opening a video: the backend is chosen once, here, and never changes which frame is returned."""

from __future__ import annotations

import os

from reelseek.errors import (
    BackendError,
    DeviceUnavailableError,
    UnknownBackendError,
    UnsupportedVideoError,
)
from reelseek.index import VideoTables, index_tables, index_video, ready_tables
from reelseek.index._stamp import stamp_of
from reelseek.video._video import Choice, Video
from reelseek.video.backends import (
    AUTO_ORDER,
    ON_GPU,
    OpenRequest,
    backend_names,
    is_backend,
    open_decoder,
)

PIN = "REELSEEK_BACKEND"
"""Environment variable that names the backend for ``backend="auto"``."""


def open_video(
    path: str | os.PathLike[str],
    *,
    backend: str = "auto",
    device: str = "cpu",
    threads: int = 1,
) -> Video:
    """Open a video file to read frames by number or by time.

    Args:
        path: A local file.
        backend: ``auto``, or one of ``reelseek.backend_names()``. ``auto`` takes the first of
            indexed, torchcodec, pyav and decord that can keep frame numbers exact for this file;
            the environment variable REELSEEK_BACKEND names another choice.
        device: ``cpu``, ``cuda`` or ``cuda:N``. Only torchcodec decodes on a GPU.
        threads: Threads that the decoder may use; 0 lets FFmpeg choose. The indexed engine uses
            one, whatever is allowed, which is the fastest on small frames.

    Returns:
        A reader to be used in a ``with`` statement. It can be pickled and used after a fork.

    Raises:
        VideoNotFoundError: There is no such file.
        NotAVideoError: It is a folder, text, a Git LFS pointer, empty, or has no video stream.
        CorruptVideoError: Its index is missing or damaged.
        UnsupportedVideoError: No backend can return its frames by number.
        UnknownBackendError: There is no backend of that name.
        BackendUnavailableError: The backend named isn't installed, or does not load.
        DeviceUnavailableError: The device isn't there, or the backend can't decode on it.

    Example:
        >>> import reelseek
        >>> with reelseek.open_video(sample_video) as video:
        ...     batch = video.get_frames_at([0, 16])
        >>> batch.numpy().shape
        (2, 128, 128, 3)
    """
    path = os.path.abspath(os.fspath(path))
    return open_with_tables(path, None, backend=backend, device=device, threads=threads)


def open_with_tables(
    path: str,
    tables: VideoTables | None,
    *,
    backend: str = "auto",
    device: str = "cpu",
    threads: int = 1,
) -> Video:
    """``open_video`` for a file whose tables may be there already.

    Args:
        path: An absolute path.
        tables: What is known of the file as it is now; None looks for its own index file, and
            else into the video.
        backend: As for ``open_video``, and so are the others.
        device: As above.
        threads: As above.
    """
    if threads < 0:
        raise ValueError(f"threads={threads}: give 0 (FFmpeg chooses) or more")
    backend, origin = _pinned(backend, device)
    tables = tables or ready_tables(path)
    if tables is None and device == "cpu" and backend in ("auto", "indexed"):
        tables = index_tables(path)
    if tables is not None:
        frames, units, stamp = tables.frames, tables.units, tables.stamp
    else:  # no unit is asked for
        stamp = stamp_of(path)
        frames, units = index_video(path), None
    request = OpenRequest(path, frames, device, threads, units, stamp)
    return Video(path, request.table, _choose(request, backend, origin))


def _pinned(backend: str, device: str) -> tuple[str, str]:
    """The backend asked for, and by what."""
    origin = "asked for"
    if backend == "auto" and os.environ.get(PIN):
        backend, origin = os.environ[PIN], f"set by {PIN}"
    if backend != "auto" and not is_backend(backend):
        raise UnknownBackendError(
            f"no backend {backend!r} ({origin})",
            remedy=f"Choose one of: auto, {', '.join(backend_names())}",
        )
    if backend == "auto" and device != "cpu":
        return ON_GPU, f"the only one for {device}"
    return backend, origin


def _choose(request: OpenRequest, backend: str, origin: str) -> Choice:
    """Open the file with the first backend that can, and say why."""
    if backend != "auto":
        return Choice(backend, origin, request, open_decoder(backend, request))
    refusals: list[str] = []
    for name in AUTO_ORDER:
        try:
            decoder = open_decoder(name, request)
        except DeviceUnavailableError:
            raise
        except (UnsupportedVideoError, BackendError) as exc:
            refusals.append(f"{name}: {exc.what}")
        else:
            reason = f"not {'; not '.join(refusals)}" if refusals else "the first choice"
            return Choice(name, reason, request, decoder)
    raise UnsupportedVideoError(
        f"no backend reads it: {'; '.join(refusals)}",
        remedy="Run `reelseek probe` on it for what each decoder says",
        path=request.path,
    )
