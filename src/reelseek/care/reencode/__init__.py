"""Re-encoding a dataset: measured on its own frames, written beside it, proved frame by frame."""

from reelseek.care.reencode._dataset import MIN_PSNR_DB, reencode_dataset
from reelseek.care.reencode._encoding import DEFAULT_ENCODINGS, Encoding
from reelseek.care.reencode._plan import Measured, plan_encodings
from reelseek.care.reencode._report import Failure, FileReport, ReencodeReport
from reelseek.care.reencode._seek import Spread

__all__ = [
    "DEFAULT_ENCODINGS",
    "MIN_PSNR_DB",
    "Encoding",
    "Failure",
    "FileReport",
    "Measured",
    "ReencodeReport",
    "Spread",
    "plan_encodings",
    "reencode_dataset",
]
