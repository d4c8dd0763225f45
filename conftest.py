"""Names that the docstrings' examples use."""

from __future__ import annotations

from typing import Any

import pytest

from reelseek.sample import sample_dataset


@pytest.fixture(autouse=True)
def _example_names(doctest_namespace: dict[str, Any]) -> None:
    root = sample_dataset()
    camera = "observation.images.top"
    doctest_namespace["sample_dataset"] = root
    doctest_namespace["sample_video"] = root / "videos/chunk-000" / camera / "episode_000000.mp4"
