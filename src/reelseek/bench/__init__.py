"""Measuring decoders: which frames they return, and how fast."""

from reelseek.bench._contact_sheet import SheetSample, sheet_samples, write_contact_sheet
from reelseek.bench._train_model import siglip_encoder
from reelseek.bench.probe import FileProbe, probe_file

__all__ = [
    "FileProbe",
    "SheetSample",
    "probe_file",
    "sheet_samples",
    "siglip_encoder",
    "write_contact_sheet",
]
