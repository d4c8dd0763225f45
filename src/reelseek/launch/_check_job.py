"""What can be wrong with #SBATCH, srun, conda and torchrun in a batch script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reelseek.launch._problems import Problem
from reelseek.launch._shell_script import Command, Script
from reelseek.launch._starts import LD, Start, base, exports, starts
from reelseek.launch._torchrun import Torchrun, read_torchrun

SHORT = {"-N": "--nodes", "-G": "--gpus", "-J": "--job-name", "-c": "--cpus-per-task"}
HOOK = re.compile(
    r"shell\.\w+ hook|shell hook|^\s*(source|\.)\s|\bmodule\b.*(conda|mamba|forge)", re.IGNORECASE
)
"""What runs conda's hook, or may: a file that is sourced, conda from a module."""
HEAD = '"$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1):29500"'
"""Where torchrun's nodes may meet."""
TORCHRUN = re.compile(r"(\S*\btorchrun\b|-m torch\.distributed\.(run|launch)\b)")


def job_problems(script: Script) -> Iterator[Problem]:
    """All that is wrong with them."""
    for rule in RULES:
        yield from rule(script)


@dataclass(frozen=True, slots=True)
class _Asked:
    """An option of sbatch in the script."""

    line: int
    value: str


def _asked(script: Script) -> dict[str, _Asked]:
    """The options by their long names."""
    found = {}
    for line, text in script.sbatch:
        try:
            words = shlex.split(text, comments=True)
        except ValueError:
            words = text.split()
        rest = iter(words)
        for word in rest:
            name, has_value, value = word.partition("=")
            if not has_value and re.fullmatch(r"-[a-zA-Z]\S+", word):
                name, has_value, value = word[:2], "=", word[2:]
            if not has_value and name not in ("--requeue", "--no-requeue", "--exclusive"):
                value = next(rest, "")
            found[SHORT.get(name, name)] = _Asked(line, value)
    return found


def _number(asked: dict[str, _Asked], name: str, default: int = 0) -> int:
    """A whole number; the last one of ``gpu:h100:8``."""
    found = re.fullmatch(r"(?:.*[:=])?(\d+)", asked[name].value) if name in asked else None
    return int(found[1]) if found else default


def _frame(script: Script) -> Iterator[Problem]:
    if not script.lines[0].startswith("#!"):
        yield Problem(
            "no-shebang", 1, "the first line doesn't start with #!, and sbatch refuses the script",
            "#!/bin/bash",
        )  # fmt: skip
    if any(line.endswith("\r") for line in script.lines):
        yield Problem(
            "dos-line-breaks", 1, "lines end as on Windows, and sbatch refuses the script",
            "sed -i 's/\\r$//' SCRIPT",
        )  # fmt: skip
    for line in sorted(set(script.not_understood)):
        yield Problem(
            "not-understood", line, f"this isn't understood: {script.line(line)}",
            "bash -n SCRIPT  # is it bash?",
        )  # fmt: skip


def _sbatch_below(script: Script) -> Iterator[Problem]:
    first = 0
    for number, line in enumerate(script.lines, 1):
        text = line.strip()
        if text and not text.startswith("#") and not first:
            first = number
        if first and line.startswith("#SBATCH"):
            yield Problem(
                "sbatch-after-command", number,
                f"sbatch doesn't read this line, as it stands below the command on line {first}",
                f"move line {number} above line {first}: {text}",
            )  # fmt: skip


def _keeps_back(asked: dict[str, _Asked]) -> _Asked | None:
    """The --export that keeps variables back, if there is one."""
    export = asked.get("--export")
    return export if export and "ALL" not in export.value.split(",") else None


def _srun_export(script: Script) -> Iterator[Problem]:
    kept = _keeps_back(_asked(script))
    if not exports(script):
        return
    for command in script.commands:
        if "srun" not in [word.rpartition("/")[2] for word in command.words[:4]]:
            continue
        own = [w.partition("=")[2] for w in command.words if w.startswith("--export=")]
        is_kept = (kept and not own and not _is_lifted(script, command)) or (
            own and "ALL" not in own[0].split(",")
        )
        if is_kept:
            why = f"--export={own[0]}" if own else f"#SBATCH --export={kept.value if kept else ''}"
            yield Problem(
                "srun-export", command.line,
                f"under {why} srun doesn't pass on what the script exports, {LD} among it",
                _with_export_all(script.line(command.line)),
            )  # fmt: skip


