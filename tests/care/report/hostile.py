"""A dataset whose every text tries to be markup, and some of whose files are broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.datasets import makers

SCRIPT = "<script>alert(1)</script>"
TASKS = (
    f"{SCRIPT} \"'&$\\alpha$ \u202e\x1b[31m",
    "'\"><img src=https://example.org/x onerror=a()>",
)
ELEMENTS = ("<svg onload=alert(2)>", "</text><script>alert(3)</script>", "$x^2$", "&amp;`code`")
CAMERA = 'observation.images.x" onmouseover="alert(4)'
ROBOT = "</style></title><script>alert(5)</script>"


def make_hostile(root: Path) -> Path:
    """A v2.1 dataset: of its cameras one has hostile pictures, one is cut, missing and empty."""
    spec = makers.Spec(lengths=(12, 9, 12), cameras=(CAMERA, makers.WRIST))
    makers.make_v21(root, spec)
    makers.change_info(root, _change_info)
    tasks = [{"task_index": number, "task": text} for number, text in enumerate(TASKS)]
    makers.write_lines(root / "meta/tasks.jsonl", tasks)
    episodes = (root / "meta/episodes.jsonl").read_text().splitlines()
    lines = [{**json.loads(line), "tasks": [TASKS[n % 2]]} for n, line in enumerate(episodes)]
    makers.write_lines(root / "meta/episodes.jsonl", lines)
    makers.as_cut(makers.v2_video(root, makers.WRIST, 0))
    makers.v2_video(root, makers.WRIST, 1).unlink()
    makers.as_lfs_pointer(makers.v2_video(root, makers.WRIST, 2))
    makers.as_cut(makers.v2_data(root, 2))
    return root


def _change_info(about: dict[str, Any]) -> None:
    about["robot_type"] = ROBOT
    about["features"]["observation.state"]["names"] = list(ELEMENTS)
