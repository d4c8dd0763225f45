"""Run LeRobot's own tests with the drop-in on, or without it to compare.

Usage: python scripts/run_lerobot_tests.py [--off] CHECKOUT [pytest's arguments]

CHECKOUT is a folder with LeRobot's ``tests`` of the installed release: its source distribution has
few of them, its repository at the release's tag has all. They aren't part of this repository. They
need ``pip install pyserial`` besides what requirements/lerobot.txt lists.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

USES_VIDEO = ("test_datasets.py", "test_streaming.py", "test_aggregate.py", "test_dataset_tools.py",
              "test_subtask_dataset.py", "test_streaming_video_encoder.py")  # fmt: skip
"""The files in ``tests/datasets`` that make datasets with videos, or read some."""


class DropIn:
    """A pytest plugin that turns the drop-in on before the tests, and counts what it read."""

    def __init__(self) -> None:
        self.num_videos = 0

    def pytest_sessionstart(self) -> None:
        """Turn it on."""
        from reelseek.integrations import _videos, lerobot

        get = _videos.VideoFiles.get

        def counted(files: _videos.VideoFiles, path: str) -> object:
            self.num_videos += 1
            return get(files, path)

        _videos.VideoFiles.get = counted  # type: ignore[assignment, method-assign]
        lerobot.enable()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how often it read, so that a run without any isn't taken for a pass."""
        terminalreporter.line(f"reads through reelseek: {self.num_videos}")


def main(arguments: list[str]) -> int:
    """Run them; pytest's exit status."""
    is_off = "--off" in arguments
    checkout, *others = [argument for argument in arguments if argument != "--off"]
    folder = Path(checkout)
    files = [
        str(path.resolve())
        for name in USES_VIDEO
        if (path := folder / "tests/datasets" / name).exists()
    ]
    if not files:
        sys.exit(f"{folder / 'tests/datasets'} has none of {', '.join(USES_VIDEO)}")
    from reelseek.bench._torchvision_loading import import_peer
    from reelseek.native import activate

    activate()
    import_peer("lerobot.datasets.lerobot_dataset")
    os.chdir(folder)
    sys.path.insert(0, str(Path.cwd()))
    options = ["-p", "no:cacheprovider", "-q", "-ra", *others, *files]
    return int(pytest.main(options, plugins=[] if is_off else [DropIn()]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
