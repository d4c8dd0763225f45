"""Reading one video: frames by number or by time, whichever backend decodes them."""

from reelseek.video._open import open_video
from reelseek.video._video import Video

__all__ = ["Video", "open_video"]
