"""NAL units of H.264 and HEVC: splitting an access unit into them.

Sources: ITU-T H.264 (08/2021) 7.3.1 and Annex B; ITU-T H.265 7.3.1 and Annex B; ISO/IEC 14496-15
5.3.3.1 (``avcC``) and 8.3.3.1 (``hvcC``) for the length-prefixed form of MP4 and Matroska.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reelseek.bitstream._bits import BitReader

PARAMETER_SETS = {"h264": frozenset({7, 8, 13}), "hevc": frozenset({32, 33, 34})}
"""nal_unit_type of parameter sets."""
EXTENDED_SAR = 255
START_CODE = b"\0\0\0\1"
MOST_UNITS = 1024
"""NAL units of a configuration record that are looked at: there are 96 sets at most."""
UNSAID, LIMITED_RANGE, FULL_RANGE = 2, 1, 2
PLAIN_MATRICES = frozenset({1, UNSAID, 4, 5, 6, 7, 9})
"""Those of YCbCr that FFmpeg takes over as they are."""


@dataclass(frozen=True, slots=True)
class NalFormat:
    """How NAL units are separated in a stream."""

    length_size: int
    """Bytes of the length before each unit (1, 2 or 4); 0 for start codes (Annex B)."""
    parameter_sets: tuple[bytes, ...]
    """The units in the codec's configuration record."""


@dataclass(frozen=True, slots=True)
class PlainPicture:
    """What a sequence parameter set says of plain pictures.

    Plain, as nearly all that robots record, is 8-bit 4:2:0, with nothing cut off on the left or at
    the top.
    """

    width: int
    height: int
    color_range: int
    """0 where it isn't said, 1 for limited, 2 for full, as FFmpeg has it."""
    matrix: int
    """matrix_coefficients, H.264 table E-5; 2 where it isn't said."""

    @property
    def pixel_format(self) -> str:
        """FFmpeg's name of it."""
        return "yuvj420p" if self.color_range == FULL_RANGE else "yuv420p"


def plain_picture(
    size: tuple[int, int], crop: Sequence[int], colours: tuple[int, int]
) -> PlainPicture | None:
    """The picture of an 8-bit 4:2:0 stream; None where it isn't plain.

    Args:
        size: Width and height as coded.
        crop: What is cut off: left, right, top and bottom, in units of two luma samples.
        colours: color_range and matrix.
    """
    left, right, top, bottom = crop
    width, height = size[0] - 2 * right, size[1] - 2 * bottom
    if left or top or min(width, height) <= 0 or colours[1] not in PLAIN_MATRICES:
        return None
    return PlainPicture(width, height, *colours)


def read_vui_colours(bits: BitReader, *, if_unsaid: int) -> tuple[int, int]:
    """The beginning of the VUI parameters: color_range and matrix_coefficients.

    The same in H.264 E.1.1 and H.265 E.2.1.

    Args:
        bits: What follows vui_parameters_present_flag.
        if_unsaid: The color_range that FFmpeg gives pictures of which nothing is said.
    """
    if bits.flag() and bits.take(8) == EXTENDED_SAR:
        bits.take(32)
    if bits.flag():  # overscan_info_present_flag
        bits.take(1)
    if not bits.flag():  # video_signal_type_present_flag
        return if_unsaid, UNSAID
    bits.take(3)  # video_format
    color_range = FULL_RANGE if bits.flag() else LIMITED_RANGE
    if not bits.flag():  # colour_description_present_flag
        return color_range, UNSAID
    bits.take(16)  # colour_primaries, transfer_characteristics
    return color_range, bits.take(8)


def parameter_sets_of(codec: str, configuration: bytes) -> bytes:
    """The configuration record's parameter sets, as they could stand in front of a packet."""
    nal_format = nal_format_of(codec, configuration)
    size = nal_format.length_size
    kinds = PARAMETER_SETS[codec]
    return b"".join(
        (len(unit).to_bytes(size, "big") if size else START_CODE) + unit
        for unit in nal_format.parameter_sets
        if (unit[0] & 0x1F if codec == "h264" else unit[0] >> 1 & 0x3F) in kinds
        and (size in (0, 4) or len(unit) < 1 << 8 * size)
    )


def nal_format_of(codec: str, extradata: bytes | None) -> NalFormat:
    """How a stream's NAL units are separated, from its configuration record.

    Args:
        codec: ``h264`` or ``hevc``.
        extradata: The content of ``avcC`` or ``hvcC``, or parameter sets with start codes.
    """
    data = extradata or b""
    # A configuration record starts with its version, 1; Annex B starts with zeros.
    if len(data) < 7 or data[0] != 1:
        return NalFormat(0, tuple(iter_nals(data, 0)))
    if codec == "h264":
        return NalFormat((data[4] & 3) + 1, tuple(_avcc_units(data)))
    return NalFormat((data[21] & 3) + 1 if len(data) > 22 else 4, tuple(_hvcc_units(data)))


def iter_nals(data: bytes, length_size: int) -> Iterator[bytes]:
    """The NAL units of an access unit, without their separators; stops where the bytes end."""
    yield from _by_start_code(data) if length_size == 0 else _by_length(data, length_size)


def iter_nal_heads(data: bytes, length_size: int) -> Iterator[bytes]:
    """The first two bytes of each NAL unit, which hold its header; one byte of a shorter unit."""
    if length_size == 0:
        yield from (unit[:2] for unit in _by_start_code(data))
        return
    position, end = 0, len(data)
    while position + length_size < end:
        size = int.from_bytes(data[position : position + length_size], "big")
        position += length_size
        if size:
            yield data[position : position + min(size, 2)]
        position += size


def _by_length(data: bytes, length_size: int) -> Iterator[bytes]:
    position = 0
    while position + length_size <= len(data):
        size = int.from_bytes(data[position : position + length_size], "big")
        position += length_size
        unit = data[position : position + size]
        if unit:
            yield unit
        position += size


def _by_start_code(data: bytes) -> Iterator[bytes]:
    start = data.find(b"\0\0\1")
    while start >= 0:
        following = data.find(b"\0\0\1", start + 3)
        unit = data[start + 3 : following if following >= 0 else len(data)].rstrip(b"\0")
        if unit:
            yield unit
        start = following


def _avcc_units(data: bytes) -> Iterator[bytes]:
    position = 5
    for mask in (0x1F, 0xFF):  # sequence parameter sets, then picture parameter sets
        if position >= len(data):
            return
        count = data[position] & mask
        position += 1
        for _ in range(count):
            size = int.from_bytes(data[position : position + 2], "big")
            unit = data[position + 2 : position + 2 + size]
            if unit:
                yield unit
            position += 2 + size


def _hvcc_units(data: bytes) -> Iterator[bytes]:
    if len(data) < 23:
        return
    position, left = 23, MOST_UNITS
    for _ in range(data[22]):
        count = int.from_bytes(data[position + 1 : position + 3], "big")
        position += 3
        for _ in range(min(count, left)):
            left -= 1
            size = int.from_bytes(data[position : position + 2], "big")
            unit = data[position + 2 : position + 2 + size]
            if not unit:
                break
            yield unit
            position += 2 + size
