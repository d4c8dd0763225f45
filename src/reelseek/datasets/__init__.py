"""Robot datasets: LeRobot v2.0, v2.1 and v3.0, and GR00T's, as one model."""

from reelseek.datasets._dataset import Dataset
from reelseek.datasets._open import open_dataset
from reelseek.datasets._records import Episode, Episodes, Feature, Location

__all__ = ["Dataset", "Episode", "Episodes", "Feature", "Location", "open_dataset"]
