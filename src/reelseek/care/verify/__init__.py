"""Finding what is wrong with a dataset before it is trained on."""

from reelseek.care.verify._codes import CODES, Code
from reelseek.care.verify._findings import Finding, Severity, VerifyReport
from reelseek.care.verify._verify import LEVELS, verify_dataset

__all__ = ["CODES", "LEVELS", "Code", "Finding", "Severity", "VerifyReport", "verify_dataset"]
