"""Where each frame of a video is: its time, and the key frame from which it is decoded."""

from reelseek.index._build import index_video
from reelseek.index._table import NO_PTS, FrameTable

__all__ = ["NO_PTS", "FrameTable", "index_video"]
