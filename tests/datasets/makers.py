"""Tiny datasets of every version, whose frames and values tell which row they belong to.

Row ``n`` of a dataset (counted over all episodes) has ``observation.state`` starting with ``n``,
and the picture of camera ``c`` shows the number ``shown(c, n)`` as bars, so that which frame a
sample holds has an exact answer. Nothing here uses reelseek.
"""

from __future__ import annotations

import functools
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tests.corpus import LFS_POINTER, number_shown

TOP, WRIST = "observation.images.top", "observation.images.wrist"
TASKS = ("stack the cups", "open the drawer")
HEIGHT, WIDTH = 64, 320
BARS = 10
ROWS_PER_CAMERA = 400
"""A camera's numbers start this much above those of the camera before it."""

V2_DATA = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
V2_VIDEO = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
V3_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
V3_VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"

INTS = ("frame_index", "episode_index", "index", "task_index")


@dataclass(frozen=True, slots=True)
class Spec:
    """What a tiny dataset holds."""

    lengths: tuple[int, ...] = (7, 5, 9, 4)
    """Frames of each episode."""
    fps: int = 10
    cameras: tuple[str, ...] = (TOP, WRIST)
    codec: str = "libx264"

    @property
    def starts(self) -> list[int]:
        """The first row of each episode, and the number of rows."""
        return [0, *np.cumsum(self.lengths).tolist()]


SPEC = Spec()


def shown(camera: str, row: int) -> int:
    """The number that a camera's picture of this row shows."""
    return ROWS_PER_CAMERA * (camera == WRIST) + row


def numbers(frames: Any) -> Any:
    """The numbers that frames (..., C, H, W) show, as a list of the same nesting."""
    if len(frames.shape) > 3:
        return [numbers(frame) for frame in frames]
    return number_shown(np.moveaxis(np.asarray(frames), -3, -1))


def picture(number: int) -> NDArray[np.uint8]:
    """(H, W, 3) RGB bars that show a number."""
    bits = (number >> np.arange(BARS)) & 1
    row = np.repeat(np.where(bits, 235, 16), WIDTH // BARS).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(row[None, :, None], (HEIGHT, WIDTH, 3)))


@functools.cache
def bars_video(
    first: int, count: int, fps: int = 10, codec: str = "libx264", late: float = 0.0
) -> bytes:
    """An MP4 whose frames show ``first``, ``first + 1``, ...; ``late`` seconds off the grid."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream: Any = container.add_stream(codec, rate=fps)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000 * fps)
        stream.options = {"g": "5", "crf": "18", "preset": "8" if "svt" in codec else "veryfast"}
        for number in range(count):
            frame = av.VideoFrame.from_ndarray(picture(first + number), format="rgb24")
            frame.pts = number * 1000 + (round(late * 1000 * fps) if number else 0)
            frame.time_base = stream.time_base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def pictures_video(
    pictures: Sequence[NDArray[np.uint8]],
    seconds: Sequence[float],
    *,
    ticks: int = 10_000,
    pixel_format: str = "yuv420p",
    codec: str = "libx264",
    options: Mapping[str, str] | None = None,
) -> bytes:
    """An MP4 of these RGB pictures at these times, on a clock of so many ticks a second."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4", options={"video_track_timescale": str(ticks)}) as out:
        stream: Any = out.add_stream(codec, rate=10)
        height, width, _channels = pictures[0].shape
        stream.width, stream.height, stream.pix_fmt = width, height, pixel_format
        stream.time_base = stream.codec_context.time_base = Fraction(1, ticks)
        own = {"preset": "veryfast", "bf": "0"} if codec == "libx264" else {"preset": "8"}
        stream.options = {"g": "5", "crf": "18", **own, **(options or {})}
        for pixels, at in zip(pictures, seconds, strict=True):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = round(at * ticks), stream.time_base
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return file.getvalue()


