"""The sample dataset that comes with reelseek."""

from __future__ import annotations

from pathlib import Path

from reelseek.errors import DatasetNotFoundError

NAME = "aloha3cam"


def sample_dataset() -> Path:
    """The sample dataset's folder: two episodes, three cameras, AV1; LeRobot v2.1.

    Raises:
        DatasetNotFoundError: This installation has none.
    """
    package = Path(__file__).parent
    for folder in (package / "_sample" / NAME, package.parent.parent / "sample" / NAME):
        if folder.is_dir():
            return folder
    raise DatasetNotFoundError(
        "this installation of reelseek comes without its sample dataset",
        remedy="Give the folder of a dataset of your own",
        path=package / "_sample",
    )
