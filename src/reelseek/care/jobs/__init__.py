"""One function over thousands of files: here, on SLURM or on Ray; killed, it goes on."""

from reelseek.care.jobs._executor import Executor, executor_from_options
from reelseek.care.jobs._folder import job_folder
from reelseek.care.jobs._job import Item, Job, Outcome, Summary, stamp_of
from reelseek.care.jobs._local import LocalExecutor
from reelseek.care.jobs._ray import RayExecutor
from reelseek.care.jobs._run import JobRun, discard_job, run_job
from reelseek.care.jobs._slurm import SlurmExecutor

__all__ = [
    "Executor",
    "Item",
    "Job",
    "JobRun",
    "LocalExecutor",
    "Outcome",
    "RayExecutor",
    "SlurmExecutor",
    "Summary",
    "discard_job",
    "executor_from_options",
    "job_folder",
    "run_job",
    "stamp_of",
]