def rows(spec: Spec, episode: int) -> dict[str, pa.Array]:
    """LeRobot's columns of one episode."""
    start, length = spec.starts[episode], spec.lengths[episode]
    index = np.arange(start, start + length)
    state = index[:, None] + np.array([0, 0.25, 0.5, 0.75])
    return {
        "observation.state": vectors(state),
        "action": vectors(np.stack([index * 10, -index], axis=1)),
        "next.reward": pa.array(index / 4, pa.float32()),
        "next.done": pa.array(index == index[-1] if length else index > 0),
        "timestamp": pa.array((index - start) / spec.fps, pa.float32()),
        "frame_index": pa.array(index - start),
        "episode_index": pa.array(np.full(length, episode)),
        "index": pa.array(index),
        "task_index": pa.array(np.full(length, episode % len(TASKS))),
    }


def vectors(values: NDArray[Any]) -> pa.Array:
    """(rows, D) numbers as a column of fixed-size lists of float32."""
    flat = pa.array(values.astype(np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def make_v21(root: Path, spec: Spec = SPEC) -> Path:
    """A LeRobot v2.1 dataset."""
    for episode in range(len(spec.lengths)):
        write_table(v2_data(root, episode), rows(spec, episode))
        for camera in spec.cameras:
            write_video(v2_video(root, camera, episode), spec, camera, [episode])
    write_info(root, info(spec, "v2.1", V2_DATA, V2_VIDEO))
    write_v2_meta(root, spec.lengths, [[TASKS[e % 2]] for e in range(len(spec.lengths))])
    return root


def make_gr00t(root: Path, spec: Spec = SPEC) -> Path:
    """A v2.0 dataset as GR00T's are: float fps, variable lists, no frame_index, a modality file."""
    spec = Spec(spec.lengths, spec.fps, (TOP,), spec.codec)
    for episode in range(len(spec.lengths)):
        columns = rows(spec, episode)
        del columns["frame_index"]
        for name in ("observation.state", "action"):
            columns[name] = pa.array(columns[name].to_pylist(), pa.list_(pa.float64()))
        for name in ("timestamp", "next.reward"):
            columns[name] = columns[name].cast(pa.float64())
        columns["annotation.human.validity"] = pa.array([2] * spec.lengths[episode])
        write_table(v2_data(root, episode), columns)
        write_video(v2_video(root, TOP, episode), spec, TOP, [episode])
    about = info(spec, "v2.0", V2_DATA, V2_VIDEO)
    features = about["features"]
    features[TOP]["video_info"] = features[TOP].pop("info")
    features["observation.images.listed_only"] = features[TOP]
    del features["frame_index"]
    write_info(root, {**about, "fps": float(spec.fps), "total_chunks": 0})
    write_v2_meta(root, spec.lengths, [[TASKS[e % 2], "valid"] for e in range(len(spec.lengths))])
    write_json(root / "meta/modality.json", {
        "state": {"arm": {"start": 0, "end": 3}, "gripper": {"start": 3, "end": 4}},
        "action": {"lift": {"start": 1, "end": 2},
                   "reward": {"start": 0, "end": 1, "original_key": "next.reward"}},
        "video": {"ego_view": {"original_key": TOP},
                  "listed_only": {"original_key": "observation.images.listed_only"}},
        "annotation": {"human.task": {"original_key": "task_index"}, "human.validity": {}},
    })  # fmt: skip
    return root


def make_images(root: Path, spec: Spec = SPEC, *, form: str = "PNG") -> Path:
    """A v2.1 dataset whose first camera is a column of PNG or JPEG files."""
    camera = spec.cameras[0]
    make_v21(root, Spec(spec.lengths, spec.fps, spec.cameras[1:], spec.codec))
    for episode, length in enumerate(spec.lengths):
        start = spec.starts[episode]
        cells = [
            {"bytes": image_bytes(shown(camera, start + row), form), "path": f"frame_{row:06d}"}
            for row in range(length)
        ]
        path = v2_data(root, episode)
        pq.write_table(with_column(pq.read_table(path, partitioning=None), camera, cells), path)
    change_info(root, lambda about: about["features"].update({camera: camera_feature("image")}))
    return root


@functools.cache
def image_bytes(number: int, form: str = "PNG") -> bytes:
    """A picture file of bars."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture(number)).save(file, form)
    return file.getvalue()


def make_v30(
    root: Path,
    spec: Spec = SPEC,
    *,
    data_files: Sequence[Sequence[int]] = ((0, 1, 2), (3,)),
    video_files: Sequence[Sequence[int]] = ((0, 1), (2, 3)),
    meta_files: Sequence[Sequence[int]] = ((0, 1, 2), (3,)),
) -> Path:
    """A LeRobot v3.0 dataset, with the episodes that each of its files holds."""
    for number, episodes in enumerate(data_files):
        tables = [pa.table(rows(spec, episode)) for episode in episodes]
        path = root / V3_DATA.format(chunk_index=0, file_index=number)
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(path, tables[0].schema) as writer:
            for table in tables:
                writer.write_table(table)  # one row group per episode
    for number, episodes in enumerate(video_files):
        for camera in spec.cameras:
            write_video(v3_video(root, camera, number), spec, camera, episodes)
    places = [*v3_places(spec, data_files, video_files)]
    for number, episodes in enumerate(meta_files):
        path = v3_episodes(root, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([places[e] for e in episodes]), path, row_group_size=2)
    write_tasks_parquet(root / "meta/tasks.parquet")
    write_info(root, info(spec, "v3.0", V3_DATA, V3_VIDEO))
    return root


def v3_places(
    spec: Spec, data_files: Sequence[Sequence[int]], video_files: Sequence[Sequence[int]]
) -> Iterator[dict[str, Any]]:
    """Rows of ``meta/episodes``: where each episode's rows and frames are."""
    data_of = {episode: n for n, episodes in enumerate(data_files) for episode in episodes}
    video_of = {episode: n for n, episodes in enumerate(video_files) for episode in episodes}
    for episode, length in enumerate(spec.lengths):
        before = [e for e in video_files[video_of[episode]] if e < episode]
        start = sum(spec.lengths[e] for e in before) / spec.fps
        place: dict[str, Any] = {
            "episode_index": episode,
            "tasks": [TASKS[episode % 2]] * (2 if episode == 3 else 1),
            "length": length,
            "data/chunk_index": 0,
            "data/file_index": data_of[episode],
            "dataset_from_index": spec.starts[episode],
            "dataset_to_index": spec.starts[episode + 1],
            "stats/action/mean": [0.5, -0.5],
        }
        for camera in spec.cameras:
            place |= {
                f"videos/{camera}/chunk_index": 0,
                f"videos/{camera}/file_index": video_of[episode],
                f"videos/{camera}/from_timestamp": start,
                f"videos/{camera}/to_timestamp": start + length / spec.fps,
            }
        yield place | {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}


def write_tasks_parquet(path: Path) -> None:
    """``meta/tasks.parquet`` as pandas writes it: the text is the frame's index."""
    table = pa.table({"task_index": list(range(len(TASKS))), "__index_level_0__": list(TASKS)})
    columns = [
        {"name": "task_index", "field_name": "task_index", "pandas_type": "int64",
         "numpy_type": "int64", "metadata": None},
        {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode",
         "numpy_type": "object", "metadata": None},
    ]  # fmt: skip
    about = {"index_columns": ["__index_level_0__"], "columns": columns, "column_indexes": []}
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(about)}), path)


