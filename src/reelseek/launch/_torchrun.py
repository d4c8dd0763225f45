"""What a torchrun command says of its nodes and processes, and what has to be filled in.

Options as in ``torch/distributed/run.py``: each may be written with ``-`` or ``_``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from reelseek.errors import LaunchError

FLAGS = frozenset({
    "--standalone", "-m", "--module", "--no-python", "--run-path", "--virtual-local-rank",
    "-h", "--help",
})  # fmt: skip
"""The options that take no value."""
PYTHON = re.compile(r"python(3(\.\d+)?)?")
MODULES = ("torch.distributed.run", "torch.distributed.launch")
RENDEZVOUS = ("--rdzv-endpoint", "--master-addr")
"""Either tells the nodes where to meet."""


@dataclass(frozen=True, slots=True)
class Torchrun:
    """A command that starts torchrun."""

    num_words: int
    """Of torchrun itself: ``torchrun``, or ``python -m torch.distributed.run``."""
    options: MappingProxyType[str, str]
    """What it says, by the option's name with ``-``; flags have an empty value."""

    @property
    def meets(self) -> bool:
        """Whether it says where its nodes meet."""
        return any(name in self.options for name in RENDEZVOUS)


def read_torchrun(command: Sequence[str]) -> Torchrun | None:
    """What a torchrun command says; None where the command is another one."""
    num_words = _torchrun_words(command)
    if not num_words:
        return None
    options: dict[str, str] = {}
    rest = iter(command[num_words:])
    for word in rest:
        if not word.startswith("-") or word == "--":
            break
        name, has_value, value = word.partition("=")
        name = name.replace("_", "-")
        options[name] = value if has_value or name in FLAGS else next(rest, "")
    return Torchrun(num_words, MappingProxyType(options))


def _torchrun_words(command: Sequence[str]) -> int:
    program = command[0].rpartition("/")[2] if command else ""
    if program == "torchrun":
        return 1
    if PYTHON.fullmatch(program):
        for at, word in enumerate(command[1:], 1):
            if word == "-m":
                return at + 2 if command[at + 1 : at + 2] and command[at + 1] in MODULES else 0
            if not word.startswith("-"):
                return 0
    return 0


def options_to_fill_in(said: Torchrun, *, nodes: int, gpus: int) -> list[str]:
    """The options that torchrun needs and isn't given, as words for bash.

    They use ``reelseek_head`` and ``reelseek_port``, the place where the nodes meet.

    Raises:
        LaunchError: The command asks for another number of nodes than the job has.
    """
    _check_nodes(said, nodes)
    words = []
    if nodes > 1 and "--nnodes" not in said.options:
        words.append(f"--nnodes={nodes}")
    if gpus and "--nproc-per-node" not in said.options:
        words.append(f"--nproc-per-node={gpus}")
    if nodes > 1 and not said.meets:
        words += _meeting(said)
    elif nodes == 1 and not _says_rendezvous(said):
        words.append("--standalone")
    return words


def _meeting(said: Torchrun) -> list[str]:
    words = {
        "--rdzv-backend": "--rdzv-backend=c10d",
        "--rdzv-endpoint": '--rdzv-endpoint="$reelseek_head:$reelseek_port"',
        # A started job's old processes can't join the new ones.
        "--rdzv-id": '--rdzv-id="$SLURM_JOB_ID-$reelseek_restarts"',
    }
    return [word for name, word in words.items() if name not in said.options]


def _says_rendezvous(said: Torchrun) -> bool:
    return any(
        name == "--standalone" or name.startswith(("--rdzv-", "--master-")) for name in said.options
    )


def _check_nodes(said: Torchrun, nodes: int) -> None:
    asked: Any = said.options.get("--nnodes", "")
    if asked and re.fullmatch(r"\d+(:\d+)?", asked):
        low, _, high = asked.partition(":")
        if not int(low) <= nodes <= int(high or low):
            raise LaunchError(
                f"torchrun is told --nnodes={asked}, and the job has {nodes}: it would wait for "
                "ever",
                remedy="Leave --nnodes out, or give the same --nodes",
            )
    if nodes > 1 and "--standalone" in said.options:
        raise LaunchError(
            f"torchrun is told --standalone, which is for one node, and the job has {nodes}",
            remedy="Leave --standalone out: where the nodes meet is filled in",
        )