def _is_lifted(script: Script, command: Command) -> bool:
    """Whether SLURM_EXPORT_ENV, by which srun knows, was unset or set to ALL before."""
    set_to = [m.expanded for m in script.assignments if m.name == "SLURM_EXPORT_ENV"]
    above = script.lines[: command.line]
    return "ALL" in set_to or any(re.match(r"\s*unset\b.*SLURM_EXPORT_ENV", a) for a in above)


def _with_export_all(line: str) -> str:
    bare = re.sub(r"\s--export=\S+", "", line)
    return re.sub(r"\bsrun\b", "srun --export=ALL", bare, count=1)


def _set_outside(script: Script) -> Iterator[Problem]:
    kept = _keeps_back(_asked(script))
    text = "\n".join(script.lines)
    is_activated = bool(re.search(r"\b(conda|mamba|micromamba)\b.*\bactivate\b|bin/activate", text))
    seen: set[str] = set()
    for name, line, at in script.bare_uses:
        is_set = any(m.name == name and m.at <= at for m in script.assignments)
        if name not in ("CONDA_PREFIX", "VIRTUAL_ENV") or is_set or is_activated or name in seen:
            continue
        seen.add(name)
        mend = f"{name}=/path/of/the/environment  # above line {line}"
        if kept:
            what = f"{name} is set outside, and --export={kept.value} keeps it back"
            yield Problem("set-outside", line, what, mend)
        else:
            what = f"{name} is whatever the shell that submits has activated"
            yield Problem("conda-missing", line, what, mend)


def _conda_hook(script: Script) -> Iterator[Problem]:
    if re.match(r"#!.*\s-\w*[il]", script.lines[0]):
        return
    for command in script.commands:
        is_activate = command.words[1:2] == ("activate",)
        if command.name in ("conda", "mamba", "micromamba") and is_activate:
            above = [a for a in script.lines[: command.line] if not a.lstrip().startswith("#")]
            if not any(HOOK.search(line) for line in above):
                yield Problem(
                    "conda-hook", command.line,
                    f"`{' '.join(command.words)}` fails in a batch script, where conda's hook "
                    "wasn't run",
                    f'eval "$({command.name} shell.bash hook)"; {script.line(command.line)}',
                )  # fmt: skip


def _torchruns(script: Script) -> Iterator[tuple[Start, Torchrun]]:
    for start in starts(script):
        found = read_torchrun(start.words)
        if found is not None:
            yield start, found


def _torchrun(script: Script) -> Iterator[Problem]:
    asked = _asked(script)
    nodes = _number(asked, "--nodes", 1)
    found = list(_torchruns(script))
    is_met = any(said.meets and _is_in_srun(script, start) for start, said in found)
    for start, said in found:
        # Of two branches, one may be for one node.
        if nodes > 1 and not (is_met and start.command.is_conditional):
            yield from _meeting_problems(script, start, said, nodes)
        wanted, told = _gpus(asked, nodes), said.options.get("--nproc-per-node", "1")
        if wanted and told.isdigit() and int(told) != wanted:
            line = start.command.line
            yield Problem(
                "nproc-differs", line,
                f"torchrun starts {told} on each node, which has {wanted} GPUs",
                _with_option(script.line(line), "--nproc-per-node", str(wanted)),
            )  # fmt: skip


def _too_often(script: Script) -> Iterator[Problem]:
    asked = _asked(script).get("--ntasks-per-node")
    if asked is None or not asked.value.isdigit() or int(asked.value) < 2:
        return
    for start, _said in _torchruns(script):
        before = " ".join(start.command.words[: start.program_at])
        if start.runs_in_srun and not re.search(r"(^| )(-n|--ntasks|--ntasks-per-node)\b", before):
            yield Problem(
                "torchrun-too-often", asked.line,
                f"srun starts torchrun {asked.value} times on each node (line "
                f"{start.command.line}), and each starts the processes of all GPUs",
                script.line(asked.line).replace(f"-node={asked.value}", "-node=1"),
            )  # fmt: skip
            return