def info(spec: Spec, version: str, data_path: str, video_path: str) -> dict[str, Any]:
    """What ``meta/info.json`` says of a dataset."""
    features = {camera: camera_feature("video", spec.fps) for camera in spec.cameras}
    values = {
        "observation.state": ("float32", [4]),
        "action": ("float32", [2]),
        "next.reward": ("float32", [1]),
        "next.done": ("bool", [1]),
        "timestamp": ("float32", [1]),
        **{name: ("int64", [1]) for name in INTS},
    }
    for name, (dtype, shape) in values.items():
        features[name] = {"dtype": dtype, "shape": shape, "names": None}
    return {
        "codebase_version": version,
        "robot_type": "bars",
        "total_episodes": len(spec.lengths),
        "total_frames": sum(spec.lengths),
        "total_tasks": len(TASKS),
        "chunks_size": 1000,
        "fps": spec.fps,
        "splits": {"train": f"0:{len(spec.lengths)}"},
        "data_path": data_path,
        "video_path": video_path,
        "features": features,
    }


def camera_feature(dtype: str, fps: int = 10) -> dict[str, Any]:
    """A camera as ``info.json`` lists it."""
    return {
        "dtype": dtype,
        "shape": [HEIGHT, WIDTH, 3],
        "names": ["height", "width", "channels"],
        "info": {"video.codec": "h264", "video.fps": fps, "video.pix_fmt": "yuv420p"},
    }


