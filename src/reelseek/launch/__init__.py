"""Starting programs so that torchcodec loads in them: shell exports, and whether they arrive."""

from reelseek.launch._exports import FORMATS, Export, proven_export
from reelseek.launch._run import environment_for, run_command
from reelseek.launch._slurm import SlurmCheck, check_slurm

__all__ = [
    "FORMATS",
    "Export",
    "SlurmCheck",
    "check_slurm",
    "environment_for",
    "proven_export",
    "run_command",
]
