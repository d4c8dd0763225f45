"""A real SLURM of two nodes and a real Ray, on this machine.

Each module that needs one has its own: an idle cluster takes a good part of two cores.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE

REPOSITORY = Path(__file__).parent.parent
SCRIPT = REPOSITORY / "scripts" / "slurm_cluster.sh"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
RAY = """
import sys, ray
ray.init("local", num_cpus=4, include_dashboard=False, logging_level=40, log_to_driver=False)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""


def needs_submitit() -> None:
    """Skip the test, or fail it where ``slurm`` is required, without what submits the jobs."""
    from tests.conftest import skip_without

    if importlib.util.find_spec("submitit") is None:
        skip_without("slurm", "submitit isn't installed")


@pytest.fixture(scope="module")
def slurm() -> Iterator[Path]:
    """The slurm.conf of a running cluster of two nodes; SLURM_CONF names it meanwhile."""
    from tests.conftest import skip_without

    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if missing:
        skip_without("slurm", f"{', '.join(missing)} isn't installed")
    if os.geteuid() != 0:
        skip_without("slurm", "slurmd has to be started by root")
    # munged's socket has to have a short path, in a folder that others can enter.
    folder = tempfile.mkdtemp(prefix="reelseek-slurm-", dir="/tmp")
    try:
        conf = subprocess.run(
            [str(SCRIPT), "up", folder],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        ).stdout.strip()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", conf)
            yield Path(conf)
    finally:
        subprocess.run([str(SCRIPT), "down", folder], check=False, timeout=PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def ray_address() -> Iterator[str]:
    """The address of a running Ray cluster."""
    from tests.conftest import skip_without

    if importlib.util.find_spec("ray") is None:
        skip_without("ray", "ray isn't installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        with subprocess.Popen(
            [sys.executable, "-c", RAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as cluster:
            assert cluster.stdout is not None
            address = cluster.stdout.readline().strip()
            assert address, "Ray did not start"
            yield address
            cluster.communicate(timeout=PATIENCE)
