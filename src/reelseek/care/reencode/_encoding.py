"""How videos are encoded: codec, group of pictures, quality, size."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Codec:
    """An encoder, and what it is told where the user says nothing."""

    encoder: str
    """FFmpeg's name of it."""
    crf: int
    """Its constant rate factor: the higher, the smaller and the worse."""
    most_crf: int
    """The highest that it takes."""
    preset: str
    """Its effort: slower ones make smaller files."""
    presets: tuple[str, ...]
    """All that it takes, the slowest first."""
    pixel_formats: tuple[str, ...]
    """Those of 8 bits, which every reader takes."""


X26X_PRESETS = (
    "placebo", "veryslow", "slower", "slow", "medium", "fast", "faster", "veryfast", "superfast",
    "ultrafast",
)  # fmt: skip
CODECS = {
    "av1": Codec("libsvtav1", 30, 63, "8", tuple(map(str, range(14))), ("yuv420p",)),
    "h264": Codec(
        "libx264", 23, 51, "medium", X26X_PRESETS, ("yuv420p", "yuv422p", "yuv444p")
    ),
    "hevc": Codec(
        "libx265", 26, 51, "medium", X26X_PRESETS, ("yuv420p", "yuv422p", "yuv444p")
    ),
}  # fmt: skip
"""The codecs that are written, by FFmpeg's names. SVT-AV1 says of its presets above 9 that they
may show artefacts."""
LEAST_SIDE, MOST_SIDE = 16, 8192
"""Pixels of a side that all of the encoders take."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How videos are encoded.

    Raises:
        ValueError: A value isn't one that the codec takes; says which ones it takes.
    """

    codec: str = "av1"
    """``av1``, ``h264`` or ``hevc``."""
    gop: int | None = 2
    """Frames from one key frame to the next; None for the encoder's own choice, about 160 to 250.
    Reading a random frame decodes up to that many."""
    crf: int | None = None
    """Quality: lower is better and larger; None for 30 (AV1), 23 (H.264) or 26 (HEVC)."""
    preset: str | None = None
    """Effort: ``0`` to ``13`` (AV1), ``placebo`` to ``ultrafast`` (the others); None for ``8`` or
    ``medium``."""
    pixel_format: str = "yuv420p"
    """How the pixels are kept; the others, for H.264 and HEVC, keep more of the colours."""
    size: tuple[int, int] | None = None
    """(width, height) in pixels; None keeps each video's."""
    b_frames: bool = False
    """True where frames may be predicted from later ones (H.264 and HEVC): smaller files, whose
    frames are stored out of order, behind an edit list."""

    def __post_init__(self) -> None:
        if self.codec not in CODECS:
            raise ValueError(f"codec {self.codec!r}: choose one of {', '.join(CODECS)}")
        codec = CODECS[self.codec]
        if self.gop is not None and not 1 <= self.gop <= 10_000:
            raise ValueError(f"gop {self.gop}: give 1 to 10000 frames")
        if self.crf is not None and not 0 <= self.crf <= codec.most_crf:
            raise ValueError(f"crf {self.crf}: {self.codec} takes 0 to {codec.most_crf}")
        if self.preset is not None and self.preset not in codec.presets:
            known = ", ".join(codec.presets)
            raise ValueError(f"preset {self.preset!r}: {self.codec} takes {known}")
        if self.pixel_format not in codec.pixel_formats:
            known = ", ".join(codec.pixel_formats)
            raise ValueError(f"pixel format {self.pixel_format!r}: {self.codec} takes {known}")
        if self.size is not None:
            check_size(self.size, self.pixel_format)

    @property
    def encoder(self) -> str:
        """FFmpeg's name of the encoder."""
        return CODECS[self.codec].encoder

    @property
    def quality(self) -> int:
        """The constant rate factor in use."""
        return CODECS[self.codec].crf if self.crf is None else self.crf

    @property
    def effort(self) -> str:
        """The preset in use."""
        return self.preset or CODECS[self.codec].preset

    def encoder_options(self) -> dict[str, str]:
        """Options of FFmpeg's encoder. One thread: its output is the same each time."""
        options = {"crf": str(self.quality), "preset": self.effort}
        if self.gop is not None:
            options["g"] = str(self.gop)
        if self.codec == "av1":
            options["svtav1-params"] = "lp=1"
        elif self.codec == "h264":
            options |= {} if self.b_frames else {"bf": "0"}
        else:
            named = ["pools=none", "frame-threads=1", "open-gop=0", "log-level=none"]
            named += [] if self.b_frames else ["bframes=0"]
            options["x265-params"] = ":".join(named)
        return options

    def command_options(self) -> str:
        """The options of ``reelseek reencode`` that say the same."""
        parts = [f"--codec {self.codec}"]
        parts.append(f"--gop {self.gop}" if self.gop is not None else "--gop 0")
        parts.append(f"--crf {self.quality}")
        if self.preset is not None:
            parts.append(f"--preset {self.preset}")
        if self.pixel_format != "yuv420p":
            parts.append(f"--pix-fmt {self.pixel_format}")
        if self.size is not None:
            parts.append(f"--size {self.size[0]}x{self.size[1]}")
        if self.b_frames:
            parts.append("--b-frames")
        return " ".join(parts)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Encoding:
        """From what ``document`` gave."""
        size = document["size"]
        return cls(**{**document, "size": None if size is None else tuple(size)})

    def __str__(self) -> str:
        gop = "default GOP" if self.gop is None else f"g={self.gop}"
        return f"{self.codec} {gop} crf={self.quality}"


def check_size(size: tuple[int, int], pixel_format: str) -> None:
    """ValueError where pictures of this size can't be encoded; says why."""
    if not all(LEAST_SIDE <= side <= MOST_SIDE for side in size):
        raise ValueError(f"size {size[0]}x{size[1]}: give {LEAST_SIDE} to {MOST_SIDE} pixels")
    step = {"yuv420p": (2, 2), "yuv422p": (2, 1), "yuv444p": (1, 1)}[pixel_format]
    if any(side % unit for side, unit in zip(size, step, strict=True)):
        raise ValueError(f"size {size[0]}x{size[1]}: {pixel_format} takes even sizes only")


DEFAULT_ENCODINGS = (
    Encoding("av1", 2),
    Encoding("av1", 20),
    Encoding("av1", None),
    Encoding("h264", 2),
    Encoding("h264", 12),
    Encoding("h264", None),
    Encoding("hevc", 2),
    Encoding("hevc", 12),
    Encoding("hevc", None),
)
"""What ``plan_encodings`` measures."""
