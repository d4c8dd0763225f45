"""Looking into one file, in whatever process or on whatever machine the work is done.

What comes back are the file's facts, as JSON has them, without any judgement: they stay right when
the dataset's other files change, and a journal can keep them. So what is the machine's fault, as a
disk that isn't mounted there, must not be among them.
"""

from __future__ import annotations

import os
import stat
from typing import Any

from reelseek.care.verify._row_facts import row_facts
from reelseek.care.verify._video_facts import video_facts

PARQUET = ".parquet"
CHUNK_BYTES = 1 << 20


def check_file(key: str, *, root: str, level: str, fps: float | None) -> dict[str, Any]:
    """The facts of a video or parquet file.

    Args:
        key: Its path, relative to the dataset; it was there when the files were listed.
        root: The dataset's folder.
        level: ``quick``, or ``decode`` to decode every frame.
        fps: Frames a second of the dataset's rows; None where it isn't known.

    Raises:
        OSError: The file isn't there any more, may not be read, or its disk fails. Another attempt
            or another machine may do better.
    """
    path = os.path.join(root, key)
    facts = _facts(path, level, fps)
    if _is_faulty(facts):
        # FFmpeg and Arrow take a disk's fault for the file's. If all of it can be read, whatever
        # is wrong with the file is there again.
        _read_through(path)
        facts = _facts(path, level, fps)
    return facts


def _facts(path: str, level: str, fps: float | None) -> dict[str, Any]:
    if path.endswith(PARQUET):
        return row_facts(path, fps)
    return video_facts(path, is_decoded=level == "decode")


def _is_faulty(facts: dict[str, Any]) -> bool:
    """True where something can't be read, by the file's fault or the disk's."""
    decoded = facts.get("decoded")
    is_short = decoded and (decoded["fault"] or decoded["num_frames"] != facts["num_frames"])
    return bool("fault" in facts or facts.get("cut") or is_short)


def _read_through(path: str) -> None:
    """Read a file to its end, for the errors that this raises; pipes and folders are left alone."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return
    with open(path, "rb", buffering=0) as file:
        while file.read(CHUNK_BYTES):
            pass
