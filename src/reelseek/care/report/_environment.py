"""Where the report was made: versions, decoders, and whether torchcodec loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reelseek.care.report._records import Environment

if TYPE_CHECKING:
    from reelseek.native._decoders import Decoder

SAID_BY_DECODERS = ("av", "decord", "opencv-python-headless", "opencv-python")
"""Packages that the decoders' lines name already."""
AV1 = {True: "decodes AV1", False: "no AV1 decoder", None: "AV1 not known"}


def environment_of() -> Environment:
    """Collect it; the doctor reads files, and loads and starts nothing."""
    from reelseek.bench._environment import environment
    from reelseek.native._doctor import examine

    found = examine(with_proof=False)
    facts = environment()
    packages = {k: v for k, v in facts["packages"].items() if k not in SAID_BY_DECODERS}
    return Environment(
        facts={**facts, "packages": packages},
        decoders=tuple((f"{one.name} {one.version}", _said(one)) for one in found.decoders),
        verdict=found.diagnosis.verdict,
        is_well=found.is_well,
        command=found.remedy.command,
    )


def _said(decoder: Decoder) -> str:
    if not decoder.loads:
        return f"does not load: {decoder.fault}"
    ffmpeg = f"FFmpeg {decoder.ffmpeg_major}" if decoder.ffmpeg_major else "no FFmpeg"
    return f"loads, {ffmpeg}, {AV1[decoder.decodes_av1]}"
