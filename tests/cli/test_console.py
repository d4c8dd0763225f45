"""What is shown of names that other people chose."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from reelseek.cli import _console


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_takes_any_name(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = io.StringIO()
    screen = Console(file=written, force_terminal=is_terminal, width=80)
    monkeypatch.setattr(_console, "Console", lambda **_options: screen)
    with _console.progress() as tell:
        tell("camera top[/]\x1b[31m\nnext")
        if is_terminal:
            screen.print(screen._live_stack[0].get_renderable())
    shown = written.getvalue() if is_terminal else capsys.readouterr().err
    assert "camera top[/]\\x1b[31m\\nnext" in shown
