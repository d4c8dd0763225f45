"""What torchrun is told, and what is filled in."""

from __future__ import annotations

import pytest

from reelseek.errors import LaunchError
from reelseek.launch._torchrun import options_to_fill_in, read_torchrun

MEETING = [
    "--rdzv-backend=c10d",
    '--rdzv-endpoint="$reelseek_head:$reelseek_port"',
    '--rdzv-id="$SLURM_JOB_ID-$reelseek_restarts"',
]


def filled(command: str, nodes: int = 1, gpus: int = 8) -> list[str]:
    found = read_torchrun(command.split())
    assert found is not None
    return options_to_fill_in(found, nodes=nodes, gpus=gpus)


@pytest.mark.parametrize(
    "command",
    ["torchrun", "/env/bin/torchrun", "python -m torch.distributed.run",
     "python3.10 -u -m torch.distributed.launch"],
)  # fmt: skip
def test_each_way_to_start_torchrun_is_known(command: str) -> None:
    found = read_torchrun([*command.split(), "--nnodes", "2", "train.py"])
    assert found is not None
    assert found.num_words == len(command.split())
    assert dict(found.options) == {"--nnodes": "2"}


@pytest.mark.parametrize(
    "command", ["python train.py", "python -m train", "./torchrun.sh", "accelerate launch", "env"]
)
def test_other_commands_are_not_torchrun(command: str) -> None:
    assert read_torchrun(command.split()) is None


def test_one_node_stands_alone() -> None:
    assert filled("torchrun train.py") == ["--nproc-per-node=8", "--standalone"]


def test_several_nodes_are_told_where_they_meet() -> None:
    assert filled("torchrun train.py", nodes=2) == ["--nnodes=2", "--nproc-per-node=8", *MEETING]


def test_what_is_said_is_kept() -> None:
    assert filled("torchrun --nproc_per_node 4 --standalone a.py") == []
    met = "torchrun --nproc-per-node=4 --rdzv_endpoint=h:1 --rdzv-backend=c10d --rdzv-id=1 a.py"
    assert filled(met, nodes=2) == ["--nnodes=2"]
    assert filled("torchrun --nnodes 1:4 --rdzv-id=x a.py", nodes=2) == [
        "--nproc-per-node=8",
        *MEETING[:2],
    ]
    assert filled("torchrun --master_port 1 a.py") == ["--nproc-per-node=8"]


def test_place_alone_gets_the_rest_as_torchs_default_would_number_no_node() -> None:
    place = "torchrun --nnodes=2 --rdzv_endpoint=h:1 a.py"
    assert filled(place, nodes=2, gpus=0) == [MEETING[0], MEETING[2]]
    assert filled(place.replace("rdzv_endpoint", "master-port"), nodes=2, gpus=0) == MEETING


@pytest.mark.parametrize(
    "options",
    ["--master-addr h", "--rdzv-backend static --rdzv-endpoint h:1",
     "--rdzv-endpoint h:1 --node-rank 0", "--master_addr h --node_rank 0"],
)  # fmt: skip
def test_static_meeting_with_one_command_for_all_nodes_is_refused(options: str) -> None:
    with pytest.raises(LaunchError, match="would wait for ever"):
        filled(f"torchrun {options} a.py", nodes=2)
    assert filled(f"torchrun {options} a.py", gpus=0) == []


def test_options_of_the_script_are_not_torchruns() -> None:
    assert "--nproc-per-node=8" in filled("torchrun -m pkg.train --nproc-per-node 3")
    assert "--standalone" in filled("torchrun train.py --standalone")


@pytest.mark.parametrize(
    ("command", "said"),
    [("torchrun --nnodes=4 a.py", "would wait for ever"),
     ("torchrun --nnodes=3:4 a.py", "would wait for ever"),
     ("torchrun --standalone a.py", "which is for one node")],
)  # fmt: skip
def test_another_number_of_nodes_than_the_jobs_is_refused(command: str, said: str) -> None:
    with pytest.raises(LaunchError, match=said):
        filled(command, nodes=2)


def test_without_gpus_the_processes_are_torchruns_choice() -> None:
    assert filled("torchrun train.py", gpus=0) == ["--standalone"]
