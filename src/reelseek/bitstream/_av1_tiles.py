"""The part of an AV1 frame header from its size to its tiles.

A decoder that was told of more tiles than a frame's bytes hold waits for the rest of them, and
drops the frame without a word when the next one comes. So a damaged header could make a frame
vanish that others refer to: its number of tiles is read and compared with the other frames'.

Source: AV1 Bitstream & Decoding Process Specification, version 1.0.0 with errata 1: 5.9.2, 5.9.5
to 5.9.9 (sizes) and 5.9.15 (tile info).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reelseek.bitstream._bits import BitReader

MAX_TILE_WIDTH, MAX_TILE_AREA, MAX_TILES = 4096, 4096 * 2304, 64


class FrameSize(NamedTuple):
    """A frame's size in pixels, before its width is reduced for coding."""

    width: int
    height: int


class SizeRules(NamedTuple):
    """What a sequence header says of frame sizes and tiles."""

    max_size: FrameSize
    width_bits: int
    height_bits: int
    may_reduce_width: bool
    """enable_superres."""
    has_large_blocks: bool
    """use_128x128_superblock."""
    may_use_motion_fields: bool
    """enable_ref_frame_mvs."""


class FrameStart(NamedTuple):
    """What the header says before the size."""

    is_intra: bool
    is_resilient: bool
    overrides_size: bool
    has_screen_tools: bool
    has_integer_mv: bool
    ends_in_cdf_flag: bool
    """True where disable_frame_end_update_cdf is written."""
    references: Sequence[FrameSize]
    """Sizes of the references, in the order in which the header names them."""


def read_tiles(bits: BitReader, rules: SizeRules, frame: FrameStart) -> tuple[FrameSize, int]:
    """From frame_size() to tile_info(): the frame's size, and its number of tiles."""
    size, coded_width = _read_size(bits, rules, frame)
    if frame.is_intra:
        if frame.has_screen_tools and coded_width == size.width:
            bits.take(1)  # allow_intrabc
    else:
        if not frame.has_integer_mv:
            bits.take(1)  # allow_high_precision_mv
        if not bits.flag():  # is_filter_switchable
            bits.take(2)  # interpolation_filter
        bits.take(1)  # is_motion_mode_switchable
        if rules.may_use_motion_fields and not frame.is_resilient:
            bits.take(1)  # use_ref_frame_mvs
    if frame.ends_in_cdf_flag:
        bits.take(1)
    return size, _read_tile_info(bits, coded_width, size.height, rules.has_large_blocks)


def _read_size(bits: BitReader, rules: SizeRules, frame: FrameStart) -> tuple[FrameSize, int]:
    """frame_size_with_refs(), or frame_size() and render_size()."""
    if frame.overrides_size and not frame.is_intra and not frame.is_resilient:
        for reference in frame.references:
            if bits.flag():  # found_ref
                return reference, _read_coded_width(bits, rules, reference.width)
    size = rules.max_size
    if frame.overrides_size:
        size = FrameSize(bits.take(rules.width_bits) + 1, bits.take(rules.height_bits) + 1)
    coded_width = _read_coded_width(bits, rules, size.width)
    if bits.flag():  # render_and_frame_size_different
        bits.take(32)
    return size, coded_width


def _read_coded_width(bits: BitReader, rules: SizeRules, width: int) -> int:
    """superres_params()."""
    if not rules.may_reduce_width or not bits.flag():
        return width
    denominator = bits.take(3) + 9
    return (width * 8 + denominator // 2) // denominator


class TileLimits(NamedTuple):
    """What a frame's size says of its tiles, in superblocks."""

    columns: int
    rows: int
    max_width: int
    min_column_bits: int
    max_column_bits: int
    min_bits: int
    """The least number of tiles, as a logarithm."""
    max_row_bits: int

    def min_row_bits(self, column_bits: int) -> int:
        """minLog2TileRows."""
        return max(self.min_bits - column_bits, 0)


def tile_limits(coded_width: int, height: int, has_large_blocks: bool) -> TileLimits:
    """The limits at the beginning of tile_info()."""
    shift = 7 if has_large_blocks else 6
    columns, rows = _blocks(coded_width, shift), _blocks(height, shift)
    max_width, max_area = MAX_TILE_WIDTH >> shift, MAX_TILE_AREA >> (2 * shift)
    min_column_bits = _log2(max_width, columns)
    return TileLimits(
        columns=columns,
        rows=rows,
        max_width=max_width,
        min_column_bits=min_column_bits,
        max_column_bits=_log2(1, min(columns, MAX_TILES)),
        min_bits=max(min_column_bits, _log2(max_area, rows * columns)),
        max_row_bits=_log2(1, min(rows, MAX_TILES)),
    )


def _blocks(pixels: int, shift: int) -> int:
    """Superblocks across: a size is rounded up to 8 pixels, then to superblocks."""
    return ((pixels + 7 >> 3 << 3) + (1 << shift) - 1) >> shift


def _log2(block: int, target: int) -> int:
    """tile_log2(): how often a block is doubled until it isn't smaller than the target."""
    return max((target - 1) // block, 0).bit_length()


def _read_tile_info(bits: BitReader, coded_width: int, height: int, has_large_blocks: bool) -> int:
    limits = tile_limits(coded_width, height, has_large_blocks)
    if bits.flag():  # uniform_tile_spacing_flag
        column_bits = _read_log2(bits, limits.min_column_bits, limits.max_column_bits)
        row_bits = _read_log2(bits, limits.min_row_bits(column_bits), limits.max_row_bits)
        return _tiles(limits.columns, column_bits) * _tiles(limits.rows, row_bits)
    widths = _read_lengths(bits, limits.columns, limits.max_width)
    area = limits.rows * limits.columns
    if limits.min_bits > 0:
        area >>= limits.min_bits + 1
    heights = _read_lengths(bits, limits.rows, max(area // max(widths), 1))
    return len(widths) * len(heights)


def _read_log2(bits: BitReader, least: int, most: int) -> int:
    while least < most and bits.flag():
        least += 1
    return least


def _tiles(blocks: int, log2: int) -> int:
    length = (blocks + (1 << log2) - 1) >> log2
    return -(-blocks // length)


def _read_lengths(bits: BitReader, total: int, most: int) -> list[int]:
    """Tiles of unequal length, each as ns(n), 4.10.7."""
    lengths = []
    while total > 0:
        length = bits.non_symmetric(min(total, most)) + 1
        lengths.append(length)
        total -= length
    return lengths
