"""Work in processes of its own: one that crashes takes nothing else with it."""

from reelseek.workers._pool import Answer, WorkerPool, answers_of, num_cpus, python_path

__all__ = ["Answer", "WorkerPool", "answers_of", "num_cpus", "python_path"]
