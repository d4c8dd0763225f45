"""A dataset for openpi's data loader, reading through reelseek.

::

    from reelseek.integrations.openpi import open_dataset

    dataset = open_dataset(root, action_horizon=50, action_sequence_keys=["action"])
    dataset = openpi.training.data_loader.transform_dataset(dataset, data_config)

or, in openpi's own code, one call before its data loader is made::

    reelseek.integrations.openpi.enable()

Frames are uint8, channels first. openpi's transforms take that as they take LeRobot's float32,
which they turn into the same uint8: both conversions are spared, and three quarters of the memory.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, SupportsIndex

import numpy as np

import reelseek.datasets
from reelseek.errors import DatasetNotFoundError, DependencyError
from reelseek.integrations._patch import Patch
from reelseek.integrations._switch import Enabled, Switch

Images = Literal["uint8", "float32"]

HOME = "openpi.training.data_loader"
"""The module whose ``create_torch_dataset`` is replaced."""
FAKE = "fake"
"""The repo_id that openpi keeps for made-up data."""


class DataConfig(Protocol):
    """What is read of openpi's ``DataConfig``."""

    repo_id: str | None
    """The dataset, as LeRobot names it."""
    action_sequence_keys: Sequence[str]
    """The keys that hold a chunk of actions."""
    prompt_from_task: bool
    """True where the task's text is the prompt."""


@dataclass(frozen=True, slots=True)
class Options:
    """How ``enable`` was called."""

    root: str | None = None
    images: Images = "uint8"
    backend: str = "auto"


class OpenpiDataset:
    """Samples as openpi's ``Dataset`` protocol has them: ``dataset[i]`` is a dict, and ``len``.

    Pickling: as ``reelseek.Dataset``; openpi's workers are spawned. Nothing in it needs torch.
    """

    def __init__(
        self, dataset: reelseek.datasets.Dataset, *, images: Images, prompt_from_task: bool
    ) -> None:
        self.dataset = dataset
        self._images = images
        self._prompt_from_task = prompt_from_task

    def __getitem__(self, index: SupportsIndex) -> dict[str, Any]:
        """The sample of this number.

        Returns:
            LeRobot's keys as NumPy values. Cameras: (3, H, W) uint8, or float32 from 0 to 1 as
            LeRobot has them. Action keys: (action_horizon, D), and ``<key>_is_pad``. ``prompt``:
            the task's text, where it was asked for.

        Raises:
            SampleIndexError: There is no such sample.
            DatasetError: A file of the dataset is missing, damaged or disagrees with another.
            VideoError: A video can't be read.
        """
        sample = self.dataset[index.__index__()]
        if self._images == "float32":
            for camera in self.dataset.cameras:
                sample[camera] = np.divide(sample[camera], 255, dtype=np.float32)
        if self._prompt_from_task:
            sample["prompt"] = sample["task"]
        return sample

    def __len__(self) -> int:
        return len(self.dataset)

    def __repr__(self) -> str:
        return f"OpenpiDataset({self.dataset!r})"


def open_dataset(
    root: str | os.PathLike[str],
    *,
    action_horizon: int,
    action_sequence_keys: Iterable[str] = ("actions",),
    prompt_from_task: bool = False,
    cameras: Sequence[str] | None = None,
    episodes: Sequence[int] | None = None,
    images: Images = "uint8",
    backend: str = "auto",
) -> OpenpiDataset:
    """Open a LeRobot dataset (v2.0, v2.1 or v3.0) for openpi.

    Args:
        root: The dataset's folder.
        action_horizon: How many actions, from the sample's own on, each of the keys holds.
        action_sequence_keys: The keys that hold them; openpi's default.
        prompt_from_task: Adds the task's text as ``prompt``, as openpi does for its own.
        cameras: Keys or patterns of the cameras to decode; None takes all. Decode none that the
            transforms don't use.
        episodes: Numbers of the episodes to read; None takes all.
        images: ``uint8``, or ``float32`` as LeRobot has them.
        backend: Which decoder, as for ``open_video``.

    Raises:
        DatasetError: See ``reelseek.open_dataset``.

    Example:
        >>> dataset = open_dataset(sample_dataset, action_horizon=50,
        ...     action_sequence_keys=["action"], prompt_from_task=True)
        >>> sample = dataset[0]
        >>> sample["action"].shape, sample["observation.images.top"].shape, sample["prompt"][:7]
        ((50, 14), (3, 128, 128), 'Pick up')
    """
    if images not in ("uint8", "float32"):
        raise ValueError(f"images={images!r}: choose one of uint8, float32")
    dataset = reelseek.datasets.open_dataset(
        root,
        delta_indices={key: range(action_horizon) for key in action_sequence_keys},
        cameras=cameras,
        episodes=episodes,
        output="numpy",
        backend=backend,
    )
    return OpenpiDataset(dataset, images=images, prompt_from_task=prompt_from_task)


