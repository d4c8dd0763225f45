"""Damaged or hostile ``meta``: a typed error that says where, what, and what to do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.errors import (
    DatasetFormatError,
    DatasetNotFoundError,
    ReelseekError,
    UnsafePathError,
    UnsupportedDatasetError,
)
from tests.datasets.makers import (
    TOP,
    as_lfs_pointer,
    change_info,
    make_gr00t,
    write_info,
    write_json,
    write_lines,
)

DEEP = "[" * 900 + "]" * 900
VERY_DEEP = "[" * 200_000


def refused(
    root: Path, kind: type[ReelseekError], match: str, path: str | Path, **options: Any
) -> ReelseekError:
    """The error of opening a dataset, checked for its place, its text and a remedy."""
    with pytest.raises(kind, match=match) as caught:
        reelseek.open_dataset(root, **options)
    assert caught.value.path == str(root / path)
    assert caught.value.remedy
    assert len(str(caught.value)) < 3000
    return caught.value


# The folder and info.json


def test_no_folder(tmp_path: Path) -> None:
    refused(tmp_path / "none", DatasetNotFoundError, "no such folder.*Check the path", "")


def test_a_file_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", DatasetNotFoundError, "a file, not a folder", "")


def test_folder_without_a_dataset(tmp_path: Path) -> None:
    refused(tmp_path, DatasetNotFoundError, "no meta/info.json", "")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[1]", "holds no JSON object"),
        (DEEP, "holds no JSON object|is not JSON"),
        (VERY_DEEP, "is not JSON"),
        ('{"fps": ' + "9" * 5000 + "}", "is not JSON"),
        ("\x00\x01", "is not JSON"),
    ],
)
def test_info_that_is_no_json_object(v21: Path, text: str, match: str) -> None:
    (v21 / "meta/info.json").write_text(text)
    refused(v21, DatasetFormatError, match, "meta/info.json")


def test_info_that_is_no_text(v21: Path) -> None:
    (v21 / "meta/info.json").write_bytes(b"\xff\xfe\x00")
    refused(v21, DatasetFormatError, "not text", "meta/info.json")


def test_info_with_a_byte_order_mark_is_read(v21: Path) -> None:
    path = v21 / "meta/info.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(reelseek.open_dataset(v21)) == 25


@pytest.mark.parametrize("name", ["info.json", "episodes.jsonl", "tasks.jsonl"])
def test_lfs_pointer_for_a_meta_file(v21: Path, name: str) -> None:
    as_lfs_pointer(v21 / "meta" / name)
    refused(v21, DatasetFormatError, "LFS pointer.*git lfs pull", f"meta/{name}")


@pytest.mark.parametrize("name", ["episodes.jsonl", "tasks.jsonl"])
def test_missing_meta_file(v21: Path, name: str) -> None:
    (v21 / "meta" / name).unlink()
    refused(v21, DatasetNotFoundError, "missing.*again", f"meta/{name}")


@pytest.mark.parametrize("name", ["episodes.jsonl", "tasks.jsonl"])
def test_pipe_for_a_meta_file_does_not_hang(v21: Path, name: str) -> None:
    (v21 / "meta" / name).unlink()
    os.mkfifo(v21 / "meta" / name)
    refused(v21, DatasetFormatError, "folder, device or pipe", f"meta/{name}")


@pytest.mark.parametrize("version", ["v1.6", "v4.0", "2.1", "", None, 3, ["v2.1"], {}])
def test_unknown_version_lists_the_known(v21: Path, version: Any) -> None:
    change_info(v21, lambda about: about.update(codebase_version=version))
    refused(v21, UnsupportedDatasetError, "v2.0, v2.1, v3.0", "meta/info.json")


def test_missing_version(v21: Path) -> None:
    change_info(v21, lambda about: about.pop("codebase_version"))
    refused(v21, UnsupportedDatasetError, "codebase_version is None", "meta/info.json")


@pytest.mark.parametrize(
    "fps",
    [0, -1, float("nan"), float("inf"), "30", None, True, [30], 1e300, json.loads(DEEP[200:-200])],
)
def test_fps_that_is_no_frame_rate(v21: Path, fps: Any) -> None:
    change_info(v21, lambda about: about.update(fps=fps))
    refused(v21, DatasetFormatError, "fps is .*no frame rate", "meta/info.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("features", None),
        ("features", []),
        ("features", {}),
        ("features", {"a": 1}),
        ("features", {"a": {}}),
        ("features", {"a": {"dtype": "float32", "shape": 3}}),
        ("features", {"a": {"dtype": "float32", "shape": [-1]}}),
        ("features", {"a": {"dtype": "float32", "shape": ["x"]}}),
        ("data_path", None),
        ("data_path", ["data"]),
        ("video_path", 5),
        ("chunks_size", 0),
        ("chunks_size", -5),
        ("chunks_size", 1.5),
        ("chunks_size", "1000"),
        ("chunks_size", 2**70),
    ],
)
def test_field_that_says_what_cannot_be(v21: Path, name: str, value: Any) -> None:
    change_info(v21, lambda about: about.update({name: value}))
    word = {"features": "feature|a size of a"}.get(name, name)
    refused(v21, DatasetFormatError, word, "meta/info.json")


def test_videos_without_a_template(v21: Path) -> None:
    change_info(v21, lambda about: about.pop("video_path"))
    refused(v21, DatasetFormatError, "no video_path", "meta/info.json")


# Templates


HOSTILE = [
    "../{video_key}.mp4",
    "videos/../../{episode_index}.mp4",
    "/etc/passwd",
    "{video_key}/../../../x",
    "..",
    ".",
    "{episode_index.__class__}",
    "{episode_index.__class__.__mro__[1]}",
    "{video_key[0]}",
    "{video_key!r}",
    "{episode_index!s}",
    "{episode_index:0999999999d}",
    "{episode_index:999}",
    "{episode_index:{episode_chunk}}",
    "{episode_index:,}",
    "{episode_index:e}",
    "{video_key:d}",
    "{0}",
    "{}",
    "{nothing}",
    "{",
    "}",
    "{video_key",
    "videos/\0.mp4",
    "videos/\ud800.mp4",
    "x" * 300,
    "x/" * 3000,
    "{video_key}" * 100_000,
]


@pytest.mark.parametrize("template", HOSTILE, ids=range(len(HOSTILE)))
def test_template_that_is_not_plain_or_leaves_the_root(v21: Path, template: str) -> None:
    change_info(v21, lambda about: about.update(data_path=template))
    error = refused(v21, UnsafePathError, "the path template", "meta/info.json")
    assert "must stay inside the dataset" in error.remedy
    change_info(v21, lambda about: about.update(data_path="data", video_path=template))
    refused(v21, UnsafePathError, "the path template", "meta/info.json")


@pytest.mark.parametrize("key", ["../../../../x", "/etc", "..", "a\0b", "x" * 300, "\ud800"])
def test_camera_name_that_leaves_the_root(v21: Path, key: str) -> None:
    def rename(about: dict[str, Any]) -> None:
        about["features"][key] = about["features"].pop(TOP)
        about["video_path"] = "{video_key}/{episode_index:06d}.mp4"

    change_info(v21, rename)
    refused(v21, UnsafePathError, "leads out of|gives no path", "meta/info.json")


def test_links_inside_a_dataset_may_lead_out_of_it(v21: Path, tmp_path: Path) -> None:
    (v21 / "videos").rename(tmp_path / "blobs")
    (v21 / "videos").symlink_to(tmp_path / "blobs")
    assert reelseek.open_dataset(v21, output="numpy")[0]["index"] == 0


# Episodes and tasks of v2


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"length": -1}, "length is -1"),
        ({"length": 2**60}, "length is"),
        ({"length": 1.5}, "length is 1.5"),
        ({"length": None}, "length is None"),
        ({"length": True}, "length is True"),
        ({"episode_index": -1}, "episode_index is -1"),
        ({"episode_index": "0"}, "episode_index is '0'"),
        ({"episode_index": 1}, "episode 1 is listed twice"),
    ],
)
def test_episode_that_says_what_cannot_be(v21: Path, change: dict[str, Any], match: str) -> None:
    lines = [{"episode_index": n, "tasks": [], "length": 5} for n in range(2)]
    write_lines(v21 / "meta/episodes.jsonl", [{**lines[0], **change}, lines[1]])
    refused(v21, DatasetFormatError, match, "meta/episodes.jsonl")


def test_lengths_that_add_up_to_too_much(v21: Path) -> None:
    lines = [{"episode_index": n, "tasks": [], "length": 2**53} for n in range(1500)]
    write_lines(v21 / "meta/episodes.jsonl", lines)
    refused(v21, DatasetFormatError, "add up to more than", "")


@pytest.mark.parametrize("line", ["5", "[]", "{", "null", '"x"'])
def test_line_that_is_no_object_is_named(v21: Path, line: str) -> None:
    path = v21 / "meta/episodes.jsonl"
    path.write_text(path.read_text() + "\n" + line + "\n")
    refused(v21, DatasetFormatError, "line 6", "meta/episodes.jsonl")


@pytest.mark.parametrize("number", [-1, "0", None, 0.5])
def test_task_without_a_number(v21: Path, number: Any) -> None:
    write_lines(v21 / "meta/tasks.jsonl", [{"task_index": number, "task": "x"}])
    refused(v21, DatasetFormatError, "task_index is", "meta/tasks.jsonl")


# modality.json


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"state": []}, "'state' is no table"),
        ({"state": {"arm": 3}}, "'state' is no table"),
        ({"state": {"arm": {"end": 3}}}, "start of state.arm is None"),
        ({"state": {"arm": {"start": 3, "end": 1}}}, "end of state.arm is 1"),
        ({"state": {"arm": {"start": -1, "end": 1}}}, "start of state.arm is -1"),
        ({"video": ["a"]}, "'video' is no table"),
        ({"annotation": {"task": "task_index"}}, "'annotation' is no table"),
    ],
)
def test_modality_that_says_what_cannot_be(
    tmp_path: Path, change: dict[str, Any], match: str
) -> None:
    make_gr00t(tmp_path)
    write_json(tmp_path / "meta/modality.json", change)
    refused(tmp_path, DatasetFormatError, match, "meta/modality.json", keys="gr00t")


def test_modality_that_names_no_column_lists_the_columns(tmp_path: Path) -> None:
    make_gr00t(tmp_path)
    part = {"start": 0, "end": 1, "original_key": "observation.effort"}
    write_json(tmp_path / "meta/modality.json", {"state": {"arm": part}})
    refused(tmp_path, DatasetFormatError, "'observation.effort'.*action, ", "", keys="gr00t")


def test_modality_slice_past_the_vector_is_refused(tmp_path: Path) -> None:
    make_gr00t(tmp_path)
    write_json(tmp_path / "meta/modality.json", {"state": {"arm": {"start": 2, "end": 5}}})
    ds = reelseek.open_dataset(tmp_path, keys="gr00t")
    with pytest.raises(DatasetFormatError, match=r"state.arm from elements 2 to 5 .*has 4"):
        ds[0]


def test_gr00t_keys_need_a_modality_file(v21: Path) -> None:
    refused(v21, DatasetFormatError, "needs meta/modality.json", "", keys="gr00t")


def test_unknown_things_in_info_are_let_be(v21: Path) -> None:
    change_info(v21, lambda about: about.update(tools=[1], extra={"a": None}, splits=5))
    assert len(reelseek.open_dataset(v21)) == 25


def test_info_that_is_a_list_is_refused(v21: Path) -> None:
    write_info(v21, [1, np.pi])
    refused(v21, DatasetFormatError, "holds no JSON object", "meta/info.json")
