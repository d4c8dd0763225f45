"""Looking into one file, in whatever process or on whatever machine the work is done.

What comes back are the file's facts, as JSON has them, without any judgement: they stay right when
the dataset's other files change, and a journal can keep them.
"""

from __future__ import annotations

import os
from typing import Any

from reelseek.care.verify._row_facts import row_facts
from reelseek.care.verify._video_facts import video_facts

PARQUET = ".parquet"


def check_file(key: str, *, root: str, level: str, fps: float | None) -> dict[str, Any]:
    """The facts of a video or parquet file.

    Args:
        key: Its path, relative to the dataset.
        root: The dataset's folder.
        level: ``quick``, or ``decode`` to decode every frame.
        fps: Frames a second of the dataset's rows; None where it isn't known.
    """
    path = os.path.join(root, key)
    if key.endswith(PARQUET):
        return row_facts(path, fps)
    return video_facts(path, is_decoded=level == "decode")