def _with_option(text: str, name: str, value: str) -> str:
    """The line with an option of torchrun's changed, or put right behind torchrun."""
    either = name.replace("-", "[-_]").replace("[-_][-_]", "--", 1)
    mended, count = re.subn(rf"({either}[= ])\S+", lambda found: f"{found[1]}{value}", text)
    if count:
        return mended
    option = f"{name}={value}"
    mended = TORCHRUN.sub(lambda found: f"{found[0]} {option}", text, count=1)
    return mended if mended != text else f"{text}  # with {option}"


def _meeting_problems(
    script: Script, start: Start, said: Torchrun, nodes: int
) -> Iterator[Problem]:
    line = start.command.line
    text = script.line(line)
    is_alone = "--standalone" in said.options
    if is_alone or not said.meets:
        mended = re.sub(r"\s--standalone\b", "", text)
        for name, value in (
            ("--rdzv-endpoint", HEAD), ("--rdzv-id", '"$SLURM_JOB_ID"'), ("--rdzv-backend", "c10d"),
            ("--nnodes", str(nodes)),
        ):  # fmt: skip
            mended = _with_option(mended, name, value)
        why = "--standalone is for one" if is_alone else "it isn't told where they meet"
        what = f"torchrun runs on {nodes} nodes, and {why}"
        yield Problem("no-rendezvous", line, what, mended)
    if not _is_in_srun(script, start):
        yield Problem(
            "torchrun-not-in-srun", line,
            f"without srun torchrun runs on the first of {nodes} nodes alone",
            f"srun --export=ALL --ntasks-per-node=1 {text}",
        )  # fmt: skip
    told = re.fullmatch(r"(\d+)(?::(\d+))?", said.options.get("--nnodes", "1"))
    is_told = "--nnodes" in said.options or (said.meets and not is_alone)
    if is_told and told and not int(told[1]) <= nodes <= int(told[2] or told[1]):
        what = f"torchrun waits for {told[0]} of the job's {nodes} nodes"
        if int(told[1]) > nodes:
            what = f"torchrun waits for {told[0]} nodes, and the job has {nodes}"
        yield Problem("nnodes-differs", line, what, _with_option(text, "--nnodes", str(nodes)))


def _is_in_srun(script: Script, start: Start) -> bool:
    """Whether srun starts it, or the shell that it is given to."""
    shells = [part for part in start.command.place if part.startswith("shell ")]
    lines = {int(part.split()[1].partition(".")[0]) for part in shells}
    return start.runs_in_srun or any(
        other.line in lines and "srun" in map(base, other.words) for other in script.commands
    )


def _gpus(asked: dict[str, _Asked], nodes: int) -> int:
    """GPUs of a node; 0 where the script doesn't say."""
    if "--gpus-per-node" in asked:
        return _number(asked, "--gpus-per-node")
    if "--gres" in asked and re.fullmatch(r"gpu(:[\w.-]+)*", asked["--gres"].value):
        return _number(asked, "--gres", 1)
    if "--gpus" in asked:
        return _number(asked, "--gpus") // max(1, nodes)
    if "--gpus-per-task" in asked:
        return _number(asked, "--gpus-per-task") * _number(asked, "--ntasks-per-node", 1)
    return 0


def _restart(script: Script) -> Iterator[Problem]:
    asked = _asked(script)
    if not {"--requeue", "--no-requeue"} & asked.keys():
        yield Problem(
            "no-requeue", 0, "whether a preempted job starts again is the cluster's choice",
            "#SBATCH --requeue",
        )  # fmt: skip
    if "--signal" not in asked:
        yield Problem(
            "no-signal", 0, "when its time is up the program is killed, and can't save",
            "#SBATCH --signal=B:USR1@120",
        )  # fmt: skip


RULES: tuple[Callable[[Script], Iterator[Problem]], ...] = (
    _frame, _sbatch_below, _srun_export, _set_outside, _conda_hook, _torchrun, _too_often, _restart,
)  # fmt: skip
