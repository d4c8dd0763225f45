"""What a report says of a dataset, section by section, before it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from reelseek.care.reencode import Measured
    from reelseek.care.verify import Finding

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section(Generic[T]):
    """A part of the page, or why it can't be made."""

    value: T | None
    """What it shows; None where it can't be made or wasn't asked for."""
    fault: str = ""
    """Why it can't be made; empty where it can."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """How much of a dataset was looked at."""

    taken: int
    total: int
    what: str
    """Of what, in the plural: ``episodes``, ``videos``."""

    def __str__(self) -> str:
        if self.taken == self.total:
            return f"all {self.total:,} {self.what}" if self.total > 1 else "the only one"
        return f"a sample of {self.taken:,} of {self.total:,} {self.what}"


@dataclass(frozen=True, slots=True)
class CameraFacts:
    """A camera as ``info.json`` lists it."""

    key: str
    kind: str
    """``video``, or ``images in parquet``, or ``no files``."""
    width: int
    """In pixels; 0 where it isn't said."""
    height: int
    """In pixels; 0 where it isn't said."""
    codec: str
    """As it is written there; empty where it isn't."""


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """One task, and how often it occurs."""

    index: int | None
    """Its task_index; None for a text that only episodes have."""
    text: str
    num_episodes: int
    num_frames: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What a dataset is."""

    format: str
    """Such as ``LeRobot v2.1``."""
    robot: str
    """What ``info.json`` says; empty where it doesn't."""
    num_episodes: int
    num_frames: int
    fps: float
    """Frames a second."""
    num_files: int
    num_bytes: int
    has_more_files: bool
    """True where the folder holds more files than were counted."""
    cameras: tuple[CameraFacts, ...]
    tasks: tuple[TaskFacts, ...]
    """The most frequent first; not all where there are many."""
    num_tasks: int

    @property
    def hours(self) -> float:
        """Recorded time, per camera, in hours."""
        return self.num_frames / self.fps / 3600


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of one code."""

    code: str
    severity: str
    """``error``, ``warning`` or ``note``."""
    findings: tuple[Finding, ...]
    """The first of them."""
    count: int
    """All of them."""
    remedy: str
    """The first one's."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What verify says."""

    level: str
    groups: tuple[FindingGroup, ...]
    """Errors first."""
    num_files: int
    """Videos and parquet files that were looked into."""
    seconds: float

    def count(self, severity: str) -> int:
        """How many there are of this severity."""
        return sum(group.count for group in self.groups if group.severity == severity)


@dataclass(frozen=True, slots=True)
class Picture:
    """One frame."""

    frame: int
    """Its row in its episode."""
    jpeg: bytes = field(repr=False)
    """A JPEG file."""
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class EpisodePictures:
    """Some frames of one episode."""

    episode: int
    pictures: tuple[Picture, ...]
    fault: str = ""
    """Why there are none; empty where there are."""


