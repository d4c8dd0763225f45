"""Robot datasets: LeRobot v2.0, v2.1 and v3.0, and GR00T's, as one model."""

from reelseek.datasets._dataset import Dataset
from reelseek.datasets._open import open_dataset
from reelseek.datasets._records import Episode, Episodes, Feature, Location
from reelseek.datasets._statistics import Statistics
from reelseek.datasets._summary import (
    CameraSummary,
    DatasetSummary,
    IndexSummary,
    summarise,
)

__all__ = [
    "CameraSummary",
    "Dataset",
    "DatasetSummary",
    "Episode",
    "Episodes",
    "Feature",
    "IndexSummary",
    "Location",
    "Statistics",
    "open_dataset",
    "summarise",
]
