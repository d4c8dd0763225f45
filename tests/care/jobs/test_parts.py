"""How a run is split: by bytes, and each part as a file."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
from hypothesis import given

from reelseek.care.jobs import Item
from reelseek.care.jobs._parts import Part, split_by_bytes


def items_of(*sizes: int) -> list[Item]:
    return [Item(f"video_{number}", size) for number, size in enumerate(sizes)]


def weights(parts: list[list[Item]]) -> list[int]:
    return sorted(sum(item.num_bytes for item in part) for part in parts)


def test_large_files_are_dealt_first_and_the_small_ones_fill_up() -> None:
    parts = split_by_bytes(items_of(1, 1, 1, 1, 1, 1, 6, 3, 3), 3)
    assert weights(parts) == [6, 6, 6]
    assert all(part == sorted(part, key=lambda item: -item.num_bytes) for part in parts)


def test_no_more_parts_than_items_and_empty_files_count() -> None:
    assert len(split_by_bytes(items_of(5, 5), 9)) == 2
    assert [len(part) for part in split_by_bytes(items_of(0, 0, 0, 0), 2)] == [2, 2]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 8))
def test_every_item_is_in_one_part_and_parts_are_about_equal(sizes: list[int], most: int) -> None:
    items = items_of(*sizes)
    parts = split_by_bytes(items, most)
    assert sorted(item.key for part in parts for item in part) == sorted(i.key for i in items)
    heaviest = max(sum(max(1, item.num_bytes) for item in part) for part in parts)
    total = sum(max(1, size) for size in sizes)
    assert heaviest <= total / len(parts) + max(1, *sizes, 1)


def test_part_comes_back_from_its_file(tmp_path: Path) -> None:
    part = Part(
        "module:name", {"folder": "a b"}, "run", str(tmp_path / "r.jsonl"),
        str(tmp_path / "logs" / "0.log"), 2, (Item("k\udcff", 3, "3-1"),),
    )  # fmt: skip
    part.write(tmp_path / "0.json")
    assert Part.read(tmp_path / "0.json") == part
    assert (tmp_path / "r.jsonl").read_bytes() == b""
