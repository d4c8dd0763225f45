"""What can be wrong with #SBATCH, srun, conda and torchrun in a batch script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reelseek.launch._problems import Problem
from reelseek.launch._shell_records import Command, Script
from reelseek.launch._starts import LD, Start, exports, program_of, starts
from reelseek.launch._torchrun import Torchrun, read_torchrun
from reelseek.launch._words import base

SHORT = {"-N": "--nodes", "-G": "--gpus", "-J": "--job-name", "-c": "--cpus-per-task"}
HOOK = re.compile(
    r"shell\.\w+ hook|shell hook|^\s*(source|\.)\s|\bmodule\b.*(conda|mamba|forge)", re.IGNORECASE
)
"""What runs conda's hook, or may: a file that is sourced, conda from a module."""
HEAD = '"$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1):29500"'
"""Where torchrun's nodes may meet."""
EXPORT = re.compile(r"--export[= ](?!\\$)\S+")
SRUN = re.compile(r"\bsrun\b")
STANDALONE = re.compile(r"(?<!\S)--standalone\b")
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
        if first and line.startswith("#SBATCH") and number not in script.text_lines:
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
        if "srun" not in map(base, command.words[:4]):
            continue
        own = _own_export(command)
        is_kept = "ALL" not in own.split(",") if own else kept and not _is_lifted(script, command)
        if is_kept:
            why = f"--export={own}" if own else f"#SBATCH --export={kept.value if kept else ''}"
            line = _line_with(script, command, EXPORT if own else SRUN)
            yield Problem(
                "srun-export", line,
                f"under {why} srun doesn't pass on what the script exports, {LD} among it",
                _with_export_all(script.line(line)),
            )  # fmt: skip


def _own_export(command: Command) -> str:
    """What srun itself is told with --export; empty where it isn't."""
    words = command.words[: program_of(command)]
    for word, following in zip(words, (*words[1:], ""), strict=True):
        if word == "--export" or word.startswith("--export="):
            return following if word == "--export" else word.partition("=")[2]
    return ""


def _line_with(script: Script, command: Command, *wanted: re.Pattern[str]) -> int:
    """The line of a command with the first of these that is found; its first line where none is."""
    lines = range(command.line, command.last_line + 1)
    found = (n for one in wanted for n in lines if one.search(script.line(n)))
    return next(found, command.line)


def _is_lifted(script: Script, command: Command) -> bool:
    """Whether SLURM_EXPORT_ENV, by which srun knows, was unset or set to ALL before."""
    set_to = [m.expanded for m in script.assignments if m.name == "SLURM_EXPORT_ENV"]
    above = script.lines[: command.line]
    return "ALL" in set_to or any(re.match(r"\s*unset\b.*SLURM_EXPORT_ENV", a) for a in above)


def _with_export_all(line: str) -> str:
    bare = EXPORT.sub("--export=ALL", line, count=1)
    return bare if bare != line else SRUN.sub("srun --export=ALL", line, count=1)


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
            line = _line_with(script, start.command, _option("--nproc-per-node"), TORCHRUN)
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


def _option(name: str) -> re.Pattern[str]:
    """An option of torchrun's and its value in a line."""
    either = name.replace("-", "[-_]").replace("[-_][-_]", "--", 1)
    return re.compile(rf"({either}[= ])(?!\\$)\S+")


def _with_option(text: str, name: str, value: str) -> str:
    """The line with an option of torchrun's changed, or put right behind torchrun."""
    mended, count = _option(name).subn(lambda found: f"{found[1]}{value}", text)
    return mended if count else _with_options(text, f"{name}={value}")


def _with_options(text: str, options: str) -> str:
    """The line with more options right behind torchrun, or where it seems to end."""
    mended = TORCHRUN.sub(lambda found: f"{found[0]} {options}", text, count=1)
    if mended != text:
        return mended
    is_continued = text.endswith("\\")
    return f"{text[:-1]}{options} \\" if is_continued else f"{text}  # with {options}"


def _meeting_problems(
    script: Script, start: Start, said: Torchrun, nodes: int
) -> Iterator[Problem]:
    if "--standalone" in said.options:
        why = "--standalone is for one"
        yield _no_rendezvous(script, start, said, nodes, why)
    elif not said.meets:
        why = "it isn't told where they meet"
        if said.is_static or "--rdzv-endpoint" in said.options:
            why = "without --rdzv-backend=c10d each takes itself for the first"
        yield _no_rendezvous(script, start, said, nodes, why)
    elif said.is_static and _is_numbered_early(start, said):
        why = "$SLURM_NODEID is 0 where the script runs: each takes itself for the first"
        yield _no_rendezvous(script, start, said, nodes, why)
    if not _is_in_srun(script, start):
        yield Problem(
            "torchrun-not-in-srun", start.command.line,
            f"without srun torchrun runs on the first of {nodes} nodes alone",
            f"srun --export=ALL --ntasks-per-node=1 {script.line(start.command.line)}",
        )  # fmt: skip
    yield from _other_nodes(script, start, said, nodes)


def _is_numbered_early(start: Start, said: Torchrun) -> bool:
    """Whether the batch script fills in the node's number, and not a shell on each node."""
    number = said.options.get("--node-rank", "")
    return start.runs_in_srun and re.fullmatch(r"\$\{?SLURM_(NODEID|PROCID)\}?", number) is not None


def _no_rendezvous(script: Script, start: Start, said: Torchrun, nodes: int, why: str) -> Problem:
    """Changes the line with ``--standalone``, or the backend's, or torchrun's own."""
    backend = _option("--rdzv-backend")
    is_changed = said.is_static and "--rdzv-backend" in said.options
    line = _line_with(script, start.command, STANDALONE, backend if is_changed else TORCHRUN)
    text = script.line(line)
    wanted = {
        "--nnodes": str(nodes), "--rdzv-backend": "c10d", "--rdzv-id": '"$SLURM_JOB_ID"',
        "--rdzv-endpoint": HEAD,
    }  # fmt: skip
    missing = [f"{name}={value}" for name, value in wanted.items() if name not in said.options]
    options = " ".join(missing)
    mended = text
    if "--nnodes" in said.options:
        mended = _option("--nnodes").sub(lambda found: f"{found[1]}{nodes}", text)
    if STANDALONE.search(text):
        mended = STANDALONE.sub(lambda _found: options, mended)
    elif is_changed and backend.search(text):
        mended = backend.sub(lambda found: f"{found[1]}c10d {options}".rstrip(), mended)
    elif missing:
        mended = _with_options(mended, options)
    what = f"torchrun runs on {nodes} nodes, and {why}"
    return Problem("no-rendezvous", line, what, mended)


def _other_nodes(script: Script, start: Start, said: Torchrun, nodes: int) -> Iterator[Problem]:
    told = re.fullmatch(r"(\d+)(?::(\d+))?", said.options.get("--nnodes", "1"))
    is_told = "--nnodes" in said.options or (said.meets and "--standalone" not in said.options)
    if is_told and told and not int(told[1]) <= nodes <= int(told[2] or told[1]):
        what = f"torchrun waits for {told[0]} of the job's {nodes} nodes"
        if int(told[1]) > nodes:
            what = f"torchrun waits for {told[0]} nodes, and the job has {nodes}"
        line = _line_with(script, start.command, _option("--nnodes"), TORCHRUN)
        mended = _with_option(script.line(line), "--nnodes", str(nodes))
        yield Problem("nnodes-differs", line, what, mended)


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
