"""Work in processes of its own: one that crashes takes nothing else with it."""

from reelseek.workers._pool import Answer, WorkerPool, answers_of, num_cpus
from reelseek.workers._worker import Worker

__all__ = ["Answer", "Worker", "WorkerPool", "answers_of", "num_cpus"]
