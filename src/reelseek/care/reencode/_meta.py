"""What a dataset says of its videos, put right for the new ones."""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reelseek.care.reencode._encoding import Encoding

TIMES_SECONDS = 1e-6
"""Times that differ by no more than this are left as they are."""
FAST_DECODE, OPTIONS = "video.fast_decode", "video.extra_options"
EpisodeTimes = Mapping[str, Mapping[int, Sequence[float]]]
"""By camera and episode: when it begins and ends in its file, in seconds."""


def new_info(raw: Mapping[str, Any], cameras: Sequence[str], encoding: Encoding) -> dict[str, Any]:
    """``meta/info.json`` of a dataset whose cameras were encoded anew.

    The video's codec and pixel format are set, and what else the file says of the encoding is
    changed; the size only where there is a new one.
    """
    info: dict[str, Any] = copy.deepcopy(dict(raw))
    for camera in cameras:
        feature = info["features"][camera]
        block = feature.setdefault("video_info" if "video_info" in feature else "info", {})
        if isinstance(block, dict):
            block |= {"video.codec": encoding.codec, "video.pix_fmt": encoding.pixel_format}
            _correct(block, encoding)
        if encoding.size is not None:
            _resize(feature, encoding.size)
    return info


def _correct(block: dict[str, Any], encoding: Encoding) -> None:
    """Change what is said of an encoding that is no more, and no line that isn't there."""
    preset = int(encoding.effort) if encoding.codec == "av1" else encoding.effort
    values: dict[str, Any] = {
        "video.g": encoding.gop, "video.crf": encoding.quality, "video.preset": preset,
        FAST_DECODE: 0, OPTIONS: {}, "has_audio": False, "video.has_audio": False,
    }  # fmt: skip
    block |= {name: value for name, value in values.items() if name in block}
    if encoding.size is not None:
        block |= {"video.width": encoding.size[0], "video.height": encoding.size[1]}


def _resize(feature: dict[str, Any], size: tuple[int, int]) -> None:
    shape, names = feature.get("shape"), feature.get("names")
    if not isinstance(shape, list) or len(shape) != 3:
        return
    named = names if isinstance(names, list) and len(names) == 3 else ["height", "width", ""]
    for name, value in zip(("width", "height"), size, strict=True):
        if name in named:
            shape[named.index(name)] = value


def write_json(path: Path, document: Mapping[str, Any], work: Path) -> None:
    """Write a JSON file in ASCII, all of it or none: a path in it may be no UTF-8."""
    unfinished = work / secrets.token_hex(8)
    unfinished.write_text(json.dumps(document, indent=4) + "\n", "ascii")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished.replace(path)


def write_episode_times(root: Path, times: EpisodeTimes, work: Path) -> None:
    """Put right when episodes begin and end in their files, in ``meta/episodes`` (v3.0).

    Files that say the same already stay as they are.

    Args:
        root: The new dataset's folder.
        times: As they are in the new files.
        work: A folder for what isn't finished.
    """
    for path in sorted((root / "meta" / "episodes").glob("*/*.parquet")):
        _write_times_of(path, times, work)


def _write_times_of(path: Path, times: EpisodeTimes, work: Path) -> None:
    """Write one file anew where its times differ, with its row groups as they are."""
    import pyarrow.parquet as pq

    with path.open("rb") as opened, pq.ParquetFile(opened) as file:  # Arrow takes UTF-8 names only
        groups = [file.read_row_group(number) for number in range(file.num_row_groups)]
        corrected = [_corrected(group, times) for group in groups]
        if all(new is old for new, old in zip(corrected, groups, strict=True)):
            return
        compression = file.metadata.row_group(0).column(0).compression
        unfinished = work / secrets.token_hex(8)
        with (
            unfinished.open("wb") as new,
            pq.ParquetWriter(new, file.schema_arrow, compression=compression) as writer,
        ):
            for group in corrected:
                writer.write_table(group, row_group_size=max(1, len(group)))
    unfinished.replace(path)


def _corrected(group: Any, times: EpisodeTimes) -> Any:
    """The rows with the times of the new files; the same table where they have them."""
    import pyarrow as pa

    episodes = group.column("episode_index").to_pylist()
    for camera, of_episode in times.items():
        for place, name in enumerate(("from_timestamp", "to_timestamp")):
            column = f"videos/{camera}/{name}"
            if column not in group.column_names:
                continue
            said = group.column(column).to_numpy()
            wanted = np.array(
                [of_episode[e][place] if e in of_episode else t
                 for e, t in zip(episodes, said, strict=True)], np.float64,
            )  # fmt: skip
            if len(said) and np.abs(wanted - said).max() > TIMES_SECONDS:
                position = group.column_names.index(column)
                field = group.schema.field(position)
                group = group.set_column(position, field, pa.array(wanted, field.type))
    return group
