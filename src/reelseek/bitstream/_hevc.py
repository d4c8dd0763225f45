"""What an HEVC access unit says of itself, as far as random access needs it.

Source: ITU-T H.265 (08/2021), 7.3.1.2 (nal_unit_header) and table 7-1 (nal_unit_type).
"""

from __future__ import annotations

from collections.abc import Iterable

BLA_W_LP, BLA_N_LP = 16, 18
IDR_W_RADL, IDR_N_LP = 19, 20
CRA_NUT = 21

STARTS_DECODING = frozenset(range(16, 24))
"""Random access pictures: BLA, IDR, CRA and what is reserved for them."""
STARTS_WITHOUT_RASL = frozenset({IDR_W_RADL, IDR_N_LP})
"""Pictures that no skipped leading picture (RASL) can follow."""


def hevc_nal_types(units: Iterable[bytes]) -> frozenset[int]:
    """The nal_unit_type of each NAL unit of the base layer."""
    return frozenset(
        (unit[0] >> 1) & 0x3F
        for unit in units
        if len(unit) >= 2 and ((unit[0] & 1) << 5 | unit[1] >> 3) == 0
    )
