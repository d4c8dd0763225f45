"""Reading ``meta/info.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reelseek.datasets._files import brief, read_json, whole_number
from reelseek.datasets._records import DatasetInfo, Feature
from reelseek.errors import DatasetFormatError, DatasetNotFoundError, UnsupportedDatasetError

VERSIONS = ("v2.0", "v2.1", "v3.0")


def read_info(root: Path) -> DatasetInfo:
    """What a dataset says of itself.

    Raises:
        DatasetNotFoundError: The folder isn't there, or has no ``meta/info.json``.
        UnsupportedDatasetError: Its version isn't known.
        DatasetFormatError: The file is damaged.
    """
    path = root / "meta" / "info.json"
    if not root.is_dir():
        raise DatasetNotFoundError(
            "a file, not a folder" if root.is_file() else "no such folder",
            remedy="Check the path, and that the disk or NAS is mounted on this machine",
            path=root,
        )
    if not path.is_file():
        raise DatasetNotFoundError(
            "no dataset: the folder has no meta/info.json",
            remedy="Give the folder that holds meta, data and videos",
            path=root,
        )
    raw = read_json(path)
    version = _version(raw, path)
    return DatasetInfo(
        version=version,
        fps=_fps(raw, path),
        features=_features(raw, path),
        data_path=_template(raw, "data_path", path),
        video_path=_template(raw, "video_path", path) if raw.get("video_path") else None,
        chunks_size=whole_number(raw.get("chunks_size", 1000), "chunks_size", path, least=1),
        raw=raw,
    )


def _version(raw: dict[str, Any], path: Path) -> str:
    version = raw.get("codebase_version")
    if version not in VERSIONS:
        raise UnsupportedDatasetError(
            f"codebase_version is {brief(version)}",
            remedy=f"reelseek reads {', '.join(VERSIONS)}; convert older sets with LeRobot's own "
            "scripts",
            path=path,
        )
    return str(version)


def _fps(raw: dict[str, Any], path: Path) -> float:
    fps = raw.get("fps")
    if isinstance(fps, int | float) and not isinstance(fps, bool) and 0 < fps <= 1_000_000:
        return float(fps)
    raise DatasetFormatError(
        f"fps is {brief(fps)}, which is no frame rate",
        remedy="Write the recording's frames a second there",
        path=path,
    )


def _template(raw: dict[str, Any], name: str, path: Path) -> str:
    template = raw.get(name)
    if not isinstance(template, str):
        raise DatasetFormatError(
            f"{name} is {brief(template)}, which is no path template",
            remedy="Copy the file again from its source",
            path=path,
        )
    return template


def _features(raw: dict[str, Any], path: Path) -> dict[str, Feature]:
    features = raw.get("features")
    if not isinstance(features, dict) or not features:
        raise DatasetFormatError(
            "there are no features", remedy="Copy the file again from its source", path=path
        )
    return {name: _feature(name, value, path) for name, value in features.items()}


def _feature(name: str, value: Any, path: Path) -> Feature:
    if not isinstance(value, dict) or not isinstance(value.get("dtype"), str):
        raise DatasetFormatError(
            f"the feature {brief(name)} has no dtype",
            remedy="Copy the file again from its source",
            path=path,
        )
    shape = value.get("shape") or ()
    if not isinstance(shape, list | tuple):
        raise DatasetFormatError(
            f"the feature {brief(name)} has the shape {brief(shape)}",
            remedy="Copy the file again from its source",
            path=path,
        )
    info = value.get("info") or value.get("video_info") or {}
    return Feature(
        name=name,
        dtype=value["dtype"],
        shape=tuple(whole_number(size, f"a size of {name}", path) for size in shape),
        names=value.get("names"),
        info=info if isinstance(info, dict) else {},
    )
