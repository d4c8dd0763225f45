"""What the backends that decode with PyAV say of a file that they can't read on."""

from __future__ import annotations

from reelseek.errors import ChangedVideoError, CorruptVideoError, DecodeError

COPY_AGAIN = "Copy the file again from its source, or leave the episode out"


def unreadable(path: str, frame: int, backend: str, detail: str) -> CorruptVideoError:
    """FFmpeg failed on the data before a frame."""
    return CorruptVideoError(
        "the decoder can't read the data on the way to this frame",
        remedy=COPY_AGAIN,
        path=path,
        frame=frame,
        backend=backend,
        detail=detail,
    )


def invented(path: str, frame: int, backend: str) -> CorruptVideoError:
    """FFmpeg concealed damage in a frame."""
    return CorruptVideoError(
        "the decoder had to invent parts of this frame",
        remedy=COPY_AGAIN,
        path=path,
        frame=frame,
        backend=backend,
    )


def changed(path: str, backend: str) -> ChangedVideoError:
    """Another file has the name of the one that was opened."""
    return ChangedVideoError(
        "the file was changed since it was opened",
        remedy="Open the video, or the dataset, again",
        path=path,
        backend=backend,
    )


def passed(path: str, frame: int, backend: str) -> DecodeError:
    """A frame didn't come out where it should have."""
    return DecodeError(
        "the decoder passed this frame without returning it",
        remedy="The file is damaged there, or its index is: copy it again, or run "
        "`reelseek probe` on it",
        path=path,
        frame=frame,
        backend=backend,
    )
