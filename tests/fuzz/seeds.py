"""Bytes of real files, for the parsers to be fed with after some change."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import av

from tests import corpus
from tests.native.ld_caches import new_cache, old_cache
from tests.native.tiny_elf import tiny_elf

PACKETS = 12
MP4 = ("av1_g20.mp4", "b_frames.mp4", "hevc_open_gop.mp4", "vp9.mp4")
CLIPS = {
    "obus": ("av1_g20.mp4",),
    "temporal_units": ("av1_g20.mp4", "av1_libaom.mp4", "av1_rav1e.mp4"),
    "all_headers": ("av1_g20.mp4", "av1_default.mp4", "av1_rav1e.mp4"),
    "frame_headers": ("av1_g20.mp4",),
    "sequence_header": ("av1_g20.mp4",),
    "h264": ("b_frames.mp4", "interlaced.mp4"),
    "hevc": ("hevc_open_gop.mp4", "hevc.mp4"),
    "vpx": ("vp9.mp4", "vp8.webm"),
}


@cache
def seeds_of(target: str) -> tuple[bytes, ...]:
    """Some inputs of a target, from the corpus."""
    if target == "moov":
        return tuple(_moov(corpus.clip_path(clip)) for clip in MP4)
    if target == "matroska":
        return (corpus.clip_path("matroska.mkv").read_bytes()[:200],)
    if target == "nal_formats":
        return tuple(_configuration(clip) for clip in ("b_frames.mp4", "hevc.mp4"))
    if target in ("elf", "linker"):
        return tuple(tiny_elf(bits=bits, order=order) for bits in (64, 32) for order in "<>")
    if target == "ld_cache":
        return tuple(_caches())
    return tuple(_seed(target, clip) for clip in CLIPS[target])


def _caches() -> Iterator[bytes]:
    plain = [("libb.so", "/opt/libb.so", 0x0303, 0), ("libc.so.6", "/lib/libc.so.6", 0x0303, 0)]
    best = ("libb.so", "/opt/v3/libb.so", 0x0303, 1 << 62)
    new = new_cache([*plain, best], ["x86-64-v3"])
    yield from (new, old_cache(plain), old_cache(plain, new))


def _seed(target: str, clip: str) -> bytes:
    with av.open(str(corpus.clip_path(clip))) as container:
        packets = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    if target in ("obus", "vpx", "sequence_header"):
        return packets[0]
    pieces = [packet[:400] if target in ("h264", "hevc") else packet for packet in packets]
    if target in ("h264", "hevc"):
        pieces.insert(0, _in_lengths(_configuration(clip), target))
    return b"".join(len(piece).to_bytes(2, "big") + piece for piece in pieces[:PACKETS])


def _configuration(clip: str) -> bytes:
    with av.open(str(corpus.clip_path(clip))) as container:
        return bytes(container.streams.video[0].codec_context.extradata or b"")


def _in_lengths(record: bytes, codec: str) -> bytes:
    from reelseek.bitstream import nal_format_of

    units = nal_format_of(codec, record).parameter_sets
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)


def _moov(path: Path) -> bytes:
    data = path.read_bytes()
    place = data.index(b"moov") + 4
    return data[place : place + int.from_bytes(data[place - 8 : place - 4], "big") - 8]
