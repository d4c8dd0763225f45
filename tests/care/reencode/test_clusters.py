"""A dataset encoded on a real SLURM or a real Ray is the one that is encoded here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.care.reencode.conftest import contents
from tests.cli.conftest import Run, reelseek_command
from tests.conftest import needs

pytestmark = pytest.mark.slow

__all__ = ["reelseek_command"]  # a fixture


@pytest.mark.parametrize("executor", ["slurm", "ray"])
def test_cluster_writes_the_same_bytes(
    reelseek_command: Run,
    request: pytest.FixtureRequest,
    sources: dict[str, Path],
    encoded: dict[str, Path],
    tmp_path: Path,
    executor: str,
) -> None:
    if executor == "slurm":
        needs("submitit")
        request.getfixturevalue("slurm")
    else:
        needs("ray")
    options = ("--codec", "av1", "--gop", 2, "--preset", 11, "--executor", executor, "--tasks", 2)
    done = reelseek_command("reencode", sources["v3.0"], tmp_path / "out", *options)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "out") == contents(encoded["v3.0"])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
