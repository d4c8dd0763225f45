"""Opening a file for FFmpeg: what is certainly no video is told apart before FFmpeg sees it.

A dataset's files are not trusted. FFmpeg gets a plain file path, the formats that hold recorded
video and the file protocol, so that a playlist in disguise can't make it open anything else.
"""

from __future__ import annotations

import functools
import os
import stat
from typing import TYPE_CHECKING, Any

from reelseek.bitstream import matroska_end
from reelseek.errors import CorruptVideoError, NotAVideoError, VideoError, VideoNotFoundError

if TYPE_CHECKING:
    import av.container

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,ogg,ivf,obu,h264,hevc,m4v,nut,asf,"
    "mpegvideo,mjpeg,gif,apng,yuv4mpegpipe"
)
LFS_START = b"version https://git-lfs"
HEAD_BYTES = 512


def open_container(path: str) -> av.container.InputContainer:
    """Open a video file with PyAV.

    Raises:
        VideoNotFoundError: There is no such file.
        NotAVideoError: It is a folder, empty, text, a Git LFS pointer, or nothing FFmpeg knows.
        CorruptVideoError: It starts as a video, and its index is missing or damaged.
    """
    head = _checked_head(path)
    import av

    # PyAV 19 replaces what isn't UTF-8 in metadata by itself; the others are to be told.
    told: dict[str, Any] = {"metadata_errors": "replace"} if pyav_major() < 19 else {}
    options = {"protocol_whitelist": "file", "format_whitelist": FORMATS}
    try:
        container: av.container.InputContainer = av.open(ffmpeg_name(path), options=options, **told)
    except (av.error.FFmpegError, OSError, ValueError) as exc:
        raise _explained(path, head, str(exc)) from exc
    return container


@functools.cache
def pyav_major() -> int:
    """PyAV's major release, by which its functions differ."""
    import av

    return int(av.__version__.partition(".")[0])


def best_video_stream(container: av.container.InputContainer) -> Any:
    """The video stream that FFmpeg, and so every backend, takes by default; None without one."""
    return container.streams.best("video")


def is_cut(path: str) -> bool:
    """True where a Matroska file has fewer bytes than it says."""
    end = matroska_end(_checked_head(path))
    return end is not None and end > os.stat(path).st_size


def ffmpeg_name(path: str) -> str:
    """The path as FFmpeg's file protocol takes it: never read as another protocol's address."""
    return "file:" + os.path.abspath(path)


def check_is_file(path: str) -> int:
    """The size in bytes of a regular, non-empty file.

    Raises:
        VideoNotFoundError: There is no such file, or it can't be read.
        NotAVideoError: It is a folder, a device or an empty file.
    """
    try:
        status = os.stat(path)
    except OSError as exc:
        broken = os.path.islink(path)
        raise VideoNotFoundError(
            "a symbolic link to a file that doesn't exist" if broken else "no such file",
            remedy="Check the path, and that the disk or NAS is mounted on this machine",
            path=path,
            detail=exc.strerror or "",
        ) from exc
    if stat.S_ISDIR(status.st_mode):
        raise NotAVideoError(
            "a folder, not a video",
            remedy="Give a video file; a dataset's folder is opened with reelseek.open_dataset",
            path=path,
        )
    if not stat.S_ISREG(status.st_mode):
        raise NotAVideoError(
            "a device or pipe, not a file", remedy="Copy it to a file first", path=path
        )
    if status.st_size == 0:
        raise NotAVideoError("an empty file", remedy="Copy or record it again", path=path)
    return status.st_size


def _checked_head(path: str) -> bytes:
    check_is_file(path)
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as exc:
        raise VideoNotFoundError(
            "the file can't be read",
            remedy="Check its permissions",
            path=path,
            detail=exc.strerror or "",
        ) from exc
    if head.startswith(LFS_START):
        raise NotAVideoError(
            "a Git LFS pointer, not the video itself",
            remedy="Run `git lfs pull` in the dataset's folder",
            path=path,
        )
    return head


def _explained(path: str, head: bytes, detail: str) -> VideoError:
    if b"\0" not in head and _is_text(head):
        return NotAVideoError(
            "a text file, not a video",
            remedy=f"It starts with {head[:40].decode(errors='replace')!r}",
            path=path,
            detail=detail,
        )
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"free", b"wide"):
        return CorruptVideoError(
            "an MP4 file without a readable index (moov): it was cut short, or its recording "
            "never finished",
            remedy="Copy it again from its source, and compare the sizes",
            path=path,
            detail=detail,
        )
    return NotAVideoError(
        "not a video that FFmpeg knows",
        remedy="Check that it is the file you mean, or copy it again from its source",
        path=path,
        detail=detail,
    )


def _is_text(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as exc:
        return exc.start > 0 and exc.start >= len(head) - 3  # a character cut at the end
    return True
