"""Training jobs of all kinds, and stand-ins for SLURM's commands."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reelseek.launch._train_job import TrainJob
from tests.patience import PATIENCE

FAKES = {
    "srun": """
echo "srun $*" >>"$FAKE_LOG"
while [[ ${1-} == --* ]]; do shift; done
for SLURMD_NODENAME in $FAKE_NODES; do
    export SLURMD_NODENAME SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NTASKS=4
    "$@" || exit
done
""",
    "scontrol": """
if [ "$1" = show ]; then printf '%s\\n' $FAKE_NODES; else echo "scontrol $*" >>"$FAKE_LOG"; fi
""",
    "scancel": 'echo "scancel $*" >>"$FAKE_LOG"',
    "sbatch": 'echo "sbatch $*" >>"$FAKE_LOG"; cat >>"$FAKE_LOG"; echo "17;cluster"',
}


def fake_slurm(folder: Path, nodes: str = "node1") -> dict[str, str]:
    """Variables of a job in which SLURM's commands only note how they were called."""
    for name, body in FAKES.items():
        path = folder / "fakes" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}")
        path.chmod(0o755)
    return {
        "PATH": f"{folder / 'fakes'}:/usr/bin:/bin", "FAKE_LOG": str(folder / "log"),
        "FAKE_NODES": nodes, "SLURM_JOB_ID": "20017", "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_NUM_NODES": str(len(nodes.split())), "SLURM_JOB_NAME": "train",
    }  # fmt: skip


def run_script(
    text: str, folder: Path, variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a script as SLURM would, in the folder."""
    script = folder / "job.sh"
    script.write_bytes(os.fsencode(text))
    return subprocess.run(
        ["bash", str(script)],
        cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


HARD_WORDS = ("it's", "$HOME", "a b", "`x`", "a=b,c", "~/x", 'q"q', "*", "\\", "", "line\nbreak")


def many_jobs(prefix: str, number: int) -> Iterator[TrainJob]:
    """Jobs with all kinds of options, the same ones every time."""
    chance = random.Random(0)
    shapes = list(itertools.product((0, 1, 8), (1, 2), ("node", "gpu")))
    for count in range(number):
        gpus, nodes, tasks = shapes[count % len(shapes)]
        plain = tasks == "gpu" and gpus > 0
        program = ["python"] if plain or chance.random() < 0.3 else ["torchrun"]
        words = chance.sample(HARD_WORDS, 2)
        options: dict[str, Any] = {
            "cpus": chance.choice((0, 64)), "memory": chance.choice(("", "200G")),
            "time": chance.choice(("", "1-00:00:00")), "partition": chance.choice(("", "a,b")),
            "account": chance.choice(("", "robots")), "gpu_type": chance.choice(("", "h100")),
            "uses_gres": chance.random() < 0.5, "requeues": chance.choice((0, 3)),
            "logs": chance.choice((".", "logs", "a b/it's 100%")),
            "dataset": chance.choice(("", "/data/a $b")), "signal_seconds": chance.choice((1, 300)),
            "preflight_seconds": chance.choice((0, 300)),
            "is_with_torchcodec": chance.random() < 0.7,
            "more": chance.choice(((), ("--constraint=h100", "--qos=high"))),
        }  # fmt: skip
        yield TrainJob(
            (*program, "train.py", *words), prefix, gpus=gpus, nodes=nodes,
            tasks="gpu" if plain else "node", **options,
        )  # fmt: skip
