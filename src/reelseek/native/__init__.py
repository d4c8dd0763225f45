"""Native libraries: making torchcodec load in this process."""

from reelseek.native._activate import Activation, activate
from reelseek.native._wheel_ffmpeg import prepare_wheel_ffmpeg

__all__ = ["Activation", "activate", "prepare_wheel_ffmpeg"]
