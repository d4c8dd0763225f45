"""Every backend against the oracle, over the whole corpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from reelseek.bench._torchvision_loading import import_peer
from tests.conftest import skip_without
from tests.video.contract import BackendContract

# Backends that find frames by timestamp can't tell these files' frames apart by it.
BY_TIMESTAMP = {
    "joined.mp4": "time",  # the join repeats timestamps
    "no_timestamps.h264": "time",
    "decoding_times.mp4": "time",  # the times are in another order than the frames
    "vp8.webm": "time",  # a hidden frame has the timestamp of the one that is shown next
    # Timestamps that FFmpeg makes up as it reads, otherwise after a seek.
    "mpeg2.mpg": "time",
    "h264.avi": "time",
    "h264.ts": "time",
}
NO_AV1 = (
    "av1_g2.mp4", "av1_g20.mp4", "av1_default.mp4", "av1_libaom.mp4", "av1_rav1e.mp4", "av1.webm",
    "av1.mkv", "ten_bit_av1.mp4", "av1_faststart.mp4", "noise_in_av1.mp4", "zeroed_tail_av1.mp4",
    "av1_forward_key.mp4",
)  # fmt: skip
# Their parameter sets change, and decoding starts only where all of them are sent.
SETS_CHANGE = ("sets_once.mp4", "sets_in_b_frame.mp4")


class TestIndexed(BackendContract):
    name = "indexed"
    package = "av"
    refuses: ClassVar[Mapping[str, str]] = {
        # Without times that tell frames apart, their packets aren't known.
        **dict.fromkeys(BY_TIMESTAMP, "start of the file"),
        **dict.fromkeys(SETS_CHANGE, "start of the file"),
        "container_colours.mkv": "container says which colours",
        **dict.fromkeys(("mpeg2.mpg", "mjpeg.avi", "rgb.mkv"), "piece by piece"),
        # Its decoder guesses the encoder's faults from what it saw before, over a reset too.
        "mpeg4.mp4": "piece by piece",
    }


class TestPyav(BackendContract):
    name = "pyav"
    package = "av"
    refuses: ClassVar[Mapping[str, str]] = {}  # it is the one that reads everything


class TestTorchcodec(BackendContract):
    name = "torchcodec"
    package = "torchcodec"
    refuses: ClassVar[Mapping[str, str]] = {
        **BY_TIMESTAMP,
        **dict.fromkeys(SETS_CHANGE, "no clean start"),
        # It seeks to what the container marks as key frames; these are no IDR pictures.
        "open_gop.mp4": "no clean start",
        "intra_refresh.mp4": "no clean start",
        # Some of the packets marked as key frames hold zeros.
        "zeroed_tail_av1.mp4": "no clean start",
        # Its index leaves out the hidden key frame that the first frames need.
        "hevc_trimmed.mp4": "before the first key frame",
        "vp9_trimmed.mp4": "before the first key frame",
        # It rotates by the display matrix and drops the mirroring in it.
        "flipped.mp4": "mirror",
    }


class TestDecord(BackendContract):
    name = "decord"
    package = "decord"
    decodes_ahead = True
    refuses: ClassVar[Mapping[str, str]] = {
        **BY_TIMESTAMP,
        # It carries FFmpeg 4.1, built without dav1d.
        **dict.fromkeys(NO_AV1, "no AV1 decoder"),
        # It seeks wrong in these codecs, and returns the frames beside the ones asked for.
        **dict.fromkeys(
            ("hevc.mp4", "hevc_closed_gop.mp4", "hevc_open_gop.mp4", "hevc_short_gop.mp4",
             "hevc_trimmed.mp4", "ten_bit_hevc.mp4", "noise_in_hevc.mp4", "mjpeg.avi",
             "mpeg2.mpg", "mpeg4.mp4", "rgb.mkv", "open_gop.mp4", "intra_refresh.mp4",
             *SETS_CHANGE),
            "neighbouring frames",
        ),
        # It ignores edit lists, and counts what they hide.
        "trimmed.mp4": "it counts 120",
        "vp9_trimmed.mp4": "it counts 120",
        "edit_list_ignored_tail.mp4": "it counts 26",
        # It takes the first video stream, not the default one.
        "two_videos.mkv": "first video stream",
        # Its B-frames at the start are gone with the samples that the table leaves out.
        "fewer_listed.mp4": "at 0 s",
        "two_sizes.webm": "sizes differ",
        # Its clock starts at the first frame; far from it, it aborts the process.
        "starts_late.mp4": "at 0 s",
        "no_moov_duration.mp4": "at 0 s",
        "huge_times.mkv": "at 0 s",
        "cut_fragmented.mp4": "at 0 s",
        # It rotates by 90 degrees and not by 180, and mirrors nothing.
        "rotated.mp4": "turns frames",
        "upside_down.mp4": "turns frames",
        "flipped.mp4": "turns frames",
        "turned_movie.mp4": "turns frames",
        # It scales the half-size colour planes of an odd size by another filter.
        "odd_size_420.mp4": "odd size",
        # It reads all packets when it opens a file, and stops at the first that is cut.
        "cut_moov_in_front.mp4": "can't open",
    }  # fmt: skip


class TestOpencv(BackendContract):
    name = "opencv"
    package = "cv2"
    ten_bit_levels = 2  # its scaler rounds 10 bits to 8 in another place
    refuses: ClassVar[Mapping[str, str]] = {
        **BY_TIMESTAMP,
        # The wheel's FFmpeg has no software decoder for AV1.
        **dict.fromkeys(NO_AV1, "can't decode av1"),
        # It seeks to key frames, and these are no IDR pictures, or lack their parameter sets.
        **dict.fromkeys(("open_gop.mp4", "intra_refresh.mp4", *SETS_CHANGE), "no clean start"),
        # Some of the packets marked as key frames hold zeros.
        "zeroed_tail_av1.mp4": "no clean start",
        "flipped.mp4": "mirror",  # it rotates by the display matrix and drops the mirroring in it
        # It takes the first video stream, and the first picture size.
        "two_videos.mkv": "first video stream",
        "two_sizes.webm": "sizes differ",
        # It converts with FFmpeg's default matrix, whatever the file says.
        "bt709_limited_tagged.mp4": "BT.601",
        "bt709_full_tagged.mp4": "BT.601",
        "container_colours.mkv": "BT.601",
    }


class TestTorchvision(BackendContract):
    name = "torchvision"
    package = "torchvision"
    step = 8  # it decodes from the key frame on for each read, in Python
    refuses: ClassVar[Mapping[str, str]] = {
        **BY_TIMESTAMP,
        "two_videos.mkv": "first video stream",
        # It scales the half-size colour planes of an odd size by another filter.
        "odd_size_420.mp4": "odd size",
        # It hands out pictures as they are coded.
        "rotated.mp4": "turn frames",
        "upside_down.mp4": "turn frames",
        "flipped.mp4": "turn frames",
        "turned_movie.mp4": "turn frames",
    }

    @pytest.fixture(autouse=True)
    def _has_video_reader(self, _installed: None) -> None:
        io = import_peer("torchvision.io")  # its image extension warns that it doesn't load
        if not hasattr(io, "VideoReader"):
            skip_without(self.name, "this torchvision has no video reader: 0.26 removed it")
