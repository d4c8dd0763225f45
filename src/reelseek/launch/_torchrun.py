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
from reelseek.launch._words import base, is_python

FLAGS = frozenset({
    "--standalone", "-m", "--module", "--no-python", "--run-path", "--virtual-local-rank",
    "-h", "--help",
})  # fmt: skip
"""The options that take no value."""
MODULES = ("torch.distributed.run", "torch.distributed.launch")


@dataclass(frozen=True, slots=True)
class Torchrun:
    """A command that starts torchrun."""

    num_words: int
    """Of torchrun itself: ``torchrun``, or ``python -m torch.distributed.run``."""
    options: MappingProxyType[str, str]
    """What it says, by the option's name with ``-``; flags have an empty value."""

    @property
    def is_static(self) -> bool:
        """Whether its nodes meet by torch's default, for which each has to be told its number."""
        backend = self.options.get("--rdzv-backend", "static")
        has_place = "--rdzv-endpoint" in self.options or "--master-addr" in self.options
        return backend == "static" and ("--rdzv-backend" in self.options or has_place)

    @property
    def is_numbered(self) -> bool:
        """Whether more is said than a place to meet, which alone may be filled up."""
        names = ("--rdzv-backend", "--node-rank", "--master-addr")
        return any(name in self.options for name in names)

    @property
    def meets(self) -> bool:
        """Whether several nodes find each other.

        Without a number each takes itself for the first, and waits for the others for ever.
        """
        if self.is_static:
            return "--node-rank" in self.options
        return "--rdzv-backend" in self.options and "--rdzv-endpoint" in self.options


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
    program = base(command[0]) if command else ""
    if program == "torchrun":
        return 1
    if is_python(program):
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
        LaunchError: The command asks for another number of nodes than the job has, or for a
            way to meet that needs another command on each node.
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
    if nodes > 1 and said.is_static and said.is_numbered:
        raise LaunchError(
            "torchrun is told to meet by torch's static rendezvous, in which every node needs a "
            "--node-rank of its own: with one command for all they would wait for ever",
            remedy="Leave out --master-addr, --master-port, --node-rank and --rdzv-backend: where "
            "the nodes meet is filled in",
        )
