"""AV1 sequence and frame headers, written bit by bit, and damaged ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reelseek.bitstream._av1_headers import (
    ALL_SLOTS,
    FrameHeader,
    FrameType,
    SequenceHeader,
    Slots,
    UnprovenError,
    read_sequence_header,
)

PLAIN = "000 0 0  0 0 00000 000000000000 00000"
"""Profile, still picture, reduced; timing info, initial delay, one operating point, its level."""
DECODER_MODEL = (
    "000 0 0  1" + "0" * 64 + "0 1 00111" + "0" * 32 + "00100 00101"
    "  0 00000 000000000000 00000 1" + "0" * 17
)
"""The same with timing info and a decoder model: delays of 8 bits, removal of 5, presentation of
6, and parameters for the one operating point."""
SIZE = "0110 0110 1111111 0111111"
TOOLS = "000 0000 {hints} 1 1 {hint_bits} 000 0 0 0 0 00 0 0"
"""Sequence tools, order hints, screen content chosen, integer vectors chosen, the rest."""
KEY = "0 00 1  0 0 0  {hint}"
"""A shown key frame."""


def _bytes(bits: str) -> bytes:
    bits = bits.replace(" ", "")
    bits += "1" + "0" * (-(len(bits) + 1) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big") + bytes(8)


def _sequence(start: str = PLAIN, *, ids: str = "0", hints: bool = True) -> SequenceHeader:
    tools = TOOLS.format(hints="1 00" if hints else "0", hint_bits="011" if hints else "")
    return read_sequence_header(_bytes(f"{start} {SIZE} {ids} {tools}"))


def _filled(sequence: SequenceHeader, slots: Slots | None = None, hint: int = 0) -> Slots:
    """Slots that all hold one key frame."""
    slots = slots or Slots()
    bits = f"{hint:0{sequence.order_hint_bits}b}" if sequence.order_hint_bits else ""
    slots.read_frame_header(_bytes(KEY.format(hint=bits)), sequence)
    return slots


def _read(slots: Slots, sequence: SequenceHeader, bits: str) -> FrameHeader:
    return slots.read_frame_header(_bytes(bits), sequence)


def test_sequence_header_says_the_size_and_the_hints() -> None:
    sequence = _sequence()
    assert (sequence.max_width, sequence.max_height) == (128, 64)
    assert sequence.order_hint_bits == 4
    assert not sequence.has_layers


def test_decoder_model_is_stepped_over() -> None:
    sequence = _sequence(DECODER_MODEL)
    assert (sequence.max_width, sequence.max_height) == (128, 64)
    assert sequence.buffer_removal_time_bits == 5
    assert sequence.presentation_time_bits == 6
    assert sequence.operating_points == ((0, True),)


def test_shown_key_frame_reads_nothing_and_fills_every_slot() -> None:
    header = _read(Slots(), _sequence(), KEY.format(hint="0000") + "0 0 1 0")
    assert header == FrameHeader(FrameType.KEY, True, -1, 0, ALL_SLOTS, 0, tiles=1)


def test_inter_frame_reads_the_slots_that_it_names() -> None:
    sequence = _sequence()
    bits = "0 01 1  0 0 0 0  0011 000  00000100  0 001 001 010 010 110 110 001"
    header = _read(_filled(sequence), sequence, bits)
    assert header.reads == 0b0100_0110
    assert header.writes == 0b100
    assert header.order_hint == 3


def test_frame_numbers_stand_before_the_hint_and_behind_each_reference() -> None:
    ids = "1 0001 010"  # differences of 3 bits, numbers of 6
    sequence = _sequence(ids=ids)
    slots = Slots()
    _read(slots, sequence, "0 00 1  0 0  101010 0  0000")
    header = _read(slots, sequence,
                   "0 01 1  0 0 0 101011 0 0011 000 00000001 0"
                   + " 101 111" * 7)  # fmt: skip
    assert (header.reads, header.writes) == (1 << 5, 1)


def test_times_of_the_decoder_model_stand_where_the_specification_has_them() -> None:
    sequence = _sequence(DECODER_MODEL)
    slots = Slots()
    _read(slots, sequence, "0 00 1 000000  0 0 0  0000 0")
    bits = "0 01 1 111111  0 0 0 0  0011 000  1 11111  00000010  0" + " 011" * 7
    header = _read(slots, sequence, bits)
    assert (header.reads, header.writes) == (1 << 3, 2)


def test_brief_references_depend_on_every_slot() -> None:
    # The hints of all slots decide which ones are chosen (7.8): none of them may be left out.
    sequence = _sequence()
    header = _read(_filled(sequence), sequence, "0 01 1  0 0 0 0  0011 000  00000001  1 000 001")
    assert header.reads == ALL_SLOTS


def test_hidden_key_frame_that_is_shown_later_fills_every_slot_then() -> None:
    sequence = _sequence()
    slots = _filled(sequence)
    hidden = _read(slots, sequence, "0 00 0 1  0  0 0 0  0101  00001000")
    shown = _read(slots, sequence, "1 011")
    assert (hidden.shows, hidden.reads, hidden.writes) == (False, 0, 0b1000)
    assert shown == FrameHeader(FrameType.KEY, True, 3, 0b1000, ALL_SLOTS, 5, tiles=0)


def test_inter_frame_that_is_shown_later_stays_where_it_is() -> None:
    sequence = _sequence()
    slots = _filled(sequence)
    _read(slots, sequence, "0 01 0 1  0 0 0 0  0101 000  00001000  0" + " 000" * 7)
    assert _read(slots, sequence, "1 011").writes == 0


def test_switch_frame_reads_its_references_and_fills_every_slot() -> None:
    sequence = _sequence()
    header = _read(_filled(sequence), sequence,
                   "0 11 1  0 0  0100" + " 0000" * 8 + " 0" + " 010" * 7)  # fmt: skip
    assert (header.frame_type, header.reads, header.writes) == (FrameType.SWITCH, 4, ALL_SLOTS)


def test_intra_only_frame_reads_nothing() -> None:
    sequence = _sequence()
    header = _read(_filled(sequence), sequence, "0 10 1  0 0 0 0  0100  00000010")
    assert (header.reads, header.writes) == (0, 2)


def test_another_hint_than_the_stored_one_announces_a_lost_frame() -> None:
    sequence = _sequence()
    with pytest.raises(UnprovenError, match="lost"):
        _read(_filled(sequence, hint=0), sequence,
              "0 01 1  1 0 0 0  0100  00000001" + " 0001" * 8 + " 0" + " 000" * 7)  # fmt: skip


def test_stream_without_hints_names_its_references_at_once() -> None:
    sequence = _sequence(hints=False)
    header = _read(_filled(sequence), sequence, "0 01 1  0 0 0 0  000  00000001" + " 101" * 7)
    assert header.reads == 1 << 5


@pytest.mark.parametrize("bits", [
    "0 01 1  0 0 0 0  0011 000  00000100  0 001 001 010 010 110 110 001",
    "0 01 1  0 0 0 0  0011 000  00000001  1 000 001",
    "1 011",
])  # fmt: skip
def test_frame_without_its_references_is_not_followed(bits: str) -> None:
    with pytest.raises(UnprovenError, match="there"):
        _read(Slots(), _sequence(), bits)


@pytest.mark.parametrize(("tiles", "number"), [("1 0 0", 1), ("1 1 0", 2), ("0 0 0", 2)])
def test_number_of_tiles_stands_behind_the_size(tiles: str, number: int) -> None:
    # 128x64 pixels are two superblocks of 64: no render size, no CDF flag set, then the tiles.
    sequence = _sequence()
    header = _read(Slots(), sequence, KEY.format(hint="0000") + "0 0 " + tiles)
    assert header.tiles == number


def test_size_of_its_own_is_read_up_to_the_tiles() -> None:
    sequence = _sequence()
    own = "0 00 1  0 0 1  0000  1111111 1111111  0 0  1 1 1 0"  # 128x128, 2x2 superblocks
    assert _read(Slots(), sequence, own).tiles == 4


def test_size_of_a_reference_is_taken_from_it() -> None:
    sequence = _sequence()
    slots = Slots()
    _read(slots, sequence, "0 00 1  0 0 1  0000  0111111 0111111  0 0  1")  # 64x64
    inter = "0 01 1  0 0 0 1  0011 000  00000001  0" + " 000" * 7 + "  1  0 1 0 0 0  1"
    assert _read(slots, sequence, inter).tiles == 1


def test_reduced_still_picture_is_a_shown_key_frame() -> None:
    sequence = read_sequence_header(_bytes(f"000 1 1 00000 {SIZE} 000 000 0 0 0 0 00 0 0"))
    assert Slots().read_frame_header(b"", sequence).writes == ALL_SLOTS


@given(payload=st.binary(max_size=40))
def test_any_bytes_are_a_sequence_header_or_end_too_soon(payload: bytes) -> None:
    try:
        read_sequence_header(payload)
    except EOFError:
        assert len(payload) < 40 or any(payload)


@given(start=st.sampled_from([PLAIN, DECODER_MODEL]), hints=st.booleans(),
       payloads=st.lists(st.binary(max_size=30), max_size=6))  # fmt: skip
def test_any_bytes_are_frame_headers_or_refused(
    start: str, hints: bool, payloads: list[bytes]
) -> None:
    sequence = _sequence(start, hints=hints)
    slots = _filled(sequence)
    for payload in payloads:
        try:
            header = slots.read_frame_header(payload, sequence)
        except (EOFError, UnprovenError):
            continue
        assert 0 <= header.reads <= ALL_SLOTS
        assert 0 <= header.writes <= ALL_SLOTS
