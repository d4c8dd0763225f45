"""What all tests share: where the sample and the real datasets are, and skips that can't hide."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests import figures
from tests.clusters import ray_address, slurm

__all__ = ["ray_address", "slurm"]  # fixtures

# How long an example takes says more of what else the machine does than of the code.
hypothesis.settings.register_profile("reelseek", deadline=None)
hypothesis.settings.load_profile("reelseek")

BEGUN_FIRST = (
    "care/jobs/test_clusters.py", "test_docs.py", "video/test_backends.py",
    "launch/test_real_slurm.py", "native/test_real_environments.py", "test_examples.py",
    "datasets/test_workers.py", "native/test_activate.py", "care/test_clusters.py",
    "datasets/test_lerobot_parity.py", "bench/test_probe.py", "integrations/test_lerobot.py",
    "exactness/test_structures.py", "care/reencode/test_clusters.py", "care/test_index.py",
)  # fmt: skip
"""Modules that take the longest: where several processes run the tests, none of them is left alone
with one at the end."""

SCHEDULING = os.sched_getscheduler(0), os.sched_getparam(0)
SEARCH_PATH = os.environ.get("LD_LIBRARY_PATH")
REPOSITORY = Path(__file__).parent.parent
REQUIRED = frozenset(filter(None, os.environ.get("REELSEEK_REQUIRE", "").split(",")))
"""Names of what must not be skipped: ``torch``, ``torchcodec``, ``decord``, ``opencv``,
``torchvision``, ``lerobot``, ``transformers``, ``data``, ``slurm``, ``ray``, ``jinja2``,
``chromium``."""


def skip_without(name: str, reason: str) -> None:
    """Skip the test because ``name`` isn't there; fail where REELSEEK_REQUIRE names it."""
    if name in REQUIRED:
        pytest.fail(f"REELSEEK_REQUIRE names {name}, and {reason}")
    pytest.skip(reason)


def needs(module: str) -> None:
    """Skip the test, or fail it as ``skip_without`` does, where a module isn't installed."""
    if importlib.util.find_spec(module) is None:
        skip_without(module, f"{module} isn't installed")


def needed(module: str) -> Any:
    """A module that a whole test file needs; skips the file, or fails, as ``skip_without``."""
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        name = module.partition(".")[0]
        if name in REQUIRED:
            raise
        pytest.skip(f"{name} isn't installed: {exc}", allow_module_level=True)


@pytest.fixture(scope="session")
def real_datasets() -> Path:
    """The folder of real datasets beside the repository; skips where it isn't there."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        skip_without("data", "no folder of real datasets beside this clone")
    return folder


@pytest.fixture(autouse=True)
def _scheduling_of_the_start() -> None:
    """SVT-AV1 that root runs makes the thread that opens it, and what that starts, real-time ones.

    Nothing else runs on their cores: other tests wait until their time is out.
    """
    if os.sched_getscheduler(0) == SCHEDULING[0]:
        return
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.sched_setscheduler(int(thread.name), *SCHEDULING)


@pytest.fixture(autouse=True)
def _search_path_of_the_start() -> None:
    """OpenCV changes LD_LIBRARY_PATH when a test imports it, and other tests' processes get it."""
    if SEARCH_PATH is None:
        os.environ.pop("LD_LIBRARY_PATH", None)
    else:
        os.environ["LD_LIBRARY_PATH"] = SEARCH_PATH


@pytest.fixture
def figure() -> Callable[[str], None]:
    """Call it with a line that the end of the run shall show: what a test measured."""
    return figures.lines.append


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The modules that take the longest come first; tests of a module keep their order."""
    folder = Path(__file__).parent
    rank = {folder / name: number for number, name in enumerate(BEGUN_FIRST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process that runs a part of the tests hands what it measured to the one that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["figures"] = figures.handed_over()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what such a process measured."""
    output = getattr(node, "workeroutput", {})
    if "figures" in output:
        figures.take_over(output["figures"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was measured, and how much was compared with FFmpeg's own decode."""
    for title, lines in (
        ("measured", figures.lines),
        ("frames compared with FFmpeg's sequential decode", list(figures.comparisons())),
    ):
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.line(line)
