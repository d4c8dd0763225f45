"""Where each frame of a video is: its time, and the key frame from which it is decoded."""

from reelseek.index._build import index_tables, index_video
from reelseek.index._build_index import Failure, IndexReport, build_index
from reelseek.index._ready import DatasetIndex, ready_tables
from reelseek.index._sidecar import Sidecar
from reelseek.index._table import NO_PTS, FrameTable
from reelseek.index._video_tables import VideoTables

__all__ = [
    "NO_PTS",
    "DatasetIndex",
    "Failure",
    "FrameTable",
    "IndexReport",
    "Sidecar",
    "VideoTables",
    "build_index",
    "index_tables",
    "index_video",
    "ready_tables",
]
