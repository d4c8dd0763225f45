"""reelseek: exactly the frames that a robot-learning sample needs, in any Python environment."""

from reelseek.datasets import Dataset, open_dataset
from reelseek.loader import make_loader
from reelseek.types import Frame, FrameBatch, Orientation, StreamInfo, VideoInfo
from reelseek.video import Video, open_video
from reelseek.video.backends import backend_names

__version__ = "0.1.0"

__all__ = [
    "Dataset",
    "Frame",
    "FrameBatch",
    "Orientation",
    "StreamInfo",
    "Video",
    "VideoInfo",
    "backend_names",
    "make_loader",
    "open_dataset",
    "open_video",
]