def write_v2_meta(root: Path, lengths: Sequence[int], tasks: Sequence[Sequence[str]]) -> None:
    """``episodes.jsonl`` and ``tasks.jsonl``."""
    texts = (*TASKS, "valid")
    write_lines(root / "meta/tasks.jsonl",
                [{"task_index": n, "task": text} for n, text in enumerate(texts)])  # fmt: skip
    write_lines(
        root / "meta/episodes.jsonl",
        [
            {"episode_index": n, "tasks": list(tasks[n]), "length": length}
            for n, length in enumerate(lengths)
        ],
    )


def v2_data(root: Path, episode: int) -> Path:
    """An episode's parquet file in a v2 dataset."""
    return root / V2_DATA.format(episode_chunk=episode // 1000, episode_index=episode)


def v2_video(root: Path, camera: str, episode: int) -> Path:
    """An episode's video in a v2 dataset."""
    chunk = episode // 1000
    return root / V2_VIDEO.format(episode_chunk=chunk, video_key=camera, episode_index=episode)


def v3_data(root: Path, number: int) -> Path:
    """A parquet file of a v3 dataset."""
    return root / V3_DATA.format(chunk_index=0, file_index=number)


def v3_video(root: Path, camera: str, number: int) -> Path:
    """A video of a v3 dataset."""
    return root / V3_VIDEO.format(video_key=camera, chunk_index=0, file_index=number)


def v3_episodes(root: Path, number: int = 0) -> Path:
    """A file of ``meta/episodes``."""
    return root / f"meta/episodes/chunk-000/file-{number:03d}.parquet"


def write_video(path: Path, spec: Spec, camera: str, episodes: Sequence[int]) -> None:
    """A camera's video of some consecutive episodes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = sum(spec.lengths[e] for e in episodes)
    first = shown(camera, spec.starts[episodes[0]])
    path.write_bytes(bars_video(first, count, spec.fps, spec.codec))


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """A parquet file of these columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), path)


def change_rows(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write a parquet file again, changed."""
    pq.write_table(change(pq.read_table(path, partitioning=None)), path)


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    """A table with one column set."""
    column = values if isinstance(values, pa.Array) else pa.array(values)
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def change_info(root: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Write ``info.json`` again, changed in place by the function."""
    about = json.loads((root / "meta/info.json").read_text())
    change(about)
    write_info(root, about)


def write_info(root: Path, about: Any) -> None:
    """``meta/info.json``."""
    write_json(root / "meta/info.json", about)


def write_json(path: Path, value: Any) -> None:
    """A JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def write_lines(path: Path, values: Sequence[Any]) -> None:
    """A file with one JSON value on each line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def read_lines(path: Path) -> list[Any]:
    """The values of a file with one JSON value on each line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def as_lfs_pointer(path: Path) -> None:
    """Replace a file by the Git LFS pointer to it."""
    path.write_bytes(LFS_POINTER)


def as_cut(path: Path, share: float = 0.5) -> None:
    """Keep only this share of a file's start."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def as_folder(path: Path) -> None:
    """Replace a file by an empty folder."""
    path.unlink()
    path.mkdir()


def as_pipe(path: Path) -> None:
    """Replace a file by a named pipe, which a careless reader waits on for ever."""
    path.unlink()
    os.mkfifo(path)
