"""Everything that reelseek raises on purpose.

::

    ReelseekError
    ├── VideoError                          a video, or a read from one
    │   ├── VideoNotFoundError              (FileNotFoundError)
    │   ├── NotAVideoError                  (ValueError)  folder, text, LFS pointer, empty file
    │   ├── CorruptVideoError               (ValueError)  cut short or damaged
    │   ├── ChangedVideoError               (ValueError)  another file than when it was opened
    │   ├── UnsupportedVideoError           (ValueError)  no backend can keep the promise for it
    │   ├── FrameIndexError                 (IndexError)  no such frame number
    │   ├── TimeRangeError                  (ValueError)  no frame at that time
    │   ├── DecodeError                     (RuntimeError) another frame came, or none
    │   ├── ClosedVideoError                (ValueError)  used after close()
    │   └── QualityError                    (ValueError)  an encoding that lost too much
    ├── BackendError
    │   ├── UnknownBackendError             (ValueError)  no backend of that name
    │   ├── BackendUnavailableError         (ImportError) not installed, or does not load
    │   └── DeviceUnavailableError          (RuntimeError) no such device here
    ├── DatasetError                        a dataset, or a sample from one
    │   ├── DatasetNotFoundError            (FileNotFoundError)
    │   ├── DatasetFormatError              (ValueError)  a file of the dataset says what can't be
    │   ├── UnsupportedDatasetError         (ValueError)  a version that is not known
    │   ├── FeatureNotFoundError            (KeyError)    no such camera, feature or episode
    │   ├── SampleIndexError                (IndexError)  no such sample
    │   ├── UnsafePathError                 (ValueError)  a template that leaves the root
    │   ├── VideoLengthError                (ValueError)  a video shorter than its episode
    │   └── TimestampToleranceError         (ValueError)  no frame near enough to a timestamp
    ├── IndexFileError                      (ValueError)  an index file that can't be used
    ├── ElfError                            (ValueError)  a library file that can't be read
    ├── LaunchError                         (ValueError)  a batch job that can't be made or sent
    ├── LoaderStateError                    (ValueError)  a state that this loader can't go on from
    ├── OutputError                         (ValueError)  a place where nothing can be written
    └── DependencyError                     (ImportError) an optional package is missing

Each class is also the builtin named beside it, so ``except FileNotFoundError`` works. The text of
an error says where, what and what to do; the same facts are its attributes.
"""

from __future__ import annotations

import os
from typing import Any


class ReelseekError(Exception):
    """The root of the tree.

    Attributes:
        what: The fault, in one sentence.
        remedy: What to do about it; empty where nothing can be said.
        path: The file or folder that it is about.
        frame: The frame number asked for, in display order.
        byte_offset: The position in the file, in bytes.
        backend: The name of the backend that was reading.
        detail: The native library's last word.
    """

    def __init__(
        self,
        what: str,
        *,
        remedy: str = "",
        path: str | os.PathLike[str] | None = None,
        frame: int | None = None,
        byte_offset: int | None = None,
        backend: str | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(what)  # first: ImportError has a `path` of its own, which it clears
        self.what = what
        self.remedy = remedy
        self.path = None if path is None else os.fspath(path)
        self.frame = frame
        self.byte_offset = byte_offset
        self.backend = backend
        self.detail = detail

    def __str__(self) -> str:
        facts = (
            ("", self.path),
            ("frame ", self.frame),
            ("byte ", self.byte_offset),
            ("backend ", self.backend),
        )
        where = ", ".join(f"{label}{value}" for label, value in facts if value is not None)
        text = f"{where}: {self.what}" if where else self.what
        if self.detail:
            text += f" ({self.detail})"
        if self.remedy:
            text += f". {self.remedy}"
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders (DataLoader workers), where keyword-only fields need help.
        fields = {name: getattr(self, name) for name in _FIELDS}
        return _restored, (type(self), fields, self.__dict__)


def _restored(
    cls: type[ReelseekError], fields: dict[str, Any], state: dict[str, Any]
) -> ReelseekError:
    error = cls(**fields)
    error.__dict__.update(state)
    return error


_FIELDS = ("what", "remedy", "path", "frame", "byte_offset", "backend", "detail")


class VideoError(ReelseekError):
    """A video file, or a read from one, is at fault."""


class VideoNotFoundError(VideoError, FileNotFoundError):
    """There is no file of that name."""


class NotAVideoError(VideoError, ValueError):
    """The file is no video: a folder, text, a Git LFS pointer, empty, or without a video stream."""


class CorruptVideoError(VideoError, ValueError):
    """The file is cut short or damaged where it was read."""


class ChangedVideoError(VideoError, ValueError):
    """The file isn't the one that was opened: it was written to, or another has its name."""


class UnsupportedVideoError(VideoError, ValueError):
    """The backend can't return this file's frames by number, or can't decode it at all."""


class FrameIndexError(VideoError, IndexError):
    """The video has no frame of that number."""


class TimeRangeError(VideoError, ValueError):
    """No frame is on display at that time."""


class DecodeError(VideoError, RuntimeError):
    """The decoder failed, or returned another frame than the one asked for."""


class ClosedVideoError(VideoError, ValueError):
    """The video was used after it was closed."""


class QualityError(VideoError, ValueError):
    """A newly encoded video is further from its source than allowed."""


class BackendError(ReelseekError):
    """A backend is at fault, whatever the file."""


class UnknownBackendError(BackendError, ValueError):
    """There is no backend of that name."""


class BackendUnavailableError(BackendError, ImportError):
    """The backend's package isn't installed, or does not load."""


class DeviceUnavailableError(BackendError, RuntimeError):
    """The device asked for isn't there."""


class DatasetError(ReelseekError):
    """A dataset, or a sample from one, is at fault."""


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """The folder holds no dataset, or a file of the dataset is missing."""


class DatasetFormatError(DatasetError, ValueError):
    """A file of the dataset is damaged, or disagrees with another one."""


class UnsupportedDatasetError(DatasetError, ValueError):
    """The dataset's version is not one that reelseek reads."""


class FeatureNotFoundError(DatasetError, KeyError):
    """The dataset has no camera, feature or episode of that name."""


class SampleIndexError(DatasetError, IndexError):
    """The dataset has no sample of that number."""


class UnsafePathError(DatasetError, ValueError):
    """A path template in the dataset leaves the dataset's folder, or isn't a plain template."""


class VideoLengthError(DatasetError, ValueError):
    """A video holds fewer frames than its episode."""


class TimestampToleranceError(DatasetError, ValueError):
    """The frame nearest to a timestamp is further from it than the tolerance."""


class IndexFileError(ReelseekError, ValueError):
    """An index file is missing, damaged, cut short or of another version, or can't be written."""


class ElfError(ReelseekError, ValueError):
    """A program, library or linker cache is no such file, is cut short, or contradicts itself.

    ``what`` names the structure and ``byte_offset`` the place.
    """


class LaunchError(ReelseekError, ValueError):
    """A batch job can't be made as asked, or the cluster doesn't take it."""


class LoaderStateError(ReelseekError, ValueError):
    """A loader's state is of another order, seed, batch size or number of processes."""


class OutputError(ReelseekError, ValueError):
    """Something stands where output is to be written, is at work there, or it has no room."""


class DependencyError(ReelseekError, ImportError):
    """A package that this needs is missing."""
