"""Backends with faults, and a short way to make them known to subprocesses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reelseek.bench import _child


@pytest.fixture
def faulty_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backends ``crashes``, ``hangs`` and ``neighbour``, known to subprocesses only."""
    command = (sys.executable, str(Path(__file__).with_name("faulty_child.py")))
    monkeypatch.setattr(_child, "CHILD_COMMAND", command)