def create_torch_dataset(
    data_config: DataConfig,
    action_horizon: int,
    model_config: Any = None,
    *,
    root: str | os.PathLike[str] | None = None,
    images: Images = "uint8",
    backend: str = "auto",
) -> OpenpiDataset:
    """openpi's function of this name: the dataset that a training config names.

    Args:
        data_config: openpi's.
        action_horizon: How many actions a sample holds.
        model_config: openpi's; nothing depends on it.
        root: The dataset's folder; None for where LeRobot keeps the config's ``repo_id``:
            ``$HF_LEROBOT_HOME``, or ``lerobot`` in Hugging Face's cache. Nothing is downloaded.
        images: As for ``open_dataset``.
        backend: As for ``open_dataset``.

    Raises:
        ValueError: The config names no dataset.
        DatasetNotFoundError: It isn't there.
        DatasetError: See ``reelseek.open_dataset``.
    """
    if data_config.repo_id is None:
        raise ValueError("Repo ID is not set. Cannot create dataset.")  # in openpi's words
    folder = Path(root) if root is not None else lerobot_home() / data_config.repo_id
    if not folder.is_dir():
        raise DatasetNotFoundError(
            f"the dataset {data_config.repo_id} isn't there",
            remedy="Copy it there, set HF_LEROBOT_HOME to the folder that holds it, or pass root; "
            "reelseek downloads nothing",
            path=folder,
        )
    return open_dataset(
        folder,
        action_horizon=action_horizon,
        action_sequence_keys=data_config.action_sequence_keys,
        prompt_from_task=data_config.prompt_from_task,
        images=images,
        backend=backend,
    )


def lerobot_home() -> Path:
    """The folder in which LeRobot keeps datasets by name."""
    if os.environ.get("HF_LEROBOT_HOME"):
        return Path(os.environ["HF_LEROBOT_HOME"]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    return Path(home).expanduser() / "lerobot"


def enable(
    *,
    root: str | os.PathLike[str] | None = None,
    images: Images = "uint8",
    backend: str = "auto",
) -> Enabled[Options]:
    """Let the installed openpi make its datasets with ``create_torch_dataset`` of this module.

    It lasts until ``disable``, or to the end of a ``with`` statement; datasets made meanwhile stay
    as they are, in workers too. openpi's made-up dataset (``repo_id="fake"``) stays its own.

    Args:
        root: As for ``create_torch_dataset``, and so are the others.
        images: As there.
        backend: As there.

    Raises:
        DependencyError: openpi isn't installed, or has no such function.
    """
    return _switch.set(Options(None if root is None else os.fspath(root), images, backend))


def disable() -> None:
    """Let openpi make its datasets itself again; nothing happens where it does already."""
    _switch.set(None)


def is_enabled() -> bool:
    """True between ``enable`` and ``disable``."""
    return _switch.options is not None


def _patch_for(options: Options) -> Patch:
    try:
        own = importlib.import_module(HOME).create_torch_dataset
    except (ModuleNotFoundError, AttributeError) as exc:
        if isinstance(exc, ModuleNotFoundError) and not (exc.name or "").startswith("openpi"):
            raise
        raise DependencyError(
            f"openpi isn't installed, or {HOME} has no create_torch_dataset",
            remedy="Make the dataset with reelseek.integrations.openpi.open_dataset, and give it "
            "to openpi's transform_dataset",
            detail=str(exc),
        ) from exc

    @functools.wraps(own)
    def create(data_config: Any, action_horizon: int, model_config: Any = None) -> Any:
        if data_config.repo_id == FAKE:
            return own(data_config, action_horizon, model_config)
        return create_torch_dataset(
            data_config,
            action_horizon,
            root=options.root,
            images=options.images,
            backend=options.backend,
        )

    return Patch({own: create})


_switch = Switch(_patch_for)