@dataclass(frozen=True, slots=True)
class CameraPictures:
    """A camera's contact sheet."""

    key: str
    episodes: tuple[EpisodePictures, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CameraCoding:
    """How a camera's videos are coded."""

    key: str
    codec: str
    """FFmpeg's name; empty where no video could be read."""
    width: int
    height: int
    pixel_format: str
    num_frames: int
    """Frames of the videos looked at."""
    num_bytes: int
    """Bytes of the videos looked at."""
    group_lengths: NDArray[np.int64]
    """Frames from each key frame to the next one, or to the end."""
    kinds: dict[str, int]
    """Coded frames by kind, in the first frames of the videos looked at."""
    first_units: tuple[tuple[str, int], ...]
    """The first coded frames of one video in decoding order: kind and bytes."""
    pruning: str
    """What is left out when a frame is read."""
    sample: Sampled
    faults: tuple[str, ...]
    """What could not be read, a line for each video."""

    @property
    def bytes_per_frame(self) -> float:
        """Bytes of a frame, on average."""
        return self.num_bytes / max(1, self.num_frames)


@dataclass(frozen=True, slots=True, eq=False)
class CameraSeeks:
    """What reads of a few frames at random places cost for one camera."""

    key: str
    needed: NDArray[np.int64]
    """(R,) coded frames that each read decodes."""
    on_the_way: NDArray[np.int64]
    """(R,) coded frames from the key frames to those read, which a plain decoder decodes."""
    if_reencoded: NDArray[np.int64]
    """(R,) the same with a key frame every 2 frames: an estimate from frame numbers."""
    milliseconds: NDArray[np.float64]
    """(M,) the time of reads through reelseek, of a file that is open."""
    backend: str
    """Which backend was timed."""
    sample: Sampled
    faults: tuple[str, ...]

    @property
    def gain(self) -> float:
        """How many times fewer frames would be decoded after re-encoding, on average."""
        return float(self.needed.mean() / self.if_reencoded.mean()) if len(self.needed) else 1.0

    @property
    def median_ms(self) -> float:
        """The time that half of the reads stay below, in milliseconds."""
        return float(np.median(self.milliseconds))

    @property
    def p95_ms(self) -> float:
        """The time that 95 % of the reads stay below, in milliseconds."""
        return float(np.quantile(self.milliseconds, 0.95))


@dataclass(frozen=True, slots=True)
class Seeks:
    """Random access for all cameras."""

    offsets: tuple[int, ...]
    """The frames of one read, from its base."""
    cameras: tuple[CameraSeeks, ...]

    @property
    def gain(self) -> float:
        """The gain of the camera that would gain most."""
        return max((camera.gain for camera in self.cameras), default=1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """How long episodes are."""

    frames: NDArray[np.int64]
    """(E,) of each episode."""
    shortest: tuple[tuple[int, int], ...]
    """Number and frames of the shortest episodes."""
    longest: tuple[tuple[int, int], ...]
    """Number and frames of the longest episodes."""

    @property
    def median(self) -> float:
        """Frames of the episode in the middle."""
        return float(np.median(self.frames))


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """One element of a vector, over the rows looked at."""

    name: str
    minimum: float
    quantiles: tuple[float, float, float]
    """1 %, 50 %, 99 %."""
    maximum: float
    num_not_finite: int
    """Rows that hold NaN or infinity."""
    counts: NDArray[np.int64]
    """Rows in each of equal bins from the minimum to the maximum."""

    @property
    def is_constant(self) -> bool:
        """True where all rows hold one value."""
        return self.minimum == self.maximum

    def place_of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where values lie between the minimum (0) and the maximum (1)."""
        low, span = self.minimum / 2, self.maximum / 2 - self.minimum / 2  # halves don't overflow
        return (values / 2 - low) / span if span else np.zeros(len(values))


@dataclass(frozen=True, slots=True)
class ValueRanges:
    """One state or action."""

    key: str
    dimensions: tuple[Dimension, ...]
    num_dimensions: int
    """More than ``dimensions`` where there are very many."""
    num_rows: int


@dataclass(frozen=True, slots=True)
class Values:
    """States, actions and other numbers."""

    keys: tuple[ValueRanges, ...]
    sample: Sampled
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Environment:
    """Where the report was made."""

    facts: dict[str, Any]
    """Versions, processor, commit."""
    decoders: tuple[tuple[str, str], ...]
    """Name and version of each decoder that is installed, and what is known of it."""
    verdict: str
    """The doctor's."""
    is_well: bool
    command: str
    """What mends it; empty where nothing is needed."""


SECTIONS = ("overview", "findings", "pictures", "coding", "seeks", "plan", "lengths", "values",
            "environment")  # fmt: skip
"""The names of a report's sections."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that a page shows."""

    name: str
    """The folder's name."""
    root: str
    made_at: datetime
    seconds: float
    """How long it took."""
    overview: Section[Overview]
    findings: Section[Findings]
    pictures: Section[tuple[CameraPictures, ...]]
    coding: Section[tuple[CameraCoding, ...]]
    seeks: Section[Seeks]
    plan: Section[tuple[Measured, ...]]
    """Encodings that were measured on the dataset's own frames."""
    lengths: Section[Lengths]
    values: Section[Values]
    environment: Section[Environment]
    hidden_cameras: tuple[str, ...] = field(default=())
    """Cameras that are left out because there are very many."""

    @property
    def faults(self) -> dict[str, str]:
        """The sections that can't be made, and why."""
        sections = {name: getattr(self, name) for name in SECTIONS}
        return {name: part.fault for name, part in sections.items() if part.fault}

    @property
    def is_sound(self) -> bool:
        """True where the dataset could be read, and verify, if it was asked, found no error."""
        if self.overview.fault or self.findings.fault:
            return False
        return self.findings.value is None or not self.findings.value.count("error")
