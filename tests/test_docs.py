"""Every snippet and command in the documents is run, in order, on the sample dataset.

Blocks marked ``python`` run in one process per document; blocks marked ``console`` hold commands
after ``$``. An HTML comment ``<!-- not run: why -->`` before a block leaves it out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters import needs_submitit
from tests.conftest import REPOSITORY, needs, skip_without
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

DOCUMENTS = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")])
BLOCK = re.compile(
    r"(?P<excuse><!-- not run: [^\n]+ -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S
)
EXIT_STATUS = re.compile(r"#\s*exit status (\d)")


def blocks(document: Path, kind: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each block of a kind that isn't excused."""
    text = document.read_text()
    for match in BLOCK.finditer(text):
        if match["kind"] == kind and not match["excuse"]:
            yield text.count("\n", 0, match.start()) + 1, match["body"]


def commands(document: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of each command after ``$`` in the console blocks."""
    for line, body in blocks(document, "console"):
        for row in body.splitlines():
            if row.startswith("$ "):
                yield line, row[2:]


WITH_PYTHON = [document for document in DOCUMENTS if any(blocks(document, "python"))]


def environment() -> dict[str, str]:
    """The environment in which a reader would run the commands, with .venv/bin first."""
    beside = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{beside}:{os.environ['PATH']}", "MPLBACKEND": "Agg"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder where the documents' paths exist and what they write harms nothing."""
    (tmp_path / "sample").symlink_to(REPOSITORY / "sample")
    return tmp_path


@pytest.mark.parametrize("document", WITH_PYTHON, ids=lambda path: path.name)
def test_python_snippets_run(document: Path, place: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        skip_without("torch", "torch isn't installed")
    parts = [f"# line {line}\n{body}" for line, body in blocks(document, "python")]
    script = place / "snippets.py"
    body = "\n".join(parts)
    script.write_text(body)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        cwd=place, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{body}\n{done.stdout}\n{done.stderr}"


COMMANDS = [(d, line, command) for d in DOCUMENTS for line, command in commands(d)]


@pytest.mark.parametrize(
    ("document", "line", "command"),
    COMMANDS,
    ids=[f"{d.name}:{n}:{c[:40]}" for d, n, c in COMMANDS],
)
def test_console_commands_run(
    document: Path, line: int, command: str, place: Path, request: pytest.FixtureRequest
) -> None:
    if command.startswith("make "):
        target = command.split()[1]
        assert re.search(rf"^{target}:", (REPOSITORY / "Makefile").read_text(), re.M), command
        return
    expected = int(found[1]) if (found := EXIT_STATUS.search(command)) else 0
    if "demo" in command or "bench" in command or "torchcodec" in command:
        for package in ("torch",) if "torchcodec" in command else ("torch", "matplotlib"):
            if importlib.util.find_spec(package) is None:
                skip_without(package, f"{package} isn't installed")
    if "reelseek report" in command:
        needs("jinja2")
    if "--executor slurm" in command:
        needs_submitit()
        request.getfixturevalue("slurm")
    if "--executor ray" in command:
        needs("ray")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"


def test_every_document_is_free_of_unknown_block_kinds() -> None:
    kinds = {m["kind"] for d in DOCUMENTS for m in BLOCK.finditer(d.read_text())}
    assert kinds <= {"python", "console", "text", "sh", "json", "bibtex", "yaml"}, kinds


def test_benchmark_tables_are_the_kept_results() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/bench_table.py", "check"],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}: run `python scripts/bench_table.py render`"
