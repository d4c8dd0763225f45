"""GR00T's names: slices of state and action, cameras by name, annotations as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import reelseek
from reelseek.datasets import Dataset
from reelseek.errors import DatasetFormatError
from tests.conftest import needed
from tests.datasets.makers import (
    SPEC,
    TASKS,
    TOP,
    make_gr00t,
    numbers,
    v2_data,
    with_column,
    write_json,
)

torch = needed("torch")


def opened(roots: dict[str, Path], **options: Any) -> Dataset:
    return reelseek.open_dataset(roots["gr00t"], keys="gr00t", **options)


def test_keys_are_the_modality_files(roots: dict[str, Path]) -> None:
    assert opened(roots).keys == (
        "video.ego_view",
        "state.arm",
        "state.gripper",
        "action.lift",
        "action.reward",
        "annotation.human.task",
        "annotation.human.validity",
        "timestamp",
        "episode_index",
        "index",
        "task_index",
    )


def test_parts_are_slices_of_their_columns(roots: dict[str, Path]) -> None:
    by_part, whole = opened(roots), reelseek.open_dataset(roots["gr00t"])
    for index in range(len(whole)):
        sample, vectors = by_part[index], whole[index]
        assert torch.equal(sample["state.arm"], vectors["observation.state"][:3])
        assert torch.equal(sample["state.gripper"], vectors["observation.state"][3:])
        assert torch.equal(sample["action.lift"], vectors["action"][1:2])


def test_part_of_a_single_number_is_a_vector_of_one(roots: dict[str, Path]) -> None:
    assert opened(roots)[8]["action.reward"].tolist() == [2.0]
    windows = opened(roots, delta_indices={"action.*": [0, 1, 9]})
    assert windows[8]["action.reward"].tolist() == [[2.0], [2.25], [2.75]]
    assert windows[8]["action.lift"].tolist() == [[-8.0], [-9.0], [-11.0]]


def test_camera_has_its_frames(roots: dict[str, Path]) -> None:
    ds = opened(roots, delta_indices={"video.*": [0, 2]})
    assert [numbers(ds[index]["video.ego_view"])[0] for index in range(25)] == list(range(25))


@pytest.mark.parametrize("name", ["video.ego_view", TOP, "video.*", "observation.images.*"])
def test_camera_is_chosen_by_either_name(roots: dict[str, Path], name: str) -> None:
    assert opened(roots, cameras=[name]).cameras == ("video.ego_view",)


def test_listed_camera_without_files_is_left_out(roots: dict[str, Path]) -> None:
    assert "observation.images.listed_only" in opened(roots).features
    assert opened(roots).cameras == ("video.ego_view",)
    assert reelseek.open_dataset(roots["gr00t"]).cameras == (TOP,)


def test_annotations_are_texts(roots: dict[str, Path]) -> None:
    ds = opened(roots)
    for episode, start in enumerate(SPEC.starts[:-1]):
        assert ds[start]["annotation.human.task"] == TASKS[episode % 2]
        assert ds[start]["annotation.human.validity"] == "valid"
    batch = ds.get_batch([0, 8])
    assert batch["annotation.human.task"] == list(TASKS)


def test_annotation_with_deltas_is_a_list_of_texts(roots: dict[str, Path]) -> None:
    ds = opened(roots, delta_indices={"annotation.*": [0, 1]})
    assert ds[0]["annotation.human.task"] == [TASKS[0]] * 2


def test_annotation_column_is_a_number_under_lerobots_names(roots: dict[str, Path]) -> None:
    assert reelseek.open_dataset(roots["gr00t"])[0]["annotation.human.validity"] == 2


def test_both_names_take_the_same_frames(roots: dict[str, Path]) -> None:
    by_gr00t, by_lerobot = opened(roots), reelseek.open_dataset(roots["gr00t"])
    assert torch.equal(by_gr00t[9]["video.ego_view"], by_lerobot[9][TOP])


def test_original_key_defaults_to_the_name(tmp_path: Path) -> None:
    make_gr00t(tmp_path)
    write_json(tmp_path / "meta/modality.json", {
        "video": {"top": {}},
        "annotation": {"human.validity": {"original_key": None}},
    })  # fmt: skip
    sample = reelseek.open_dataset(tmp_path, keys="gr00t")[3]
    assert numbers(sample["video.top"]) == 3
    assert sample["annotation.human.validity"] == "valid"


def test_part_of_a_text_is_refused(tmp_path: Path) -> None:
    make_gr00t(tmp_path)
    for episode, length in enumerate(SPEC.lengths):
        path = v2_data(tmp_path, episode)
        table = pq.read_table(path, partitioning=None)
        pq.write_table(with_column(table, "note", ["x"] * length), path)
    part = {"start": 0, "end": 1, "original_key": "note"}
    write_json(tmp_path / "meta/modality.json", {"state": {"arm": part}})
    with pytest.raises(DatasetFormatError, match=r"state\.arm .*note.*no numbers"):
        reelseek.open_dataset(tmp_path, keys="gr00t")[3]
