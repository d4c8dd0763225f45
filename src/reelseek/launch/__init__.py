"""Starting programs so that torchcodec loads in them: shell exports, and batch scripts."""

from reelseek.launch._check_script import ScriptCheck, check_script
from reelseek.launch._exports import FORMATS, Export, proven_export
from reelseek.launch._preflight import preflight
from reelseek.launch._problems import Problem, Severity
from reelseek.launch._run import environment_for, run_command
from reelseek.launch._slurm import SlurmCheck, check_slurm
from reelseek.launch._surroundings import outside_of_any_job
from reelseek.launch._train import submit, train_script, write_script
from reelseek.launch._train_job import TrainJob, default_name

__all__ = [
    "FORMATS",
    "Export",
    "Problem",
    "ScriptCheck",
    "Severity",
    "SlurmCheck",
    "TrainJob",
    "check_script",
    "check_slurm",
    "default_name",
    "environment_for",
    "outside_of_any_job",
    "preflight",
    "proven_export",
    "run_command",
    "submit",
    "train_script",
    "write_script",
]
