"""The other decoders of an environment: do they load, with which FFmpeg, and can it decode AV1."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass

from reelseek.native._facts import Facts
from reelseek.native._judge import describe
from reelseek.native._known import ffmpeg_major_of_avutil
from reelseek.native._linker import Loaded, LoadResult, simulate_load
from reelseek.native._printable import printable
from reelseek.native._process import torch_is_imported

EXTENSIONS = {
    "av": ("_core*.so", "codec/context*.so"),
    "decord": ("libdecord.so",),
    "cv2": ("cv2*.so", "python-3*/cv2*.so"),
}
"""The file of each package that needs FFmpeg, by its folder."""
PROJECTS = {
    "av": ("av",),
    "decord": ("decord",),
    "cv2": ("opencv-python-headless", "opencv-python", "opencv-contrib-python",
            "opencv-contrib-python-headless"),
}  # fmt: skip
NAMES = {"av": "PyAV", "decord": "decord", "cv2": "OpenCV"}
AVUTIL = re.compile(r"libavutil(?:-[0-9a-f]+)?\.so\.(\d+)")
AVCODEC = re.compile(r"libavcodec(?:-[0-9a-f]+)?\.so\.\d+")
AV1_LIBRARY = re.compile(r"lib(dav1d|aom|gav1)\b.*\.so")
AV1_SETTINGS = (b"--enable-libdav1d", b"--enable-libaom", b"--enable-libgav1")
"""FFmpeg's libavcodec holds the options that it was configured with as text."""
MAX_CODEC_BYTES = 256 << 20
"""A libavcodec with dozens of codecs inside takes 30 MB; a larger file is read up to here."""
PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Decoder:
    """One decoder library of an environment."""

    name: str
    version: str
    loads: bool
    ffmpeg_major: int
    """0 where it has none, or that isn't known."""
    decodes_av1: bool | None
    """By what its libavcodec needs or was configured with; None where there is no libavcodec."""
    fault: str = ""
    """Why it doesn't load."""


def other_decoders(facts: Facts) -> tuple[Decoder, ...]:
    """PyAV, decord and OpenCV, as far as they are installed."""
    return tuple(_decoder(facts, package) for package in EXTENSIONS if package in facts.packages)


def decodes_av1(result: LoadResult) -> bool | None:
    """Whether the FFmpeg in a load has a decoder for AV1 that needs no special hardware."""
    codecs = [found for found in result.libraries if AVCODEC.match(_file_name(found))]
    if not codecs:
        return None
    return any(_has_av1(codec) for codec in codecs)


def _decoder(facts: Facts, package: str) -> Decoder:
    versions = (facts.versions.get(project, "") for project in PROJECTS[package])
    version = next(filter(None, versions), "")
    path = _extension(facts.packages[package], EXTENSIONS[package])
    if not path:
        fault = printable(f"no {EXTENSIONS[package][0]} in {facts.packages[package]}")
        return Decoder(NAMES[package], version, False, 0, None, fault)
    # A process of its own, in which nothing but the interpreter is mapped.
    alone = torch_is_imported(facts, facts.ld_library_path, with_torch=False)
    result = simulate_load(path, alone.setting)
    fault = describe(result.faults[0]) if result.faults else ""
    major = _ffmpeg_major(result)
    return Decoder(NAMES[package], version, result.loads, major, decodes_av1(result), fault)


def _extension(folder: str, patterns: tuple[str, ...]) -> str:
    for pattern in patterns:
        if found := sorted(glob.glob(os.path.join(glob.escape(folder), pattern))):
            return found[0]
    return ""


def _ffmpeg_major(result: LoadResult) -> int:
    for library in result.libraries:
        if found := AVUTIL.match(_file_name(library)):
            return ffmpeg_major_of_avutil(int(found[1]))
    return 0


def _has_av1(codec: Loaded) -> bool:
    if codec.elf is not None and any(map(AV1_LIBRARY.match, codec.elf.needed)):
        return True
    try:
        return _holds(codec.path, AV1_SETTINGS) if os.path.isfile(codec.path) else False
    except OSError:
        return False  # its load has named the fault


def _holds(path: str, texts: tuple[bytes, ...]) -> bool:
    """Whether one of the texts is in a file's beginning, which is read, not mapped."""
    overlap = max(map(len, texts)) - 1
    with open(path, "rb") as file:
        kept = b""
        for _ in range(MAX_CODEC_BYTES // PIECE_BYTES):
            piece = file.read(PIECE_BYTES)
            if any(text in kept + piece for text in texts):
                return True
            if len(piece) < PIECE_BYTES:
                return False
            kept = piece[-overlap:]
    return False


def _file_name(library: Loaded) -> str:
    return os.path.basename(library.path or library.name)
